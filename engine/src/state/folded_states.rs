//! The fold of the log in memory: the states up to one position, the last events, and the aggregates without a current
//! snapshot.
//!
//! Publishing events updates all three together, so that readers see a consistent state.

use std::sync::Arc;

use parking_lot::Mutex;

use super::feeds::Feeds;
use super::progress::Progress;
use super::streams::FollowedStreams;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::dirty::{DirtyAggregates, DirtyBatch};
use crate::resident::event_shapes::ObservedSchema;
use crate::resident::follower::FollowerStates;
use crate::resident::tail::Tail;
use crate::resident::workload::{Workload, Workloads};
use crate::resident::{NewestFirst, ResidentStates, Snapshot};

/// The fold of a workspace's log, in memory.
#[derive(Default)]
pub struct FoldedStates {
    resident: ResidentStates,
    tail: Tail,
    feeds: Feeds,
    streams: FollowedStreams,
    observed: ObservedSchema,
    dirty: DirtyAggregates,
    follower: FollowerStates,
    workloads: Workloads,
    /// The position up to which events have been committed and folded. Followers of the log wait for changes of this
    /// position.
    head: Progress,
    /// The position at which the size of all states was last measured, and that size in bytes.
    counted: Mutex<(u64, usize)>,
}

impl FoldedStates {
    /// Returns the current state of an aggregate.
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.resident.get(id)
    }

    /// Returns the state of an aggregate in a snapshot.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        self.resident.get_in(snapshot, id)
    }

    /// Returns the ids of the aggregates with this slug within a type and project.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        self.resident.by_slug(aggregate_type, project_id, slug)
    }

    pub fn snapshot(&self) -> Snapshot {
        self.resident.snapshot()
    }

    /// Returns a snapshot with columns of these paths. Building missing columns takes processor time, so threads that
    /// serve requests must not call this function.
    pub fn snapshot_with(&self, paths: &[&Arc<str>]) -> Snapshot {
        self.resident.snapshot_with(paths)
    }

    pub fn has_columns(&self, paths: &[&Arc<str>]) -> bool {
        self.resident.has_columns(paths)
    }

    /// Returns the position of the last folded event.
    pub fn position(&self) -> u64 {
        self.resident.position()
    }

    /// Returns an iterator over the aggregates whose first event is before a position, newest first. With
    /// `aggregate_type`, the iterator visits only aggregates of this type.
    pub fn newest<'a>(&'a self, aggregate_type: Option<&'a str>, before: u64) -> NewestFirst<'a> {
        self.resident.newest(aggregate_type, before)
    }

    /// Returns the ids of the tasks that these agents hold.
    pub fn held_by(&self, agents: &[Arc<str>]) -> Vec<AggregateId> {
        self.workloads.held_by(agents)
    }

    /// Returns the counts of an agent's open tasks.
    pub fn workload(&self, agent: &str) -> Workload {
        self.workloads.of(agent)
    }

    /// Returns the position of the log's end, for followers.
    pub fn head(&self) -> &Progress {
        &self.head
    }

    fn last_events_bytes(&self) -> usize {
        self.tail.size_bytes() + self.feeds.size_bytes() + self.streams.size_bytes()
    }

    /// Returns at most `limit` visible events after a position. Returns `None` if some of these events are no longer or
    /// not yet in memory, and must be read from the store. No visible event is missing from the result.
    pub fn last_events(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        // Reads the end before the events, because more events may become visible in between.
        let visible = self.position();
        self.tail.visible_after(position, limit, visible)
    }

    /// Of the events of which followers have been notified, returns at most `limit` events after a position. Returns
    /// `None` if the events are no longer in memory.
    pub fn announced_events(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        self.tail.after(position, limit)
    }

    /// Returns the window of the last events that concern agents.
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Returns the aggregates that readers follow, with their last events.
    pub fn streams(&self) -> &FollowedStreams {
        &self.streams
    }

    /// Returns the fields observed in events so far, with the types of their values.
    pub fn observed(&self) -> &ObservedSchema {
        &self.observed
    }

    /// Returns the state of an aggregate at the position of the log's follower.
    pub fn at_follower(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.follower.state(&self.resident, id)
    }

    /// Sets the state of an aggregate at the follower's position.
    pub fn set_at_follower(&self, id: AggregateId, state: Option<Arc<Aggregate>>) {
        self.follower.set(id, state);
    }

    /// Advances the log's follower. `aggregates` are the states after the events that the follower has processed.
    pub fn pass_follower(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>) {
        self.follower.pass(&self.resident, aggregates);
    }

    /// Records that the follower has reached the end of the log.
    pub fn follower_caught_up(&self) {
        self.follower.clear();
    }

    /// Replaces parts of an aggregate by equal parts of other aggregates, which saves memory.
    pub fn share(&self, aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        self.resident.share(aggregate)
    }

    /// Replaces the facts that plugins derived about aggregates.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        self.resident.set_facts(facts);
    }

    /// Sets the states that were loaded up to `position`. Called before any follower exists.
    pub fn restore(&self, states: Vec<Arc<Aggregate>>, position: u64) {
        let observed = Workloads::observed_among(&states);
        self.resident.publish(states, position);
        self.workloads.observe(&self.resident, &observed);
        self.tail.begin_at(position);
        self.feeds.begin_at(position);
        self.head.advance(position);
    }

    /// Records that the stored snapshots include every event up to a position.
    pub fn snapshots_stand_at(&self, position: u64) {
        self.dirty.begin_at(position);
    }

    /// Marks the aggregates of events that the stored snapshots do not include yet.
    pub fn mark_dirty(&self, events: &[Arc<Event>]) {
        self.dirty.mark(events);
    }

    /// Schedules new snapshots for aggregates that were refolded while loading.
    pub fn touch(&self, refolded: &[AggregateId]) {
        self.dirty.touch(refolded);
    }

    /// Publishes states that were refolded from the same events, and schedules new snapshots for these aggregates.
    pub fn replace(&self, refolded: &[Arc<Aggregate>]) {
        self.resident.publish(refolded.iter().cloned(), 0);
        self.workloads.observe(&self.resident, &Workloads::observed_among(refolded));
        self.dirty.touch(refolded.iter().map(|aggregate| &aggregate.id));
    }

    /// Makes committed events and the states after these events visible. Does not wake followers of the log:
    /// [`FoldedStates::announce`] does.
    pub fn publish(&self, events: &[Arc<Event>], aggregates: Vec<Arc<Aggregate>>) {
        let Some(last) = events.last() else { return };
        events.iter().for_each(|event| self.observed.record(event));
        let observed = Workloads::observed_among(&aggregates);
        self.follower.publish(&self.resident, aggregates, last.position);
        self.workloads.observe(&self.resident, &observed);
        // The aggregates are marked after their states are published, so that a task that takes a mark finds at least
        // the state that the mark was set for.
        self.dirty.mark(events);
    }

    /// Notifies followers of events that have become visible. `feed` lists the agents that the events affect, each with
    /// the index of its event in `events`.
    pub fn announce(&self, events: &[Arc<Event>], feed: &[(Arc<str>, usize)]) {
        let Some(last) = events.last() else { return };
        self.tail.extend(events);
        self.feeds.extend(events, feed);
        self.streams.extend(events);
        self.head.advance(last.position);
    }

    /// Takes up to `most` aggregates whose snapshots may be written now, the longest waiting first.
    pub fn take_dirty(&self, most: usize, now_ms: i64) -> DirtyBatch {
        self.dirty.pop(most, now_ms)
    }

    /// Records that the snapshot of an aggregate is being written, and delays the aggregate's next snapshot.
    pub fn rest_dirty(&self, aggregate: &Aggregate, now_ms: i64) {
        self.dirty.rest(&aggregate.id, aggregate.state.size_bytes(), now_ms);
    }

    /// Disables the delays between snapshots.
    pub fn hurry_dirty(&self) {
        self.dirty.skip_pauses();
    }

    /// Puts back aggregates whose snapshots could not be written.
    pub fn put_back_dirty(&self, taken: DirtyBatch) {
        self.dirty.put_back(taken);
    }

    /// Returns the approximate memory of the fold, in bytes. The size of the states is cached until the next event.
    pub fn size_bytes(&self) -> usize {
        let mut counted = self.counted.lock();
        let snapshot = self.resident.snapshot();
        if counted.0 != snapshot.position() {
            *counted = (snapshot.position(), snapshot.iter().map(|aggregate| aggregate.size_bytes()).sum());
        }
        counted.1 + self.resident.columns_bytes() + self.last_events_bytes()
    }
}
