//! Appends events to streams, and reads streams and the log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use strum::IntoStaticStr;

use super::Page;
use super::call_context::{Operation, beyond};
use super::responses::IdempotentRequest;
use super::rights::{Reader, Writer};
use crate::append::request::{Append, AppendOutcome};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::closed_set::named;
use crate::model::event::{Event, MAX_EVENTS_PER_APPEND, NewEvent};
use crate::model::id::AggregateId;
use crate::state::State;
use crate::state::stride::Stride;
use crate::store::workspace::log::EventRef;

/// A filter over the events of the log.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// The types of events. An empty set means all types. The types are a set, so that an event's type is found fast
    /// even if a client names many types.
    pub event_types: BTreeSet<String>,
    pub aggregate_type: Option<String>,
    /// The id of a project.
    pub project_id: Option<Arc<str>>,
    pub actor: Option<String>,
}

impl LogFilter {
    pub(super) fn admits(&self, event: &Event) -> bool {
        let of_type = self.event_types.is_empty() || self.event_types.contains(&*event.event_type);
        of_type
            && self.aggregate_type.as_ref().is_none_or(|name| **name == *event.aggregate_type)
            && self.project_id.as_ref().is_none_or(|id| event.project_id.as_ref() == Some(id))
            && self.actor.as_ref().is_none_or(|actor| **actor == *event.actor)
    }

    /// Returns `false` if the type or the project of the stream that `event_ref` names does not satisfy the filter. The
    /// type and the project of a stream never change, so the filter rejects all events of such a stream. Otherwise
    /// returns `true`.
    pub(super) fn admits_stream(&self, state: &State, event_ref: &EventRef) -> bool {
        if self.aggregate_type.is_none() && self.project_id.is_none() {
            return true;
        }
        let Some(stream) = state.folded.get(&event_ref.aggregate_id) else { return true };
        self.aggregate_type.as_ref().is_none_or(|name| **name == *stream.aggregate_type)
            && self.project_id.as_ref().is_none_or(|id| stream.project_id.as_ref() == Some(id))
    }
}

/// The limits of a list of events. The list ends at the limit that is reached first, but contains at least one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimit {
    pub events: usize,
    pub bytes: usize,
}

impl EventLimit {
    /// Returns a limit on the number of events only.
    pub fn events(events: usize) -> EventLimit {
        EventLimit { events, bytes: usize::MAX }
    }
}

/// A page of the log.
#[derive(Debug, Clone)]
pub struct LogPage {
    pub items: Vec<Arc<Event>>,
    /// The cursor of the next page, if there is a next page.
    pub next: Option<u64>,
    /// In a page that was read forward, the position up to which the log was read. A reader that continues after this
    /// position gets every event exactly once. In a page that was read backward, the position down to which the log was
    /// read.
    pub position: u64,
}

named!(ReadDirection);

/// The direction in which a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ReadDirection {
    #[default]
    Forward,
    Backward,
}

/// The number of examined events at which a page ends early. The last read may exceed this number by less than
/// [`Stride::MAX`] events.
pub(super) const MAX_EXAMINED_EVENTS: usize = 5_000;
/// The total size in bytes of the rejected events of one page at which the page ends early. The last read may exceed
/// this size.
pub(super) const MAX_REJECTED_BYTES: usize = 16 << 20;

/// The time that a waiting reader lets pass after a wake-up before the reader checks the log again, so that the appends
/// within this time cause only one check. The first wake-up of a request causes a check immediately. A stream that has
/// reached the end of the log also waits for this time before the next read.
pub const READ_INTERVAL: Duration = Duration::from_millis(20);

impl Writer {
    /// Appends events to one or more streams, atomically and in the given order.
    pub async fn append_events(&self, events: Vec<NewEvent>) -> Result<AppendOutcome> {
        self.append_requested(events, None).await
    }

    /// Appends events for a request that may be repeated. A repeat returns the same events.
    pub async fn append_requested(
        &self,
        events: Vec<NewEvent>,
        request: Option<&IdempotentRequest>,
    ) -> Result<AppendOutcome> {
        if events.is_empty() {
            return Err(Error::invalid_at("/events", "expected at least one event"));
        }
        if events.len() > MAX_EVENTS_PER_APPEND {
            let message = format!("expected at most {MAX_EVENTS_PER_APPEND} events, got {}", events.len());
            return Err(Error::invalid_at("/events", message));
        }
        let append = Append { request: request.cloned(), ..Append::given(self.context.actor(), events) };
        Operation::perform(self, |operation| async move { operation.appender().append(append).await }).await
    }
}

impl Reader {
    /// Returns events of one stream after a version, or before the version if the direction is backward. Fails with
    /// [`Error::NotFound`] if the stream has no events. Also fails if the direction is forward and the stream has not
    /// reached the version.
    pub async fn stream(
        &self,
        id: &str,
        after: Option<u64>,
        limit: EventLimit,
        direction: ReadDirection,
    ) -> Result<Page<Event>> {
        let state = self.context.state();
        self.context.refresh().await?;
        let head = state.folded.get(id).ok_or_else(|| Error::not_found("aggregate", id))?;
        let span = limit.events as u64;
        if let (Some(after), ReadDirection::Forward) = (after, direction) {
            check_version(&head, after)?;
        }
        let (first, last) = match direction {
            ReadDirection::Forward => {
                let first = after.unwrap_or(0).saturating_add(1);
                (first, first.saturating_add(span - 1).min(head.version))
            }
            ReadDirection::Backward => {
                let last = after.map_or(head.version, |before| before.saturating_sub(1).min(head.version));
                (last.saturating_sub(span - 1).max(1), last)
            }
        };
        let items = self.versions(&head.id, (first, last), limit, direction).await?;
        let end = items.last().map(|event| event.version);
        let next = match direction {
            ReadDirection::Forward => end.filter(|version| *version < head.version),
            ReadDirection::Backward => end.filter(|version| *version > 1),
        };
        Ok(Page { items, next })
    }

    /// Returns the events of a stream in a range of versions, within the limit.
    async fn versions(
        &self,
        id: &AggregateId,
        (mut first, mut last): (u64, u64),
        limit: EventLimit,
        direction: ReadDirection,
    ) -> Result<Vec<Event>> {
        let (mut items, mut bytes, mut stride) = (Vec::new(), 0, Stride::new(limit.events));
        while first <= last {
            let span = stride.events() as u64 - 1;
            let (from, to) = match direction {
                ReadDirection::Forward => (first, first.saturating_add(span).min(last)),
                ReadDirection::Backward => (last.saturating_sub(span).max(first), last),
            };
            let mut events = self.context.state().db.read_stream(id, from, to).await?;
            if events.is_empty() {
                break;
            }
            stride.adapt(&events);
            match direction {
                ReadDirection::Forward => first = to + 1,
                ReadDirection::Backward => {
                    events.reverse();
                    last = from - 1;
                }
            }
            for event in events {
                bytes += event.size_bytes();
                if bytes > limit.bytes && !items.is_empty() {
                    return Ok(items);
                }
                items.push(event);
            }
        }
        Ok(items)
    }

    /// Returns the version that a stream had at a position of the log. The version is 0 before the stream's first
    /// event.
    pub async fn version_at(&self, id: &str, position: u64) -> Result<u64> {
        let state = self.context.state();
        self.context.refresh().await?;
        let Some(head) = state.folded.get(id) else { return Ok(0) };
        state.version_at(&head, position).await
    }

    /// Returns the project id for a filter that names the project by id or slug.
    pub async fn project_filter(&self, id_or_slug: &str) -> Result<Arc<str>> {
        self.context.refresh().await?;
        let found = self.context.named_project(id_or_slug)?;
        Ok(found.id.text())
    }

    /// Fails if the log has not reached a position.
    pub async fn check_position(&self, position: u64) -> Result<()> {
        self.context.check_position(position).await
    }

    /// Returns events of the log after a position, which must not be after the log's end. If no event matches the
    /// filter, waits up to `wait` for a matching event.
    pub async fn log(&self, after: u64, limit: EventLimit, filter: &LogFilter, wait: Duration) -> Result<LogPage> {
        let state = self.context.state();
        self.check_position(after).await?;
        let mut head = state.folded.head.follow();
        let deadline = tokio::time::Instant::now() + wait;
        let (mut from, mut in_vain) = (after, false);
        loop {
            head.mark_unchanged();
            self.context.refresh().await?;
            let page = self.log_page(from, limit, filter).await?;
            if !page.items.is_empty() || tokio::time::Instant::now() >= deadline {
                return Ok(page);
            }
            // The filter has rejected the events up to `page.position`, so the next round starts there.
            from = page.position;
            if page.next.is_some() {
                tokio::task::yield_now().await;
                continue;
            }
            state.moved(&mut head, deadline).await;
            if in_vain {
                tokio::time::sleep_until(deadline.min(tokio::time::Instant::now() + READ_INTERVAL)).await;
            }
            in_vain = true;
        }
    }

    async fn log_page(&self, after: u64, limit: EventLimit, filter: &LogFilter) -> Result<LogPage> {
        let state = self.context.state();
        let head = state.folded.position();
        let mut page = LogPage { items: Vec::new(), next: None, position: after };
        let (mut examined, mut rejected_bytes, mut bytes, mut stride) = (0, 0, 0, Stride::new(limit.events));
        'reading: while page.items.len() < limit.events
            && page.position < head
            && examined < MAX_EXAMINED_EVENTS
            && rejected_bytes < MAX_REJECTED_BYTES
        {
            let events = state.events_after(page.position, stride.events()).await?;
            if events.is_empty() {
                break;
            }
            examined += events.len();
            stride.adapt(events.iter().map(|event| &**event));
            for event in events {
                let size = event.size_bytes();
                if filter.admits(&event) {
                    let is_full = page.items.len() >= limit.events || bytes + size > limit.bytes;
                    if is_full && !page.items.is_empty() {
                        break 'reading;
                    }
                    bytes += size;
                    page.position = event.position;
                    page.items.push(event);
                } else {
                    rejected_bytes += size;
                    page.position = event.position;
                }
            }
        }
        page.next = (page.position < head).then_some(page.position);
        Ok(page)
    }

    /// Returns the number of events read from the store since the workspace was opened.
    pub fn events_read(&self) -> u64 {
        self.context.state().db.events_read()
    }

    /// Returns the position of the last event of the log that this server has read.
    pub fn position(&self) -> u64 {
        self.context.state().folded.position()
    }

    /// Returns the position up to which the data derived from the log is current.
    pub async fn consumed_position(&self) -> Result<u64> {
        let checkpoint = self.context.state().db.checkpoint(crate::state::NODES).await?;
        Ok(checkpoint.min(self.context.state().graph_progress.position()))
    }

    /// Waits until plugins have been called for every event of the log, and edges match the definitions and the enabled
    /// plugins.
    pub async fn worked(&self) {
        let state = self.context.state();
        let (mut worked, mut settled) = (state.graph_progress.follow(), state.settled.redefinitions.follow());
        // Waiting never fails, because the senders live as long as the workspace.
        let _ = settled.wait_for(|settled| *settled >= state.types.redefined.position()).await;
        let _ = worked.wait_for(|position| *position >= self.position()).await;
        let _ = state.settled.remaining.follow().wait_for(|remaining| *remaining == 0).await;
    }

    /// Returns a receiver of the position of the log's last event. The position changes when events are appended.
    pub fn follow(&self) -> tokio::sync::watch::Receiver<u64> {
        self.context.state().folded.head.follow()
    }
}

/// Fails if a stream has not reached a version.
pub(super) fn check_version(stream: &Aggregate, version: u64) -> Result<()> {
    match stream.version {
        last if version > last => {
            Err(beyond(format!("version {version} does not exist yet: aggregate '{}' is at version {last}", stream.id)))
        }
        _ => Ok(()),
    }
}
