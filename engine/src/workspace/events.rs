//! Events: appending them to streams and reading the log.

use std::sync::Arc;
use std::time::Duration;

use super::Page;
use super::answers::RequestId;
use super::entered::Operation;
use super::rights::{Reader, Writer};
use crate::core::append::{Append, Appended};
use crate::error::{Error, Result};
use crate::model::event::{Event, MAX_EVENTS_PER_APPEND, NewEvent};

/// Which events of the log a reader wants.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    pub event_types: Vec<String>,
    pub aggregate_type: Option<String>,
}

impl LogFilter {
    fn admits(&self, event: &Event) -> bool {
        let of_type = self.event_types.is_empty() || self.event_types.iter().any(|name| **name == *event.event_type);
        of_type && self.aggregate_type.as_ref().is_none_or(|name| **name == *event.aggregate_type)
    }
}

/// Which way a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Forward,
    Backward,
}

/// Events looked at for one page; a filter that admits few of them gets a shorter page and goes on from there.
const LOOK: usize = 5_000;

impl Writer {
    /// Appends events, over one stream or several, all or none, in their order.
    pub async fn append_events(&self, events: Vec<NewEvent>) -> Result<Appended> {
        self.append_requested(events, None).await
    }

    /// Appends events for a request that may come again: its events then get the same ids.
    pub async fn append_requested(&self, mut events: Vec<NewEvent>, request: Option<&RequestId>) -> Result<Appended> {
        if events.is_empty() {
            return Err(Error::invalid_at("/events", "expected at least one event"));
        }
        if events.len() > MAX_EVENTS_PER_APPEND {
            let message = format!("{} events; allowed are at most {MAX_EVENTS_PER_APPEND}", events.len());
            return Err(Error::invalid_at("/events", message));
        }
        if let Some(request) = request {
            for (index, event) in events.iter_mut().enumerate().filter(|(_, event)| event.event_id.is_none()) {
                event.event_id = Some(self.entered.derived_id(request, &format!("event/{index}")));
            }
        }
        let append = Append {
            event_ids: events.iter().filter_map(|event| event.event_id.as_deref().map(Arc::from)).collect(),
            size_bytes: events.iter().map(NewEvent::size_bytes).sum(),
            decide: Box::new(move |_| Ok(events.clone())),
            actor: self.entered.actor(),
            managed: false,
        };
        Operation::perform(self, |operation| async move { operation.appender().append(append).await }).await
    }
}

impl Reader {
    /// Events of one stream after a version (before it, backwards). 404 for a stream without events.
    pub async fn stream(
        &self,
        id: &str,
        after: Option<u64>,
        limit: usize,
        direction: Direction,
    ) -> Result<Page<Event>> {
        let state = self.entered.state();
        state.refresh().await?;
        let head = state.folded.get(id).ok_or_else(|| Error::not_found("aggregate", id))?;
        let span = limit as u64;
        let (first, last) = match direction {
            Direction::Forward => {
                let first = after.unwrap_or(0).saturating_add(1);
                (first, first.saturating_add(span - 1).min(head.version))
            }
            Direction::Backward => {
                let last = after.map_or(head.version, |before| before.saturating_sub(1).min(head.version));
                (last.saturating_sub(span - 1).max(1), last)
            }
        };
        let mut items = state.log.read_stream(&head.id, first, last).await?;
        let next = match direction {
            Direction::Forward => (last < head.version && !items.is_empty()).then_some(last),
            Direction::Backward => {
                items.reverse();
                (first > 1 && !items.is_empty()).then_some(first)
            }
        };
        Ok(Page { items, next })
    }

    /// Events of the log after a position. With `wait`, an empty answer is held back until there are some.
    pub async fn log(&self, after: u64, limit: usize, filter: &LogFilter, wait: Duration) -> Result<Page<Arc<Event>>> {
        let state = self.entered.state();
        let mut head = state.folded.head().follow();
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            head.mark_unchanged();
            state.refresh().await?;
            let page = self.log_page(after, limit, filter).await?;
            if !page.items.is_empty() || tokio::time::Instant::now() >= deadline {
                return Ok(page);
            }
            // Other servers' appends are not announced here: they are looked for.
            let look_again = if state.is_exclusive() {
                deadline
            } else {
                deadline.min(tokio::time::Instant::now() + Duration::from_millis(200))
            };
            let _ = tokio::time::timeout_at(look_again, head.changed()).await;
        }
    }

    async fn log_page(&self, after: u64, limit: usize, filter: &LogFilter) -> Result<Page<Arc<Event>>> {
        let state = self.entered.state();
        let head = state.folded.position();
        let (mut position, mut items, mut looked) = (after, Vec::new(), 0);
        while items.len() < limit && position < head && looked < LOOK {
            let events = state.events_after(position, limit.max(64)).await?;
            let Some(last) = events.last() else { break };
            looked += events.len();
            position = last.position;
            for event in events.into_iter().filter(|event| filter.admits(event)) {
                if items.len() == limit {
                    position = items.last().map_or(after, |last: &Arc<Event>| last.position);
                    break;
                }
                items.push(event);
            }
        }
        Ok(Page { items, next: (position < head).then_some(position) })
    }

    /// Position of the log's last event.
    pub fn position(&self) -> u64 {
        self.entered.state().folded.position()
    }

    /// Position up to which what is derived from the log stands.
    pub async fn consumed_position(&self) -> Result<u64> {
        let written = self.entered.state().log.checkpoint(crate::core::NODES).await?;
        Ok(written.min(self.entered.state().graph_progress.position()))
    }

    /// Returns when plugins have been called for every event of the log.
    pub async fn worked(&self) {
        let mut worked = self.entered.state().graph_progress.follow();
        // The sender lives as long as the workspace.
        let _ = worked.wait_for(|position| *position >= self.position()).await;
    }

    /// Wakes when events have been appended.
    pub fn follow(&self) -> tokio::sync::watch::Receiver<u64> {
        self.entered.state().folded.head().follow()
    }
}
