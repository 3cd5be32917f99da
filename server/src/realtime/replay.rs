//! What a socket has missed of a channel, read from the log until the socket is told live.

use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::feed::Delivery;
use foldwork_engine::workspace::events::Limit;
use foldwork_engine::workspace::feed::Item;
use foldwork_engine::workspace::told_again::Again;
use foldwork_engine::{Error, Listener};
use serde::Deserialize;

use super::broadcast::Broadcast;
use super::hub::Hub;
use super::line::Line;

/// Events read for one turn.
const PAGE: Limit = Limit { events: 50, bytes: 1 << 20 };
/// The most that are told once more, of those that were acknowledged.
const MOST: usize = 100;
/// How long a reader pauses where the store does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// What a client asks to be told once more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Replay {
    /// What happened since, milliseconds since the epoch.
    since: Option<i64>,
    /// What happened after a position: the client has what is before.
    after: Option<u64>,
    /// The newest so many; 1 to 100.
    limit: Option<usize>,
}

/// Somebody who joined a channel and is to be told what it has missed.
pub struct Missed {
    pub listener: Listener,
    pub hub: Arc<Hub>,
    pub line: Arc<Line>,
    pub agent: Arc<Aggregate>,
    pub member: u64,
    /// Where the follower stood when it joined: what is told up to here happened before.
    pub joined_at: u64,
    pub replay: Option<Replay>,
}

impl Missed {
    /// Tells everything that is missing, and makes the socket live.
    pub async fn tell(self) {
        let mut from = loop {
            match self.begin().await {
                Ok(from) => break from,
                Err(error) => self.pause(&error).await,
            }
        };
        while let Err((position, error)) = self.tell_after(from).await {
            from = position;
            self.pause(&error).await;
        }
    }

    async fn pause(&self, error: &Error) {
        tracing::warn!(%error, agent = %self.agent.id, "what an agent has missed cannot be read");
        tokio::time::sleep(PAUSE).await;
    }

    /// Tells once more what was asked for, and returns the position after which nothing was told yet.
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
        let again = Again { after, until: cursor, since, most: limit.unwrap_or(MOST).clamp(1, MOST) };
        let newest = {
            let _turn = self.hub.readers.acquire().await;
            self.listener.told_again(&self.agent, again).await?
        };
        for told in newest {
            self.push(&told, true).await;
        }
        Ok(cursor)
    }

    /// Tells what happened after a position, until the socket is live. Where that fails, it tells how far it came.
    async fn tell_after(&self, from: u64) -> Result<(), (u64, Error)> {
        let mut feed = self.listener.feed(&self.agent, from);
        loop {
            let page = {
                let _turn = self.hub.readers.acquire().await;
                feed.next(PAGE).await.map_err(|error| (feed.position(), error))?
            };
            for item in page.items {
                if let Item::Delivery(told) = item {
                    self.push(&told, told.position() <= self.joined_at).await;
                }
            }
            if !page.more && self.hub.go_live(self.agent.id.as_str(), self.member, page.position) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    async fn push(&self, told: &Delivery, replayed: bool) {
        // The log does not forget: whoever reads slowly is told slowly.
        self.line.queue.room().await;
        self.line.tell(Broadcast::delivery(told, replayed));
    }
}
