//! Reads an agent's most recent deliveries again, from the end of its feed.

use std::collections::VecDeque;

use super::events::Limit;
use super::feed::Item;
use super::rights::Listener;
use crate::core::State;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::feed::Delivery;

/// Events of a feed that are looked at together.
const PART: usize = 64;
const PAGE: Limit = Limit { events: PART, bytes: 1 << 20 };

/// Which deliveries are told once more.
#[derive(Debug, Clone, Copy)]
pub struct Again {
    /// Those after a position.
    pub after: u64,
    /// Those up to a position.
    pub until: u64,
    /// Those recorded since a time, milliseconds since the epoch.
    pub since: Option<i64>,
    /// The largest number; the newest come last.
    pub most: usize,
}

impl Listener {
    /// The newest deliveries to an agent. Of its history no more is read than they take: the log is in the order of time,
    /// so the first event before the time ends the search.
    pub async fn told_again(&self, agent: &Aggregate, again: Again) -> Result<Vec<Delivery>> {
        let state = self.entered.state();
        let mut newest: VecDeque<Delivery> = VecDeque::new();
        let mut end = again.until.min(state.folded.position());
        while end > again.after && newest.len() < again.most {
            let begin = part_before(state, agent, again.after, end).await?;
            let part = self.told_between(agent, begin, end).await?;
            let is_wanted = |told: &Delivery| again.since.is_none_or(|since| told.event.recorded_at >= since);
            let is_older = part.iter().any(|told| !is_wanted(told));
            for told in part.into_iter().filter(is_wanted).rev() {
                newest.push_front(told);
            }
            if is_older {
                break;
            }
            end = begin;
        }
        let too_many = newest.len().saturating_sub(again.most);
        Ok(newest.into_iter().skip(too_many).collect())
    }

    /// What an agent was told between two positions.
    async fn told_between(&self, agent: &Aggregate, begin: u64, end: u64) -> Result<Vec<Delivery>> {
        let mut feed = self.feed(agent, begin);
        let mut told = Vec::new();
        while feed.position() < end {
            let page = feed.next(PAGE).await?;
            let deliveries = page.items.into_iter().filter_map(|item| match item {
                Item::Delivery(told) => Some(told),
                Item::AgentDeleted(_) => None,
            });
            told.extend(deliveries.filter(|told| told.position() <= end));
            if !page.more {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(told)
    }
}

/// The position after which the last events of a feed stand, up to another.
async fn part_before(state: &State, agent: &Aggregate, after: u64, end: u64) -> Result<u64> {
    // Of events that an older program appended, the store does not say whom they concern.
    if end <= state.feed_begin {
        return Ok(after);
    }
    let first = after.max(state.feed_begin);
    Ok(state.log.feed_part_before(agent.id.as_str(), first, end, PART).await?)
}
