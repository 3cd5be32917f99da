//! Aggregates of any type: reads the current or an earlier state of an aggregate, and lists and deletes aggregates.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::call_context::{CallContext, Changing, Operation, event_of};
use super::rights::{Reader, Writer};
use super::{Page, PageLimit};
use crate::append::request::{Append, Decide};
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::excerpt::excerpt_of;
use crate::model::fold::DELETED;
use crate::model::value::Object;
use crate::pipeline::hint::did_you_mean;

/// The moment for which a state is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateMoment {
    #[default]
    Now,
    /// The state after the event with this version.
    Version(u64),
    /// The state after the events that occurred up to this time, in milliseconds since the epoch.
    At(i64),
    /// The state after the events up to this position of the log.
    Position(u64),
}

/// A filter for lists of aggregates.
#[derive(Debug, Clone, Default)]
pub struct AggregateFilter {
    pub aggregate_type: Option<String>,
    /// The id or the slug of a project.
    pub project: Option<String>,
}

impl Reader {
    /// Returns the folded state of an aggregate, and the definition of its type. A deleted aggregate has no current
    /// state, but still has earlier states.
    pub async fn aggregate(&self, id: &str, moment: StateMoment) -> Result<(Arc<Aggregate>, Arc<Definition>)> {
        let state = self.context.state();
        self.context.refresh().await?;
        let not_found = || Error::not_found("aggregate", id);
        let now = state.folded.get(id).ok_or_else(not_found)?;
        let definition = state.types.get(&now.aggregate_type).ok_or_else(not_found)?;
        let aggregate = match moment {
            StateMoment::Now => Some(now),
            StateMoment::Version(version) if version > now.version => return Err(no_version(version, &now)),
            StateMoment::Version(version) => {
                state.fold_stream(&now.id, version, None, &definition).await?.map(Arc::new)
            }
            StateMoment::Position(position) if now.position <= position => {
                self.context.check_position(position).await?;
                Some(now)
            }
            StateMoment::Position(position) => {
                let version = state.version_at(&now, position).await?;
                state.fold_stream(&now.id, version, None, &definition).await?.map(Arc::new)
            }
            StateMoment::At(at) => state.fold_stream(&now.id, now.version, Some(at), &definition).await?.map(Arc::new),
        };
        let aggregate = aggregate.filter(|aggregate| !aggregate.deleted).ok_or_else(not_found)?;
        Ok((aggregate, definition))
    }

    /// Returns a page of aggregates that are not deleted, newest first, each with its definition. The cursor of the
    /// next page is the position at which the stream of the page's last aggregate begins.
    pub async fn list_aggregates(
        &self,
        listing: &AggregateFilter,
        before: Option<u64>,
        limit: PageLimit,
    ) -> Result<Page<(Arc<Aggregate>, Arc<Definition>)>> {
        let state = self.context.state();
        self.context.refresh().await?;
        let types = state.types.all();
        if let Some(name) = &listing.aggregate_type
            && !types.contains_key(name.as_str())
        {
            let hint = did_you_mean(name, types.keys().map(|known| &**known));
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            return Err(Error::invalid(format!("unknown aggregate type '{}'{hint}", excerpt_of(name))));
        }
        let project = self.context.project_id(listing.project.as_deref())?;
        let admits =
            |found: &Aggregate| project.as_ref().is_none_or(|project| found.project_id.as_ref() == Some(project));
        let aggregate_type = listing.aggregate_type.as_deref();
        let Page { items, next } = self.context.list(aggregate_type, before, limit, admits).await?;
        let described = |found: Arc<Aggregate>| Some((types.get(&found.aggregate_type)?.clone(), found));
        let items = items.into_iter().filter_map(described).map(|(definition, found)| (found, definition)).collect();
        Ok(Page { items, next })
    }
}

/// Returns the error for a version that an aggregate has not reached.
fn no_version(version: u64, now: &Aggregate) -> Error {
    let what = format!("the aggregate '{}' is at version {}; version {version}", now.id, now.version);
    Error::NotFound { what }
}

impl Writer {
    /// Deletes an aggregate by appending `<type>.deleted`. Its history stays in the log. Fails if the type of the
    /// aggregate is managed, because only the operations of such a type may delete its aggregates.
    pub async fn delete_aggregate(&self, id: &str, expected: StreamExpectation) -> Result<()> {
        self.context.refresh().await?;
        let id = id.to_owned();
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let live = view.aggregate(&id).filter(|found| !found.deleted);
            let live = live.ok_or_else(|| Error::not_found("aggregate", &id))?;
            let event_type = format!("{}.{DELETED}", live.aggregate_type);
            Ok(vec![NewEvent { aggregate_id: id.clone(), event_type, expected, ..NewEvent::default() }])
        });
        let append = Append { managed: false, ..Append::decided(self.context.actor(), decide) };
        Operation::perform(self, |operation| async move { operation.appender().append(append).await.map(drop) }).await
    }
}

impl Operation {
    /// Appends one event to an aggregate of a type, unless `payload` returns `None`. Fails if the aggregate does not
    /// exist, is deleted, or has a version that `expected` does not allow. Returns the aggregate after the event, or
    /// the unchanged aggregate.
    pub(super) async fn change(
        handle: &impl Changing,
        (aggregate_type, id): (&'static str, &str),
        expected: StreamExpectation,
        verb: &'static str,
        given_bytes: usize,
        payload: impl Fn(&View<'_>, &Aggregate) -> Result<Option<Object>> + Send + Sync + 'static,
    ) -> Result<Arc<Aggregate>> {
        let id = id.to_owned();
        let changed_id = id.clone();
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let found = view.live(aggregate_type, &id)?;
            if !expected.allows(found.version) {
                return Err(Error::version_conflict(found.version));
            }
            let event = |payload| event_of(&id, aggregate_type, verb, payload);
            Ok(payload(view, &found)?.into_iter().map(event).collect())
        });
        Operation::perform(handle, |operation| async move {
            let appended = operation.append(decide, None, given_bytes, None).await?;
            let found = operation.state_after(&appended, &changed_id);
            found.ok_or_else(|| Error::not_found(aggregate_type, &changed_id))
        })
        .await
    }
}

impl CallContext {
    /// Returns a page of the aggregates that are not deleted and that `admits` accepts, newest first. With
    /// `aggregate_type`, only aggregates of this type are visited. The cursor of the next page is the position at which
    /// the stream of the page's last aggregate begins.
    pub(super) async fn list(
        &self,
        aggregate_type: Option<&str>,
        before: Option<u64>,
        limit: PageLimit,
        admits: impl Fn(&Aggregate) -> bool,
    ) -> Result<Page<Arc<Aggregate>>> {
        self.refresh().await?;
        let (mut items, mut bytes): (Vec<Arc<Aggregate>>, usize) = (Vec::new(), 0);
        let mut next = None;
        let visit = |found: &Arc<Aggregate>| {
            if found.deleted || !admits(found) {
                return ControlFlow::Continue(());
            }
            bytes = bytes.saturating_add(found.size_bytes());
            if !items.is_empty() && (items.len() >= limit.rows || bytes > limit.bytes) {
                next = items.last().map(|last| last.first_position);
                return ControlFlow::Break(());
            }
            items.push(found.clone());
            ControlFlow::Continue(())
        };
        self.visit_newest(aggregate_type, before, visit).await;
        Ok(Page { items, next })
    }

    /// Calls `visit` for aggregates, newest first and including deleted aggregates, until `visit` breaks. With
    /// `aggregate_type`, only aggregates of this type are visited. Yields to other tasks after each block of
    /// aggregates.
    pub(super) async fn visit_newest(
        &self,
        aggregate_type: Option<&str>,
        before: Option<u64>,
        mut visit: impl FnMut(&Arc<Aggregate>) -> ControlFlow<()>,
    ) {
        let mut newest = self.state().folded.newest(aggregate_type, before.unwrap_or(u64::MAX));
        loop {
            let visited = match newest.next_block() {
                Some(mut block) => block.try_for_each(&mut visit),
                None => return,
            };
            if visited.is_break() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}
