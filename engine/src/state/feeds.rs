//! Keeps in memory the last events that concern agents, and wakes the readers of the agents' feeds. A reader of an
//! agent's feed is woken only by events that concern this agent.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::follower_map::FollowerMap;
use crate::model::event::Event;

/// The maximum size of the events in the window, in bytes. An event that concerns two agents counts twice. A reader
/// that needs earlier events reads the store.
const MAX_BYTES: usize = 4 << 20;
/// The maximum number of entries in the window. An event that concerns two agents has two entries.
const MAX_CONCERNS: usize = 10_000;

/// A window over the feeds of all agents.
#[derive(Default)]
pub struct Feeds {
    inner: Mutex<Inner>,
    /// The end of the window when an event that concerns any agent was last added.
    any: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    /// The events with the agents that they concern, in the order of the log.
    entries: VecDeque<AgentEvent>,
    bytes: usize,
    /// The position after which the window begins. `entries` contains all events after `begin`, up to `end`, that
    /// concern agents.
    begin: u64,
    /// The last position of the window.
    end: u64,
    /// The agents whose feeds are followed.
    followed: FollowerMap<Arc<str>, ()>,
}

struct AgentEvent {
    agent: Arc<str>,
    event: Arc<Event>,
}

impl Feeds {
    /// Clears the window, and starts the window at a position. The window does not contain earlier events.
    pub fn begin_at(&self, position: u64) {
        let mut inner = self.inner.lock();
        inner.restart(position);
        inner.end = position;
    }

    /// Adds consecutive events, and wakes the readers of the feeds of the agents in `feed`. If events are missing
    /// between the window and `events`, first clears the window. Each item of `feed` is an agent, and the index in
    /// `events` of an event that concerns the agent.
    pub fn extend(&self, events: &[Arc<Event>], feed: &[(Arc<str>, usize)]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let mut inner = self.inner.lock();
        if inner.end + 1 != first.position {
            inner.restart(first.position.saturating_sub(1));
        }
        inner.end = last.position;
        for (agent, event) in feed.iter().filter_map(|(agent, index)| Some((agent, events.get(*index)?))) {
            inner.bytes += event.size_bytes();
            inner.entries.push_back(AgentEvent { agent: agent.clone(), event: event.clone() });
        }
        inner.forget_oldest();
        for (agent, _) in feed {
            inner.followed.wake(agent, last.position, |()| ());
        }
        drop(inner);
        if !feed.is_empty() {
            self.any.send_replace(last.position);
        }
    }

    /// Returns up to `limit` events after `position`. Each event concerns `agent`, or any agent if `agent` is `None`.
    /// Also returns the position up to which the result is complete. Returns `None` if the window, which contains only
    /// recent events, begins after `position`.
    pub fn after(&self, position: u64, agent: Option<&str>, limit: usize) -> Option<(Vec<Arc<Event>>, u64)> {
        let inner = self.inner.lock();
        if position < inner.begin {
            return None;
        }
        let first = inner.entries.partition_point(|concern| concern.event.position <= position);
        let concerns_agent = |concern: &&AgentEvent| agent.is_none_or(|agent| *concern.agent == *agent);
        let mut events: Vec<Arc<Event>> = Vec::new();
        for concern in inner.entries.range(first..).filter(concerns_agent) {
            // An event that concerns two agents has two entries, and is returned once.
            if events.last().is_some_and(|last| last.position == concern.event.position) {
                continue;
            }
            if events.len() == limit {
                let last = events.last().map_or(position, |last| last.position);
                return Some((events, last));
            }
            events.push(concern.event.clone());
        }
        Some((events, inner.end.max(position)))
    }

    /// Returns a receiver that changes when an event concerns `agent`, or any agent if `agent` is `None`.
    pub fn follow(&self, agent: Option<&Arc<str>>) -> watch::Receiver<u64> {
        match agent {
            Some(agent) => self.inner.lock().followed.follow(agent),
            None => self.any.subscribe(),
        }
    }

    /// Returns the size of the events in the window, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.inner.lock().bytes
    }
}

impl Inner {
    fn restart(&mut self, position: u64) {
        self.entries.clear();
        self.bytes = 0;
        self.begin = position;
    }

    fn forget_oldest(&mut self) {
        while self.bytes > MAX_BYTES || self.entries.len() > MAX_CONCERNS {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.event.size_bytes());
            self.begin = oldest.event.position;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(positions: std::ops::RangeInclusive<u64>) -> Vec<Arc<Event>> {
        positions.map(|position| Arc::new(Event::sample("task-1", "task.created", position))).collect()
    }

    fn positions(found: Option<(Vec<Arc<Event>>, u64)>) -> Option<(Vec<u64>, u64)> {
        found.map(|(events, end)| (events.iter().map(|event| event.position).collect(), end))
    }

    #[test]
    fn only_events_that_concern_an_agent_wake_its_followers() {
        let feeds = Feeds::default();
        feeds.begin_at(7);
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let (mut of_a, mut of_b, mut of_all) = (feeds.follow(Some(&a)), feeds.follow(Some(&b)), feeds.follow(None));
        let changed = |receiver: &mut watch::Receiver<u64>| {
            let changed = receiver.has_changed().expect("a sender");
            receiver.mark_unchanged();
            changed
        };
        feeds.extend(&events(8..=9), &[]);
        assert_eq!([changed(&mut of_a), changed(&mut of_b), changed(&mut of_all)], [false; 3]);
        feeds.extend(&events(10..=12), &[(a.clone(), 1)]);
        assert_eq!([changed(&mut of_a), changed(&mut of_b), changed(&mut of_all)], [true, false, true]);
        drop(of_b);
        feeds.extend(&events(13..=13), &[(a, 0), (b.clone(), 0)]);
        assert!(
            changed(&mut of_a) && feeds.inner.lock().followed.get(&b).is_none(),
            "the other agent has no followers"
        );
    }

    #[test]
    fn a_feed_returns_events_only_if_memory_contains_all_of_them() {
        let feeds = Feeds::default();
        feeds.begin_at(7);
        assert_eq!(positions(feeds.after(7, None, 9)), Some((vec![], 7)));
        feeds.extend(&events(8..=12), &[("a".into(), 0), ("b".into(), 2), ("a".into(), 2), ("a".into(), 4)]);
        assert_eq!(positions(feeds.after(6, Some("a"), 9)), None);
        assert_eq!(positions(feeds.after(7, Some("a"), 9)), Some((vec![8, 10, 12], 12)));
        assert_eq!(positions(feeds.after(7, Some("a"), 2)), Some((vec![8, 10], 10)));
        assert_eq!(positions(feeds.after(8, Some("b"), 9)), Some((vec![10], 12)));
        assert_eq!(positions(feeds.after(7, None, 2)), Some((vec![8, 10], 10)));
        assert_eq!(positions(feeds.after(99, None, 2)), Some((vec![], 99)));
        // Only the store contains the events inside a gap, so the window restarts after the gap.
        feeds.extend(&events(20..=21), &[("b".into(), 1)]);
        assert_eq!(positions(feeds.after(12, Some("b"), 9)), None);
        assert_eq!(positions(feeds.after(19, Some("b"), 9)), Some((vec![21], 21)));
    }

    #[test]
    fn a_feed_keeps_a_limited_number_of_events_in_memory() {
        let feeds = Feeds::default();
        let many = events(1..=MAX_CONCERNS as u64 + 5);
        let feed: Vec<(Arc<str>, usize)> = (0..many.len()).map(|index| ("a".into(), index)).collect();
        feeds.extend(&many, &feed);
        assert_eq!(positions(feeds.after(4, None, 1)), None);
        assert_eq!(positions(feeds.after(5, None, 1)), Some((vec![6], 6)));
    }
}
