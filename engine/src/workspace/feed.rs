//! The feeds of agents, which report the changes to the agents' tasks. A feed can be read after any position of the
//! log. The items are the same as the items that are delivered live.
//!
//! `model/feed.rs` turns an event of a task, with the task before and after the event, into deliveries. Near the log's
//! end the events come from memory (`state/feeds.rs`). Earlier events of an agent's feed are found through the `feed`
//! records. The transaction that appends an event also writes the event's `feed` records, with the agent and the
//! position as the key. The cost of a read after an absence therefore depends on the items that the agent missed, not
//! on the growth of the log.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::watch;

use super::call_context::CallContext;
use super::events::EventLimit;
use crate::error::{Error, Result};
use crate::model::agent::is_agent;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::event::Event;
use crate::model::feed::{self, Delivery};
use crate::model::id::AggregateId;
use crate::state::State;
use crate::store::workspace::log::EventRef;

/// The maximum number of events per page that come from memory, and of log positions per scan of the log.
const POSITIONS_PER_PAGE: usize = 2_048;
/// The maximum number of events of the feed that are read from the store per page. Earlier events of the tasks, which
/// may be needed for the earlier states, are not counted.
const EVENTS_PER_PAGE: usize = 64;
/// The maximum number of tasks in the cache of a feed. The cache contains the state of each task after the last event
/// that the feed has read.
const REMEMBERED: usize = 4_096;

/// An item of the feed.
#[derive(Debug, Clone)]
pub enum Item {
    Delivery(Delivery),
    /// The agent with this id was deleted.
    AgentDeleted(AggregateId),
}

impl Item {
    /// Returns the approximate size of the serialized item, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            Item::Delivery(delivery) => delivery.size_bytes(),
            Item::AgentDeleted(agent) => agent.as_str().len(),
        }
    }
}

/// A page of a feed.
pub struct FeedBatch {
    /// The items in the order of the log.
    pub items: Vec<Item>,
    /// The position up to which the log was read.
    pub position: u64,
    /// Whether the log already contains events after `position`, which may cause further items.
    pub more: bool,
}

/// A reader of a feed, at a position of the log.
pub struct Feed {
    context: CallContext,
    /// The id of the agent whose feed is read. `None` means all agents.
    agent: Option<Arc<str>>,
    position: u64,
    /// The receiver that changes when the feed has a new item.
    concerned: watch::Receiver<u64>,
    known: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl Feed {
    pub(super) fn new(context: CallContext, agent: Option<Arc<str>>, after: u64) -> Feed {
        let concerned = context.state().folded.feeds.follow(agent.as_ref());
        Feed { context, agent, position: after, concerned, known: FxHashMap::default() }
    }

    /// Returns the id of the agent whose feed is read. `None` means all agents.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Returns the position of the reader.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether the agent of the feed is deleted. After the deletion, the feed gets only the items that report
    /// the handover of the agent's open tasks. A feed of all agents never ends.
    pub fn has_ended(&self) -> bool {
        let resident = &self.context.state().folded;
        self.agent.as_ref().is_some_and(|id| !resident.get(id).is_some_and(|agent| is_agent(&agent)))
    }

    /// Returns the next page, which may be empty.
    pub async fn next(&mut self, limit: EventLimit) -> Result<FeedBatch> {
        self.concerned.mark_unchanged();
        let state = self.context.state().clone();
        self.context.refresh().await?;
        let (events, position) = read(&state, self.agent.as_deref(), self.position).await?;
        let (mut items, mut bytes) = (Vec::new(), 0);
        for event in &events {
            if items.len() >= limit.events || bytes >= limit.bytes {
                return Ok(FeedBatch { items, position: self.position, more: true });
            }
            match self.items(&state, event).await {
                Ok(new_items) => {
                    bytes += new_items.iter().map(Item::size_bytes).sum::<usize>();
                    items.extend(new_items);
                }
                // Returns the items that were read before the error. The next call reads the failed event again.
                Err(_) if !items.is_empty() => return Ok(FeedBatch { items, position: self.position, more: true }),
                Err(error) => return Err(error),
            }
            self.position = event.position;
        }
        self.position = position;
        Ok(FeedBatch { items, position: self.position, more: self.position < state.folded.position() })
    }

    /// Returns the items for one event.
    async fn items(&mut self, state: &State, event: &Arc<Event>) -> Result<Vec<Item>> {
        if &*event.aggregate_type == AGENT {
            let is_wanted = self.agent.as_ref().is_none_or(|id| **id == *event.aggregate_id.as_str());
            let deleted = is_wanted && event.verb() == "deleted";
            return Ok(deleted.then(|| Item::AgentDeleted(event.aggregate_id.clone())).into_iter().collect());
        }
        let deliveries = self.deliveries(state, event).await?.into_iter();
        let own = deliveries.filter(|delivery| self.agent.as_ref().is_none_or(|id| *id == delivery.agent_id));
        Ok(own.map(Item::Delivery).collect())
    }

    /// Returns the next page with at least one item. If no item arrives within `wait`, returns an empty page.
    pub async fn wait(&mut self, limit: EventLimit, wait: Duration) -> Result<FeedBatch> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let page = self.next(limit).await?;
            if !page.items.is_empty() || (!page.more && tokio::time::Instant::now() >= deadline) {
                return Ok(page);
            }
            if !page.more {
                self.context.state().moved(&mut self.concerned, deadline).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn deliveries(&mut self, state: &State, event: &Arc<Event>) -> Result<Vec<Delivery>> {
        let Some(definition) = state.types.get(TASK) else { return Ok(Vec::new()) };
        let resident = state.folded.get(event.aggregate_id.as_str()).filter(|task| task.version == event.version);
        let known = self.known.remove(&event.aggregate_id).filter(|task| task.version + 1 == event.version);
        if event.version > 1 && known.is_none() && !feed::may_reassign(event) {
            // The event does not change the assignee, so the earlier state of the task is not needed.
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

/// Reads the next events that may add items to the feed of `agent`, or to any feed if `agent` is `None`. Starts after
/// the position `after` of the log. Also returns the position up to which the result contains all such events.
async fn read(state: &State, agent: Option<&str>, after: u64) -> Result<(Vec<Arc<Event>>, u64)> {
    let head = state.folded.position();
    if after >= head {
        return Ok((Vec::new(), after));
    }
    if let Some(found) = state.folded.feeds.after(after, agent, POSITIONS_PER_PAGE) {
        return Ok(found);
    }
    // Events after `head` are not folded yet, so they are not delivered yet.
    let (mut refs, mut position) = match agent {
        Some(agent) if after >= state.feed_begin => {
            let found = state.db.read_feed(agent, after, head).await?;
            (found.events, found.position)
        }
        _ => scan_log(state, after, head).await?,
    };
    if let Some(first_left_out) = refs.get(EVENTS_PER_PAGE) {
        position = first_left_out.position - 1;
        refs.truncate(EVENTS_PER_PAGE);
    }
    let events = state.db.read_event_refs(&refs, None).await?;
    Ok((events.into_iter().map(Arc::new).collect(), position))
}

/// Scans the next part of the log. Returns the references to the events of tasks and agents, and the position up to
/// which the log was scanned.
async fn scan_log(state: &State, after: u64, head: u64) -> Result<(Vec<EventRef>, u64)> {
    let mut refs = state.db.event_refs_after(after, POSITIONS_PER_PAGE).await?;
    refs.truncate(POSITIONS_PER_PAGE);
    refs.retain(|event| event.position <= head);
    let position = refs.last().map_or(after, |last| last.position);
    let is_wanted =
        |id: &str| state.folded.get(id).is_some_and(|aggregate| matches!(&*aggregate.aggregate_type, TASK | AGENT));
    refs.retain(|event| is_wanted(&event.aggregate_id));
    Ok((refs, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::engine::Engine;
    use crate::mailbox::person::TaskCommand;
    use crate::model::event::StreamExpectation;
    use crate::model::facts::Assignee;
    use crate::model::task::view::TaskView;
    use crate::state::EngineSettings;
    use crate::state::plugins::Plugins;
    use crate::store::Store;
    use crate::workspace::agents::NewAgent;
    use crate::workspace::mailbox::tasks::NewTask;
    use crate::workspace::rights::{Listener, Writer};

    const ALL: EventLimit = EventLimit { events: usize::MAX, bytes: usize::MAX };

    async fn engine(store: Store) -> Arc<Engine> {
        let plugins = Plugins::none().expect("no plugins");
        Engine::open(store, Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
    }

    async fn enter(engine: &Engine, key: &str) -> (Writer, Listener) {
        let caller = engine.authenticate(key).await.expect("a caller");
        let writer = engine.enter(caller).await.expect("a right");
        (writer, engine.listen(key).await.expect("a right"))
    }

    async fn agent(writer: &Writer, name: &str) -> Arc<Aggregate> {
        let new = NewAgent { name: name.into(), ..NewAgent::default() };
        writer.create_agent(new).await.expect("registered").0.agent
    }

    async fn task(writer: &Writer, agent: &Aggregate) -> Arc<Aggregate> {
        let assignee = Some(Assignee::Agent(agent.id.text()));
        let new = NewTask { title: "A task".into(), assignee, ..NewTask::default() };
        writer.create_task(new).await.expect("made").0
    }

    async fn assign(writer: &Writer, task: &Aggregate, agent: &Aggregate) {
        let command = TaskCommand::Assign { assignee: Some(Assignee::Agent(agent.id.text())), due_at: None };
        writer.act_on_task(task.id.as_str(), command, StreamExpectation::Any).await.expect("assigned");
    }

    /// Reads a whole feed, `events` items at a time.
    async fn read(mut feed: Feed, events: usize) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let page = feed.next(EventLimit { events, ..ALL }).await.expect("a page");
            lines.extend(page.items.into_iter().map(|item| match item {
                Item::Delivery(delivery) => {
                    let (event, task) = (&delivery.event, TaskView::from(&*delivery.task));
                    let sent = (&event.event_id, event.position, &event.event_type, &event.payload, task);
                    format!("{} {} {sent:?}", delivery.agent_id, delivery.news.name())
                }
                Item::AgentDeleted(agent) => format!("{agent} deleted"),
            }));
            if !page.more {
                return lines;
            }
        }
    }

    #[tokio::test]
    async fn a_feed_is_the_same_from_memory_and_from_the_store() {
        let store = Store::connect("mem://").await.expect("a store");
        let here = engine(store.share()).await;
        let key = here.first_start(None).await.expect("started").expect("a new store").key;
        let (writer, listener) = enter(&here, &key).await;
        let (one, two) = (agent(&writer, "one").await, agent(&writer, "two").await);
        for number in 0..20 {
            let task = task(&writer, &one).await;
            if number % 2 == 0 {
                assign(&writer, &task, &two).await;
            }
            if number % 3 == 0 {
                let reject = TaskCommand::Reject { reason: None };
                writer.act_on_task(task.id.as_str(), reject, StreamExpectation::Any).await.expect("rejected");
            }
            if number % 4 == 0 {
                // Adds events of another agent between the events of tasks.
                agent(&writer, &format!("other {number}")).await;
            }
        }
        writer.delete_agent(two.id.as_str(), StreamExpectation::Any, None).await.expect("deleted");
        let of_all = read(Feed::new(listener.context.clone(), None, 0), 7).await;
        assert_eq!(of_all.iter().filter(|line| line.contains("task.created")).count(), 20);
        assert_eq!(of_all.iter().filter(|line| line.contains("task.unassigned")).count(), 16);
        assert!(of_all.contains(&format!("{} deleted", two.id)));

        // The second server has nothing in memory.
        let there = engine(store.share()).await;
        let (_, elsewhere) = enter(&there, &key).await;
        for (listener, events) in [(&listener, 1), (&elsewhere, 3), (&elsewhere, 1_000)] {
            assert_eq!(read(Feed::new(listener.context.clone(), None, 0), events).await, of_all);
            for agent in [&one, &two] {
                let own: Vec<_> = of_all.iter().filter(|line| line.starts_with(agent.id.as_str())).cloned().collect();
                assert_eq!(read(listener.feed(agent, 0), events).await, own);
            }
        }
        // For events written by an older version of the program, the reader scans the log.
        let middle = elsewhere.context.state().folded.position() / 2;
        let database = store.share().workspace(&elsewhere.context.record().id).await.expect("a database");
        database.forget_feed(middle).await.expect("forgotten");
        let upgraded = engine(store.share()).await;
        let (_, upgraded) = enter(&upgraded, &key).await;
        assert_eq!(upgraded.context.state().feed_begin, middle);
        for agent in [&one, &two] {
            let own: Vec<_> = of_all.iter().filter(|line| line.starts_with(agent.id.as_str())).cloned().collect();
            assert_eq!(read(upgraded.feed(agent, 0), 3).await, own);
        }
        // A reader at the end of the feed gets an empty page, and later the new item.
        let mut feed = elsewhere.feed_of_all().await.expect("a feed");
        assert!(feed.next(ALL).await.expect("a page").items.is_empty());
        task(&writer, &one).await;
        assert_eq!(feed.wait(ALL, Duration::from_secs(60)).await.expect("a page").items.len(), 1);
    }

    #[tokio::test]
    async fn a_credential_for_one_agent_does_not_allow_listening_to_another_agent() {
        let engine = engine(Store::connect("mem://").await.expect("a store")).await;
        let key = engine.first_start(None).await.expect("started").expect("a new store").key;
        let (_, other_key) = engine.provision("other", None).await.expect("a workspace");
        let (writer, listener) = enter(&engine, &key).await;
        let (_, other) = enter(&engine, &other_key).await;
        let (one, two) = (agent(&writer, "one").await, agent(&writer, "two").await);
        let connected = listener.connect(Some(vec![one.id.to_string()])).await.expect("connected");
        let narrow = engine.listen(&connected.credential).await.expect("a right");
        assert!(narrow.agent(one.id.as_str()).await.is_ok());
        for (listener, id) in [(&narrow, &two.id), (&other, &one.id)] {
            assert!(matches!(listener.agent(id.as_str()).await, Err(Error::NotFound { .. })));
        }
        // A restricted right issues only credentials with the same restriction.
        let narrower = narrow.connect(None).await.expect("connected");
        let narrower = engine.listen(&narrower.credential).await.expect("a right");
        assert!(matches!(narrower.agent(two.id.as_str()).await, Err(Error::NotFound { .. })));
    }

    #[tokio::test]
    async fn an_acknowledged_position_only_grows_and_is_at_most_the_last_position() {
        let engine = engine(Store::connect("mem://").await.expect("a store")).await;
        let key = engine.first_start(None).await.expect("started").expect("a new store").key;
        let (writer, listener) = enter(&engine, &key).await;
        let one = agent(&writer, "one").await;
        assert_eq!(listener.cursor(&one).await.expect("a position"), one.first_position);
        let made = task(&writer, &one).await;
        let refused = listener.acknowledge(&one, u64::MAX).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
        assert_eq!(listener.cursor(&one).await.expect("a position"), one.first_position);
        listener.acknowledge(&one, made.position).await.expect("acknowledged");
        listener.acknowledge(&one, 1).await.expect("an older position changes nothing");
        assert_eq!(listener.cursor(&one).await.expect("a position"), made.position);
    }
}
