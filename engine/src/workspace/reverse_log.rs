//! Reads the log from its end to its beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use super::events::{EventLimit, LogFilter, LogPage, MAX_EXAMINED_EVENTS, MAX_REJECTED_BYTES};
use super::rights::Reader;
use crate::error::Result;
use crate::model::event::Event;
use crate::state::State;
use crate::state::stride::Stride;
use crate::store::workspace::log::{EventRef, take_part};

/// The number of event references in the first read. The read may return more references, because a commit record lists
/// all events of the commit.
const FIRST_LISTED: u64 = 64;
/// The maximum number of event references that one read requests. Each read requests more references than the previous
/// read, up to this maximum.
const MAX_LISTED: u64 = 2_048;
/// The number of examined references at which a page ends early. References to events of streams that cannot match the
/// filter are left out without reading the events.
const MAX_EXAMINED_REFS: usize = 50_000;

impl Reader {
    /// Returns events of the log before a position, newest first. `None` begins with the last event.
    pub async fn log_before(&self, before: Option<u64>, limit: EventLimit, filter: &LogFilter) -> Result<LogPage> {
        let state = self.context.state();
        self.context.refresh().await?;
        let end = state.folded.position().saturating_add(1);
        let mut back = BackwardCursor::new(before.unwrap_or(end).min(end));
        let mut page = LogPage { items: Vec::new(), next: None, position: back.before };
        let (mut examined, mut rejected_bytes, mut bytes, mut stride) = (0, 0, 0, Stride::new(limit.events));
        'reading: while page.items.len() < limit.events
            && examined < MAX_EXAMINED_EVENTS
            && back.examined < MAX_EXAMINED_REFS
            && rejected_bytes < MAX_REJECTED_BYTES
        {
            let Some(events) = back.next(state, filter, stride.events()).await? else {
                page.position = back.before;
                break;
            };
            examined += events.len();
            stride.adapt(events.iter().map(|event| &**event));
            for event in events {
                let (position, size) = (event.position, event.size_bytes());
                if filter.admits(&event) {
                    let is_full = page.items.len() >= limit.events || bytes + size > limit.bytes;
                    if is_full && !page.items.is_empty() {
                        break 'reading;
                    }
                    bytes += size;
                    page.items.push(event);
                } else {
                    rejected_bytes += size;
                }
                page.position = position;
            }
            // The filter left out the references between the last read event and the next listed event, so the events
            // at these positions count as examined.
            if page.items.len() < limit.events {
                page.position = page.position.min(back.examined_down_to());
            }
        }
        page.next = (page.position > 1).then_some(page.position);
        Ok(page)
    }
}

/// A place in the log, from which events are read toward the beginning.
struct BackwardCursor {
    /// A position in the log. The events before this position are not listed yet.
    before: u64,
    /// The listed references of events that may match, oldest first.
    refs: VecDeque<EventRef>,
    span: u64,
    examined: usize,
}

impl BackwardCursor {
    fn new(before: u64) -> BackwardCursor {
        BackwardCursor { before: before.max(1), refs: VecDeque::new(), span: FIRST_LISTED, examined: 0 }
    }

    /// Returns the next events, newest first. The list may be empty although more events follow. Returns `None` at the
    /// beginning of the log.
    async fn next(&mut self, state: &State, filter: &LogFilter, most: usize) -> Result<Option<Vec<Arc<Event>>>> {
        if self.refs.is_empty() {
            if self.before <= 1 {
                return Ok(None);
            }
            let after = self.before.saturating_sub(1 + most as u64);
            if let Some(mut events) = state.folded.last_events(after, most) {
                events.retain(|event| event.position < self.before);
                events.reverse();
                self.before = after + 1;
                return Ok(Some(events));
            }
            self.list(state, filter).await?;
        }
        // The newest references are read first, so they are taken from the end of the list, in reverse order.
        let mut last = self.refs.split_off(self.refs.len().saturating_sub(most));
        last.make_contiguous().reverse();
        let part = take_part(&mut last, most, Stride::BYTES);
        self.refs.extend(last.into_iter().rev());
        let mut events = state.db.read_event_refs(&part, None).await?;
        events.reverse();
        Ok(Some(events.into_iter().map(Arc::new).collect()))
    }

    async fn list(&mut self, state: &State, filter: &LogFilter) -> Result<()> {
        let after = self.before.saturating_sub(1 + self.span);
        let count = usize::try_from(self.before - 1 - after).unwrap_or(usize::MAX);
        let mut listed = state.db.event_refs_after(after, count).await?;
        listed.retain(|event_ref| event_ref.position < self.before && filter.admits_stream(state, event_ref));
        self.examined = self.examined.saturating_add(count);
        self.refs = listed.into();
        self.before = after + 1;
        self.span = MAX_LISTED.min(self.span * 2);
        Ok(())
    }

    /// Returns the lowest examined position. The filter has left out, or the cursor has returned, every event from this
    /// position up to the start of the cursor.
    fn examined_down_to(&self) -> u64 {
        self.refs.back().map_or(self.before, |next| next.position + 1)
    }
}
