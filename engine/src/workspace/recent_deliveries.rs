//! Reads the most recent deliveries of an agent again, from the end of the agent's feed.

use std::collections::VecDeque;

use super::events::EventLimit;
use super::feed::Item;
use super::rights::Listener;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::feed::Delivery;
use crate::state::State;

/// The number of events of a feed that are read at a time.
const PART: usize = 64;
const PAGE: EventLimit = EventLimit { events: PART, bytes: 1 << 20 };

/// A selection of deliveries to read again.
#[derive(Debug, Clone, Copy)]
pub struct DeliverySelection {
    /// The position after which deliveries are selected.
    pub after: u64,
    /// The position up to which deliveries are selected.
    pub until: u64,
    /// Only deliveries of events that were recorded at or after this time are selected. The time is in milliseconds
    /// since the epoch. `None` means any time.
    pub since: Option<i64>,
    /// The maximum number of deliveries. If more deliveries match, the newest are selected.
    pub most: usize,
}

impl Listener {
    /// Returns the deliveries that `again` selects from the feed of an agent, oldest first. Reads the feed backward in
    /// parts. Stops after a part with an event recorded before `again.since`, because the log is in the order of
    /// recording times.
    pub async fn acknowledged_deliveries(&self, agent: &Aggregate, again: DeliverySelection) -> Result<Vec<Delivery>> {
        let state = self.context.state();
        let mut newest: VecDeque<Delivery> = VecDeque::new();
        let mut end = again.until.min(state.folded.position());
        while end > again.after && newest.len() < again.most {
            let begin = part_before(state, agent, again.after, end).await?;
            let part = self.deliveries_between(agent, begin, end).await?;
            let is_wanted = |delivery: &Delivery| again.since.is_none_or(|since| delivery.event.recorded_at >= since);
            let is_older = part.iter().any(|delivery| !is_wanted(delivery));
            for delivery in part.into_iter().filter(is_wanted).rev() {
                newest.push_front(delivery);
            }
            if is_older {
                break;
            }
            end = begin;
        }
        let too_many = newest.len().saturating_sub(again.most);
        Ok(newest.into_iter().skip(too_many).collect())
    }

    /// Returns the deliveries to an agent between two positions.
    async fn deliveries_between(&self, agent: &Aggregate, begin: u64, end: u64) -> Result<Vec<Delivery>> {
        let mut feed = self.feed(agent, begin);
        let mut deliveries = Vec::new();
        while feed.position() < end {
            let page = feed.next(PAGE).await?;
            let of_page = page.items.into_iter().filter_map(|item| match item {
                Item::Delivery(delivery) => Some(delivery),
                Item::AgentDeleted(_) => None,
            });
            deliveries.extend(of_page.filter(|delivery| delivery.position() <= end));
            if !page.more {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(deliveries)
    }
}

/// Returns the position before the last [`PART`] events of the agent's feed in the range from `after` to `end`. If the
/// range contains fewer events of the feed, returns the beginning of the range.
///
/// The store has feed entries only for events after the position `feed_begin` of the state. If `feed_begin` is between
/// `after` and `end`, the range begins at `feed_begin`. If `feed_begin` is at or after `end`, the function returns
/// `after`.
async fn part_before(state: &State, agent: &Aggregate, after: u64, end: u64) -> Result<u64> {
    // The store contains no feed entries for events that an older version of the program appended.
    if end <= state.feed_begin {
        return Ok(after);
    }
    let first = after.max(state.feed_begin);
    Ok(state.db.feed_part_before(agent.id.as_str(), first, end, PART).await?)
}
