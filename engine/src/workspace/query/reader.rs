//! The data that the tables of one query share: the workspace at the query's moment, and the streams of a scan.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::PROJECT;
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::pipeline::context::Context;
use crate::pipeline::{self, StreamFilter};
use crate::resident::Snapshot;
use crate::state::State;
use crate::state::stream_pages::StreamPages;
use crate::state::types::Definitions;

/// The source of all tables of one query. All tables read the same state of the workspace.
pub struct QueryReader<'a> {
    pub state: &'a Arc<State>,
    pub handle: &'a Handle,
    pub context: &'a Context<'a>,
    pub snapshot: Snapshot,
    /// The position at which the log ends for this query.
    pub position: u64,
    pub definitions: Arc<Definitions>,
    pub failed: RefCell<Option<Error>>,
}

impl QueryReader<'_> {
    /// Returns an aggregate from the query's snapshot, which may be later than the query's moment.
    pub fn state(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.state.folded.get_in(&self.snapshot, id)
    }

    /// Returns an aggregate as of the query's moment. Folds the aggregate from the log if it has changed since that
    /// moment. The enrichment facts are always the current facts.
    pub fn state_then(&self, id: &str) -> Result<Option<Arc<Aggregate>>> {
        self.state(id).map_or(Ok(None), |now| self.state_at(now))
    }

    /// Returns the state as of the query's moment, like [`QueryReader::state_then`], given the aggregate's current
    /// state.
    pub fn state_at(&self, now: Arc<Aggregate>) -> Result<Option<Arc<Aggregate>>> {
        if now.position <= self.position {
            return Ok(Some(now));
        }
        let version = self.handle.block_on(self.state.version_at(&now, self.position))?;
        let then = self.fold(&now, version, None)?;
        Ok(then.map(|then| Arc::new(Aggregate { facts: now.facts.clone(), ..then })))
    }

    /// Folds an aggregate from the log, up to a version. With `until`, leaves out the events that occurred after this
    /// time. Returns `None` if no events are left to fold, or if the type of the aggregate is not defined.
    pub fn fold(&self, now: &Aggregate, version: u64, until: Option<i64>) -> Result<Option<Aggregate>> {
        let Some(definition) = self.definitions.get(&now.aggregate_type) else { return Ok(None) };
        let mut pages = StreamPages::new(now.id.clone(), 1..=version);
        let mut folding: Option<StreamFold> = None;
        while let Some(events) = self.handle.block_on(pages.next(&self.state.db))? {
            self.context.check_time()?;
            for event in events.iter().filter(|event| until.is_none_or(|until| event.occurred_at <= until)) {
                folding.get_or_insert_with(|| StreamFold::new(event)).fold(event, definition);
            }
        }
        let Some(then) = folding.map(StreamFold::into_aggregate) else { return Ok(None) };
        self.context.charge(then.size_bytes())?;
        Ok(Some(then))
    }

    /// Converts an error to the error that ends the pipeline. An error from outside the pipeline is stored in `failed`,
    /// and a timeout is returned in its place.
    pub fn ended(&self, error: Error) -> pipeline::error::Error {
        match error {
            Error::Pipeline(error) => error,
            other => {
                self.value_of::<()>(Err(other));
                self.context.timeout()
            }
        }
    }

    /// Returns the value of a result. If the result is an error, stores the error, unless an earlier error is already
    /// stored, and returns `None`. An iterator that returns this `None` ends.
    pub fn value_of<T>(&self, result: Result<T, impl Into<Error>>) -> Option<T> {
        let stored = result.map_err(|error| {
            self.failed.borrow_mut().get_or_insert(error.into());
        });
        stored.ok()
    }
}

/// Returns the id of the project with the slug `text`. Returns `None` if no project has this slug, or if `text` is the
/// id of an existing project. An id of a deleted project or of an aggregate of another type does not count as the id of
/// an existing project.
pub fn project_of_slug(state: &State, text: &str) -> Option<Arc<str>> {
    let is_other = |found: Arc<Aggregate>| &*found.aggregate_type != PROJECT || found.deleted;
    let found = state.folded.by_slug(PROJECT, None, text);
    found.first().filter(|_| state.folded.get(text).is_none_or(is_other)).map(AggregateId::text)
}

/// The streams that a scan reads.
pub struct StreamScan<'a> {
    pub filter: &'a StreamFilter,
    /// The fields that the filter over states reads, if they can be determined.
    pub filter_fields: Option<BTreeSet<Arc<str>>>,
}

impl<'a> StreamScan<'a> {
    pub fn new(filter: &'a StreamFilter) -> StreamScan<'a> {
        StreamScan { filter, filter_fields: None }
    }

    /// Returns whether the scan reads every stream.
    pub fn is_all(&self) -> bool {
        let StreamFilter { aggregate_ids, aggregate_types, project_ids, filter } = self.filter;
        aggregate_ids.is_none() && aggregate_types.is_none() && project_ids.is_none() && filter.is_none()
    }

    /// Returns whether the scan reads the stream of an aggregate.
    pub fn admits_stream(&self, stream: &Aggregate, context: &Context) -> pipeline::error::Result<bool> {
        self.admits(stream.id.as_str(), &stream.aggregate_type, stream.project_id.as_deref(), context)
    }

    /// Returns whether the scan reads the stream with this id, type and project.
    pub fn admits(
        &self,
        id: &str,
        aggregate_type: &str,
        project_id: Option<&str>,
        context: &Context,
    ) -> pipeline::error::Result<bool> {
        let among = |set: &Option<Vec<Arc<str>>>, value: Option<&str>| {
            set.as_ref().is_none_or(|set| set.iter().any(|known| Some(&**known) == value))
        };
        let StreamFilter { aggregate_ids, aggregate_types, project_ids, filter } = self.filter;
        if !among(aggregate_ids, Some(id))
            || !among(aggregate_types, Some(aggregate_type))
            || !among(project_ids, project_id)
        {
            return Ok(false);
        }
        let Some(filter) = filter else { return Ok(true) };
        let row = Object::from_iter([
            ("aggregate_id", Value::from(id)),
            ("aggregate_type", Value::from(aggregate_type)),
            ("project_id", Value::from(project_id)),
        ]);
        filter.matches_row(&row.into(), context)
    }
}
