//! The feed of agents: what happened to their tasks, read from the log from any position on, as it is told live.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::watch;

use super::entered::Entered;
use super::events::Limit;
use crate::core::State;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::event::Event;
use crate::model::feed::{self, Delivery};
use crate::model::id::AggregateId;

/// Places of the log that are looked at for one page, and the most events that are read for it.
const LOOK: usize = 2_048;
const READ: usize = 64;
/// How many tasks are remembered as they were after the last event that was told of them.
const REMEMBERED: usize = 4_096;
/// How often other servers' appends are looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What the feed tells.
#[derive(Debug, Clone)]
pub enum Item {
    Told(Delivery),
    /// An agent is registered no more.
    AgentDeleted(AggregateId),
}

impl Item {
    /// Bytes that it takes when it is written, roughly.
    pub fn size_bytes(&self) -> usize {
        match self {
            Item::Told(told) => told.size_bytes(),
            Item::AgentDeleted(agent) => agent.as_str().len(),
        }
    }
}

/// A page of a feed.
pub struct Page {
    /// In the order of the log.
    pub items: Vec<Item>,
    /// The position up to which the log was looked through.
    pub position: u64,
    /// There is more behind it already.
    pub more: bool,
}

/// A reader of the feed, and where it stands.
pub struct Feed {
    entered: Entered,
    /// `None`: of all agents.
    agent: Option<Arc<str>>,
    position: u64,
    head: watch::Receiver<u64>,
    known: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl Feed {
    pub(super) fn new(entered: Entered, agent: Option<Arc<str>>, after: u64) -> Feed {
        let head = entered.state().folded.head().follow();
        Feed { entered, agent, position: after, head, known: FxHashMap::default() }
    }

    /// Where the reader stands.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What comes next, which may be nothing.
    pub async fn next(&mut self, limit: Limit) -> Result<Page> {
        self.head.mark_unchanged();
        let state = self.entered.state().clone();
        state.refresh().await?;
        let found = read(&state, self.position).await?;
        let (mut items, mut bytes) = (Vec::new(), 0);
        for event in &found.events {
            if items.len() >= limit.events || bytes >= limit.bytes {
                return Ok(Page { items, position: self.position, more: true });
            }
            match self.items(&state, event).await {
                Ok(said) => {
                    bytes += said.iter().map(Item::size_bytes).sum::<usize>();
                    items.extend(said);
                }
                // What was read is told first.
                Err(_) if !items.is_empty() => return Ok(Page { items, position: self.position, more: true }),
                Err(error) => return Err(error),
            }
            self.position = event.position;
        }
        self.position = found.position;
        Ok(Page { items, position: self.position, more: self.position < state.folded.position() })
    }

    /// What an event says.
    async fn items(&mut self, state: &State, event: &Arc<Event>) -> Result<Vec<Item>> {
        if &*event.aggregate_type == AGENT {
            let is_wanted = self.agent.as_ref().is_none_or(|id| **id == *event.aggregate_id.as_str());
            let deleted = is_wanted && event.verb() == "deleted";
            return Ok(deleted.then(|| Item::AgentDeleted(event.aggregate_id.clone())).into_iter().collect());
        }
        let told = self.told(state, event).await?.into_iter();
        let wanted = told.filter(|told| self.agent.as_ref().is_none_or(|id| *id == told.agent_id));
        Ok(wanted.map(Item::Told).collect())
    }

    /// The next page that tells something, waited for until it comes or the time is over.
    pub async fn wait(&mut self, limit: Limit, wait: Duration) -> Result<Page> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let page = self.next(limit).await?;
            if !page.items.is_empty() || (!page.more && tokio::time::Instant::now() >= deadline) {
                return Ok(page);
            }
            if !page.more {
                self.changed(deadline).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns when there may be something new, or it is time.
    async fn changed(&mut self, deadline: tokio::time::Instant) {
        let is_exclusive = self.entered.state().is_exclusive();
        // Other servers' appends are not announced here: they are looked for.
        let until = if is_exclusive { deadline } else { deadline.min(tokio::time::Instant::now() + LOOK_AGAIN) };
        let _ = tokio::time::timeout_at(until, self.head.changed()).await;
    }

    async fn told(&mut self, state: &State, event: &Arc<Event>) -> Result<Vec<Delivery>> {
        let Some(definition) = state.types.get(TASK) else { return Ok(Vec::new()) };
        let resident = state.folded.get(event.aggregate_id.as_str()).filter(|task| task.version == event.version);
        let known = self.known.remove(&event.aggregate_id).filter(|task| task.version + 1 == event.version);
        if event.version > 1 && known.is_none() && !feed::may_reassign(event) {
            // Nobody else had the task: what it was before need not be read.
            if let Some(after) = resident {
                self.remember(&after);
                return Ok(feed::deliveries(event, None, &after));
            }
        }
        let before = match known {
            None if event.version > 1 => {
                let folded = state.fold_stream(&event.aggregate_id, event.version - 1, None, &definition).await?;
                Some(Arc::new(folded.ok_or_else(|| Error::not_found("task", event.aggregate_id.as_str()))?))
            }
            known => known,
        };
        let after = resident.unwrap_or_else(|| Arc::new(Aggregate::fold(before.as_deref(), event, &definition)));
        self.remember(&after);
        Ok(feed::deliveries(event, before.as_deref(), &after))
    }

    fn remember(&mut self, task: &Arc<Aggregate>) {
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(task.id.clone(), task.clone());
    }
}

/// Events that the feed looks at, and the position up to which there are no others.
struct Found {
    events: Vec<Arc<Event>>,
    position: u64,
}

async fn read(state: &State, after: u64) -> Result<Found> {
    if let Some(events) = state.folded.last_events(after, LOOK) {
        let last = events.last().map_or(after, |last| last.position);
        let wanted = |event: &Arc<Event>| matches!(&*event.aggregate_type, TASK | AGENT);
        return Ok(Found { events: events.into_iter().filter(wanted).collect(), position: last });
    }
    let head = state.folded.position();
    let mut refs = state.log.event_refs_after(after, LOOK).await?;
    refs.truncate(LOOK);
    // What is not folded yet is not told yet.
    refs.retain(|place| place.position <= head);
    let mut position = refs.last().map_or(after, |last| last.position);
    // Of whatever else is in the log nothing is read but where it stands.
    let is_wanted =
        |id: &str| state.folded.get(id).is_some_and(|aggregate| matches!(&*aggregate.aggregate_type, TASK | AGENT));
    refs.retain(|place| is_wanted(&place.aggregate_id));
    if let Some(first_left_out) = refs.get(READ) {
        position = first_left_out.position - 1;
        refs.truncate(READ);
    }
    let events = state.log.read_event_refs(&refs, None).await?;
    Ok(Found { events: events.into_iter().map(Arc::new).collect(), position })
}
