//! Follows one aggregate live: returns the events of the aggregate after a version, as soon as the events are appended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::events::{EventLimit, ReadDirection, check_version};
use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::event::Event;
use crate::model::id::AggregateId;

/// A reader that returns the events of one aggregate as soon as the events are appended. `version` is the version of
/// the last returned event.
pub struct AggregateFollower {
    reader: Reader,
    id: AggregateId,
    version: u64,
    appended: watch::Receiver<u64>,
}

impl Reader {
    /// Follows an aggregate from the first event after the version `after_version`. Fails with [`Error::NotFound`] if
    /// the stream has no events. Also fails if the last event of the stream has a version lower than `after_version`.
    pub async fn follow_aggregate(&self, id: &str, after_version: u64) -> Result<AggregateFollower> {
        let state = self.context.state();
        self.context.refresh().await?;
        let found = state.folded.get(id).ok_or_else(|| Error::not_found("aggregate", id))?;
        check_version(&found, after_version)?;
        let appended = state.folded.streams.follow(&found.id);
        Ok(AggregateFollower { reader: self.clone(), id: found.id.clone(), version: after_version, appended })
    }
}

impl AggregateFollower {
    /// Returns the next events. If no event arrives within `wait`, returns an empty list.
    pub async fn next(&mut self, limit: EventLimit, wait: Duration) -> Result<Vec<Arc<Event>>> {
        let deadline = Instant::now() + wait;
        loop {
            self.appended.mark_unchanged();
            let events = self.read(limit).await?;
            if let Some(last) = events.last() {
                self.version = last.version;
            }
            if !events.is_empty() || Instant::now() >= deadline {
                return Ok(events);
            }
            self.reader.context.state().moved(&mut self.appended, deadline).await;
        }
    }

    async fn read(&self, limit: EventLimit) -> Result<Vec<Arc<Event>>> {
        let state = self.reader.context.state();
        self.reader.context.refresh().await?;
        let Some(mut events) = state.folded.streams.after(&self.id, self.version) else {
            let page = self.reader.stream(self.id.as_str(), Some(self.version), limit, ReadDirection::Forward).await?;
            return Ok(page.items.into_iter().map(Arc::new).collect());
        };
        let mut bytes = 0;
        let within = events.iter().take(limit.events).take_while(|event| {
            bytes += event.size_bytes();
            bytes <= limit.bytes
        });
        let length = within.count().max(1);
        events.truncate(length);
        Ok(events)
    }
}
