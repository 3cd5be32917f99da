//! The fold of the log in memory: the states up to one position, the last events, and the aggregates without a current
//! snapshot.
//!
//! When events are published, these three parts are updated in a fixed order, so that no reader misses an event.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use super::feeds::Feeds;
use super::progress::Progress;
use super::streams::FollowedStreams;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::resident::ResidentStates;
use crate::resident::dirty::DirtyAggregates;
use crate::resident::event_shapes::ObservedSchema;
use crate::resident::follower::FollowerStates;
use crate::resident::tail::Tail;
use crate::resident::workload::Workloads;

/// The fold of a workspace's log, in memory.
#[derive(Default)]
pub struct FoldedStates {
    resident: ResidentStates,
    tail: Tail,
    /// The window of the last events that concern agents.
    pub feeds: Feeds,
    /// The aggregates that readers follow, with their last events.
    pub streams: FollowedStreams,
    /// The fields observed in events so far, with the types of their values.
    pub observed: ObservedSchema,
    /// The aggregates without a current snapshot.
    pub dirty: DirtyAggregates,
    /// The states of aggregates at the position of the log's follower. Contains only states that may differ from the
    /// resident states.
    pub follower: FollowerStates,
    /// The counts of the open tasks of each agent, and the tasks that each agent holds.
    pub workloads: Workloads,
    /// The position up to which events have been committed and folded. Followers of the log wait for changes of this
    /// position.
    pub head: Progress,
    /// The position at which the size of all states was last measured, and that size in bytes.
    counted: Mutex<(u64, usize)>,
}

/// The resident states, for readers. Writers publish events and states through [`FoldedStates`], which also updates the
/// data derived from the events.
impl Deref for FoldedStates {
    type Target = ResidentStates;

    fn deref(&self) -> &ResidentStates {
        &self.resident
    }
}

impl FoldedStates {
    /// Returns at most `limit` visible events after a position, without gaps. Returns `None` if some of these events
    /// are no longer or not yet in memory, and must be read from the store.
    pub fn last_events(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        // Reads the end before the events, because more events may become visible in between.
        let visible = self.position();
        self.tail.visible_after(position, limit, visible)
    }

    /// Returns at most `limit` events after a position. Returns only events that were announced to the followers of the
    /// log. Returns `None` if the events are no longer in memory.
    pub fn announced_events(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        self.tail.after(position, limit)
    }

    /// Returns the state of an aggregate at the position of the log's follower.
    pub fn at_follower(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.follower.state(&self.resident, id)
    }

    /// Advances the log's follower. `aggregates` are the states after the events that the follower has processed.
    pub fn pass_follower(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>) {
        self.follower.pass(&self.resident, aggregates);
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

    /// Replaces states with states that were refolded from the same events, and schedules new snapshots of the
    /// aggregates.
    pub fn replace(&self, refolded: &[Arc<Aggregate>]) {
        self.resident.publish(refolded.iter().cloned(), 0);
        self.workloads.observe(&self.resident, &Workloads::observed_among(refolded));
        self.dirty.touch(refolded.iter().map(|aggregate| &aggregate.id));
    }

    /// Makes committed events and the states after these events visible. Does not wake the followers of the log.
    /// [`FoldedStates::announce`] wakes them.
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

    /// Adds visible events to the last events in memory. Wakes the followers of the log, the readers of the affected
    /// agents' feeds, and the followers of the events' aggregates. Each item of `feed` is an agent, with the index in
    /// `events` of an event that affects the agent.
    pub fn announce(&self, events: &[Arc<Event>], feed: &[(Arc<str>, usize)]) {
        let Some(last) = events.last() else { return };
        self.tail.extend(events);
        self.feeds.extend(events, feed);
        self.streams.extend(events);
        self.head.advance(last.position);
    }

    /// Returns the approximate memory of the fold, in bytes. The size of the states is cached until the next event.
    pub fn size_bytes(&self) -> usize {
        let mut counted = self.counted.lock();
        let snapshot = self.resident.snapshot();
        if counted.0 != snapshot.position() {
            *counted = (snapshot.position(), snapshot.iter().map(|aggregate| aggregate.size_bytes()).sum());
        }
        let last_events = self.tail.size_bytes() + self.feeds.size_bytes() + self.streams.size_bytes();
        counted.1 + self.resident.columns_bytes() + last_events
    }
}
