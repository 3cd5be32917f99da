//! The last events of the log, in memory, for whoever follows it closely.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::event::Event;

/// Events kept, by bytes and by number; whoever lags further behind reads the store.
const MAX_BYTES: usize = 16 << 20;
const MAX_EVENTS: usize = 20_000;

/// Bytes of an event here, with the text in which it is sent to those who follow.
fn size_bytes(event: &Event) -> usize {
    2 * event.size_bytes()
}

/// A window on the end of the log.
#[derive(Default)]
pub struct Tail {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl Tail {
    /// Adds events that follow those already here.
    pub fn extend(&self, events: &[Arc<Event>]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let follows = inner.events.back().is_none_or(|last| last.position + 1 == event.position);
            if !follows {
                inner.events.clear();
                inner.bytes = 0;
            }
            inner.bytes += size_bytes(event);
            inner.events.push_back(event.clone());
        }
        while inner.bytes > MAX_BYTES || inner.events.len() > MAX_EVENTS {
            let Some(oldest) = inner.events.pop_front() else { break };
            inner.bytes = inner.bytes.saturating_sub(size_bytes(&oldest));
        }
    }

    /// Bytes of the events here.
    pub fn size_bytes(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Up to `limit` events after a position; `None` where the window begins later than that.
    pub fn after(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let first = inner.events.front()?.position;
        let skip = usize::try_from((position + 1).checked_sub(first)?).ok()?;
        Some(inner.events.iter().skip(skip).take(limit).cloned().collect())
    }
}
