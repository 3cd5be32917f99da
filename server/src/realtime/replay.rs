//! Reads from the log the events that a socket has missed, and sends these events until the socket is live.

use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::feed::Delivery;
use foldwork_engine::workspace::events::EventLimit;
use foldwork_engine::workspace::feed::Item;
use foldwork_engine::workspace::recent_deliveries::DeliverySelection;
use foldwork_engine::{Error, Listener};
use serde::Deserialize;

use super::broadcast::Broadcast;
use super::hub::Hub;
use super::line::ChannelLine;

/// The maximum number and size of the events that are read in one step.
const PAGE: EventLimit = EventLimit { events: 50, bytes: 1 << 20 };
/// The maximum number of acknowledged events that are sent again for one request of a client.
const MAX_EVENTS: usize = 100;
/// The pause after an error of the store.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// A client's request to send acknowledged events again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Replay {
    /// The time from which events are sent again, in milliseconds since the Unix epoch.
    since: Option<i64>,
    /// The log position after which events are sent again.
    pub after: Option<u64>,
    /// The maximum number of events to send again, 100 by default. A number outside 1 to 100 counts as 1 or 100. The
    /// newest events are chosen.
    limit: Option<usize>,
}

/// A member that has joined a channel but is not live yet.
pub struct JoiningMember {
    pub listener: Listener,
    pub hub: Arc<Hub>,
    pub line: Arc<ChannelLine>,
    pub agent: Arc<Aggregate>,
    pub member: u64,
    /// The follower's log position when the member joined. Events up to this position are marked as replayed.
    pub joined_at: u64,
    pub replay: Option<Replay>,
}

impl JoiningMember {
    /// Sends all missed events and then makes the member live.
    pub async fn deliver(self) {
        let mut from = loop {
            match self.begin().await {
                Ok(from) => break from,
                Err(error) => self.pause(&error).await,
            }
        };
        while let Err((position, error)) = self.send_after(from).await {
            from = position;
            self.pause(&error).await;
        }
    }

    async fn pause(&self, error: &Error) {
        let (workspace, agent) = (&self.listener.record().id, &self.agent.id);
        tracing::warn!(%error, %workspace, %agent, "the missed events of an agent cannot be read");
        tokio::time::sleep(RETRY_DELAY).await;
    }

    /// Resends the acknowledged events that the client requests. Returns the log position after which the missed events
    /// begin: the agent's cursor, or the position `after` in the client's request if `after` is later.
    async fn begin(&self) -> Result<u64, Error> {
        let cursor = self.listener.cursor(&self.agent).await?;
        let Some(Replay { since, after, limit }) = self.replay else { return Ok(cursor) };
        if let Some(after) = after
            && after >= cursor
        {
            return Ok(after);
        }
        if since.is_none() && after.is_none() {
            return Ok(cursor);
        }
        let after = after.unwrap_or(self.agent.first_position);
        let again =
            DeliverySelection { after, until: cursor, since, most: limit.unwrap_or(MAX_EVENTS).clamp(1, MAX_EVENTS) };
        let newest = {
            let _turn = self.hub.readers.acquire().await;
            self.listener.acknowledged_deliveries(&self.agent, again).await?
        };
        for delivery in newest {
            self.push(&delivery, true).await;
        }
        Ok(cursor)
    }

    /// Sends the events after a log position until the member is live. An error includes the log position up to which
    /// events were sent.
    async fn send_after(&self, from: u64) -> Result<(), (u64, Error)> {
        let mut feed = self.listener.feed(&self.agent, from);
        loop {
            let page = {
                let _turn = self.hub.readers.acquire().await;
                feed.next(PAGE).await.map_err(|error| (feed.position(), error))?
            };
            for item in page.items {
                if let Item::Delivery(delivery) = item {
                    self.push(&delivery, delivery.position() <= self.joined_at).await;
                }
            }
            if !page.more && self.hub.go_live(self.agent.id.as_str(), self.member, page.position) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    async fn push(&self, delivery: &Delivery, replayed: bool) {
        // Waits for capacity in the queue. A slow socket loses no events, because unread events stay in the log.
        self.line.queue.capacity().await;
        self.line.broadcast(Broadcast::delivery(delivery, replayed));
    }
}
