//! What the log folds to, up to one position: states, the last events, and what waits for its snapshot.
//!
//! All of it moves together when events are published, so that no reader sees one without the other.

use std::sync::{Arc, Mutex, PoisonError};

use super::feeds::Feeds;
use super::progress::Progress;
use super::streams::Streams;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::dirty::{DirtyAggregates, Taken};
use crate::resident::follower::FollowerStates;
use crate::resident::observed::ObservedSchema;
use crate::resident::tail::Tail;
use crate::resident::workload::{Workload, Workloads};
use crate::resident::{Resident, Snapshot};

/// The fold of a workspace's log, in memory.
#[derive(Default)]
pub struct Folded {
    resident: Resident,
    tail: Tail,
    feeds: Feeds,
    streams: Streams,
    observed: ObservedSchema,
    dirty: DirtyAggregates,
    follower: FollowerStates,
    workloads: Workloads,
    /// The position up to which events are committed and folded; whoever follows the log waits on it.
    head: Progress,
    /// The bytes of all states at a position.
    counted: Mutex<(u64, usize)>,
}

impl Folded {
    /// An aggregate as it is now.
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.resident.get(id)
    }

    /// An aggregate as it is in a snapshot.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        self.resident.get_in(snapshot, id)
    }

    /// The aggregates that have this slug among those of a type and project.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        self.resident.by_slug(aggregate_type, project_id, slug)
    }

    pub fn snapshot(&self) -> Snapshot {
        self.resident.snapshot()
    }

    /// A snapshot with columns of these paths. Making those that are missing is work: not for threads that serve.
    pub fn snapshot_with(&self, paths: &[&Arc<str>]) -> Snapshot {
        self.resident.snapshot_with(paths)
    }

    pub fn has_columns(&self, paths: &[&Arc<str>]) -> bool {
        self.resident.has_columns(paths)
    }

    /// Position of the last event that is folded.
    pub fn position(&self) -> u64 {
        self.resident.position()
    }

    /// The agents whose first events stand before a position, newest first.
    pub fn agents_before(&self, position: u64) -> Vec<AggregateId> {
        self.workloads.agents_before(position)
    }

    /// The tasks that some agents hold.
    pub fn held_by(&self, agents: &[Arc<str>]) -> Vec<AggregateId> {
        self.workloads.held_by(agents)
    }

    /// The open tasks of an agent, counted.
    pub fn workload(&self, agent: &str) -> Workload {
        self.workloads.of(agent)
    }

    /// The log's end, as it moves.
    pub fn head(&self) -> &Progress {
        &self.head
    }

    fn last_events_bytes(&self) -> usize {
        self.tail.size_bytes() + self.feeds.size_bytes() + self.streams.size_bytes()
    }

    /// Events after a position; `None` where only the store reaches back that far.
    pub fn last_events(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        self.tail.after(position, limit)
    }

    /// The last events that concern agents.
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// The aggregates that somebody follows.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The fields and types of values seen so far.
    pub fn observed(&self) -> &ObservedSchema {
        &self.observed
    }

    /// The states at the position of whoever follows the log.
    pub fn at_follower(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.follower.state(&self.resident, id)
    }

    /// Says how an aggregate was at the follower's position.
    pub fn set_at_follower(&self, id: AggregateId, state: Option<Arc<Aggregate>>) {
        self.follower.set(id, state);
    }

    /// Moves the follower: these are the aggregates as they are after the events that it has passed.
    pub fn pass_follower(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>) {
        self.follower.pass(&self.resident, aggregates);
    }

    /// The follower stands at the log's end.
    pub fn follower_caught_up(&self) {
        self.follower.clear();
    }

    /// The aggregate in less room: what it has in common with others is held once.
    pub fn share(&self, aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        self.resident.share(aggregate)
    }

    /// Replaces what plugins derived about aggregates.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        self.resident.set_facts(facts);
    }

    /// Takes in states that were loaded: they are nobody's news.
    pub fn restore(&self, states: Vec<Arc<Aggregate>>, position: u64) {
        let observed = Workloads::observed_among(&states);
        self.resident.publish(states, position);
        self.workloads.observe(&self.resident, &observed);
        self.tail.begin_at(position);
        self.feeds.begin_at(position);
        self.head.advance(position);
    }

    /// Says that the snapshots stand for every event up to a position.
    pub fn snapshots_stand_at(&self, position: u64) {
        self.dirty.begin_at(position);
    }

    /// Marks the aggregates of events that no snapshot stands for.
    pub fn mark_dirty(&self, events: &[Arc<Event>]) {
        self.dirty.mark(events);
    }

    /// Has the snapshots of aggregates written that were folded again while they were loaded.
    pub fn touch(&self, refolded: &[AggregateId]) {
        self.dirty.touch(refolded);
    }

    /// Makes states visible that were folded again from the same events, and has their snapshots written.
    pub fn replace(&self, refolded: &[Arc<Aggregate>]) {
        self.resident.publish(refolded.iter().cloned(), 0);
        self.workloads.observe(&self.resident, &Workloads::observed_among(refolded));
        self.dirty.touch(refolded.iter().map(|aggregate| &aggregate.id));
    }

    /// Makes committed events and the states after them visible. Whoever follows the log is woken by
    /// [`Folded::announce`].
    pub fn publish(&self, events: &[Arc<Event>], aggregates: Vec<Arc<Aggregate>>) {
        let Some(last) = events.last() else { return };
        events.iter().for_each(|event| self.observed.note(event));
        let observed = Workloads::observed_among(&aggregates);
        self.follower.publish(&self.resident, aggregates, last.position);
        self.workloads.observe(&self.resident, &observed);
        // After the states: whoever takes a mark finds at least the state that it was made for.
        self.dirty.mark(events);
    }

    /// Tells followers of events that are visible, and of the agents that they concern, with the indexes of the events.
    pub fn announce(&self, events: &[Arc<Event>], feed: &[(Arc<str>, usize)]) {
        let Some(last) = events.last() else { return };
        self.tail.extend(events);
        self.feeds.extend(events, feed);
        self.streams.extend(events);
        self.head.advance(last.position);
    }

    /// Takes those aggregates whose snapshots have waited longest, and are not to rest any more.
    pub fn take_dirty(&self, most: usize, now_ms: i64) -> Taken {
        self.dirty.take(most, now_ms)
    }

    /// Says that the snapshot of an aggregate is written now: the next one comes after a rest.
    pub fn rest_dirty(&self, aggregate: &Aggregate, now_ms: i64) {
        self.dirty.rest(&aggregate.id, aggregate.state.size_bytes(), now_ms);
    }

    /// From now on snapshots are written without rests.
    pub fn hurry_dirty(&self) {
        self.dirty.hurry();
    }

    /// Takes back those whose snapshots could not be written.
    pub fn put_back_dirty(&self, taken: Taken) {
        self.dirty.put_back(taken);
    }

    /// Bytes that it takes in memory, roughly. What is counted once is counted again after an event.
    pub fn size_bytes(&self) -> usize {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.resident.snapshot();
        if counted.0 != snapshot.position() {
            *counted = (snapshot.position(), snapshot.iter().map(|aggregate| aggregate.size_bytes()).sum());
        }
        counted.1 + self.resident.columns_bytes() + self.last_events_bytes()
    }
}
