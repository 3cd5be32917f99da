//! What is done for agents that listen: they connect, say that they are there, read their feeds and acknowledge them.

use std::sync::Arc;

use super::feed::Feed;
use super::rights::Listener;
use crate::access::credential::Listening;
use crate::access::standing::Standing;
use crate::error::{Error, Result};
use crate::mailbox::leases;
use crate::model::access::WorkspaceRecord;
use crate::model::agent;
use crate::model::aggregate::Aggregate;

/// Agents that one request may name.
const MAX_NAMED: usize = 1_000;
/// Agents that a credential may name: it travels in a URL.
const MAX_IN_CREDENTIAL: usize = 100;

/// What an agent's program needs in order to listen.
pub struct Connected {
    pub agents: Vec<Arc<Aggregate>>,
    pub credential: String,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

/// What became of a heartbeat.
pub struct Heard {
    /// Agents that are there, each with the number of its pending tasks.
    pub updated: Vec<(Arc<str>, u64)>,
    pub unknown: Vec<String>,
}

impl Listener {
    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        self.entered.record()
    }

    /// The right itself, for whoever listens for long.
    pub fn standing(&self) -> Standing {
        self.entered.standing()
    }

    /// The same right, for no more agents than it was handed on for, and with no more to do than its giver might.
    pub(crate) fn for_agents(self, listening: &Listening) -> Listener {
        Listener { agents: listening.agents.clone(), acts: listening.acts, ..self }
    }

    /// How the caller is named to those who hear what it says.
    pub fn actor(&self) -> Arc<str> {
        self.entered.actor()
    }

    /// An agent in reach. One that is not is unknown.
    pub async fn agent(&self, id: &str) -> Result<Arc<Aggregate>> {
        self.entered.state().refresh().await?;
        self.find(id).ok_or_else(|| Error::not_found("agent", id))
    }

    fn find(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.entered.state().folded.get(id).filter(|found| self.reaches(id) && agent::is_agent(found))
    }

    fn reaches(&self, id: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|agent| **agent == *id))
    }

    /// Says that agents are there, and hands out the credential by which they listen: these agents, or all whose work
    /// no plugin does and that are not disabled.
    pub async fn connect(&self, named: Option<Vec<String>>) -> Result<Connected> {
        let state = self.entered.state();
        state.refresh().await?;
        let (agents, reach) = match named {
            Some(ids) => {
                if ids.is_empty() || ids.len() > MAX_IN_CREDENTIAL {
                    return Err(Error::invalid_at("/agent_ids", format!("expected 1 to {MAX_IN_CREDENTIAL} ids")));
                }
                let find = |id: &String| self.find(id).ok_or_else(|| Error::not_found("agent", id));
                let mut agents = ids.iter().map(find).collect::<Result<Vec<_>>>()?;
                let mut seen = std::collections::HashSet::new();
                agents.retain(|agent| seen.insert(agent.id.clone()));
                let reach: Arc<[Arc<str>]> = agents.iter().map(|agent| agent.id.text()).collect();
                (agents, Some(reach))
            }
            None => {
                let admits = |found: &Aggregate| {
                    !agent::is_scripted(found) && !agent::is_disabled(found) && self.reaches(found.id.as_str())
                };
                (self.entered.agents(None, usize::MAX, admits).await?.items, self.agents.clone())
            }
        };
        let (credential, expires_at) = self.entered.access().hand_out(self.caller(), reach, self.acts).await?;
        self.seen(&agents).await?;
        Ok(Connected { agents, credential, expires_at })
    }

    /// Says that agents are there, and renews the leases that they hold. It is an error that none of them is known.
    pub async fn heartbeat(&self, ids: Vec<String>) -> Result<Heard> {
        if ids.is_empty() || ids.len() > MAX_NAMED {
            return Err(Error::invalid_at("/agent_ids", format!("expected 1 to {MAX_NAMED} ids")));
        }
        let state = self.entered.state();
        state.refresh().await?;
        let (mut agents, mut unknown) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match self.find(&id) {
                Some(found) => agents.push(found),
                None => unknown.push(id),
            }
        }
        if agents.is_empty() {
            return Err(Error::not_found("agent", unknown.first().map_or("", |id| id)));
        }
        self.seen(&agents).await?;
        let held: Vec<Arc<str>> = agents.iter().map(|agent| agent.id.text()).collect();
        leases::renew(state, &held, state.clock.now_ms()).await?;
        let pending = |agent: &Arc<Aggregate>| state.folded.workload(agent.id.as_str()).pending;
        Ok(Heard { updated: agents.iter().map(|agent| (agent.id.text(), pending(agent))).collect(), unknown })
    }

    async fn seen(&self, agents: &[Arc<Aggregate>]) -> Result<()> {
        let state = self.entered.state();
        let now = state.clock.now_ms();
        let ids: Vec<Arc<str>> = agents.iter().map(|agent| agent.id.text()).collect();
        state.presence.seen(&ids, now);
        Ok(())
    }

    /// The position up to which an agent has acknowledged its feed. It begins where the agent does.
    pub async fn cursor(&self, agent: &Aggregate) -> Result<u64> {
        let state = self.entered.state();
        state.presence.refresh(state.clock.now_ms()).await?;
        // A store that was set back to an older copy may know an agent to be further than its log is.
        let acknowledged = state.presence.acknowledged(agent.id.as_str()).min(state.folded.position());
        Ok(acknowledged.max(agent.first_position))
    }

    /// Notes that an agent has taken in its feed up to a position. This is for callers who may act for the agent, as they
    /// claim its tasks, and not for those who only listen: what is acknowledged is not delivered again.
    pub async fn acknowledge(&self, agent: &Aggregate, position: u64) -> Result<()> {
        if !self.acts {
            let message = "only callers with `api:write`, who are editors at least, acknowledge for an agent";
            return Err(Error::forbidden("insufficient_right", message));
        }
        let state = self.entered.state();
        if position > state.folded.position() {
            // Another server may have appended since.
            state.refresh().await?;
        }
        let end = state.folded.position();
        if position > end {
            return Err(Error::invalid_at("/position", format!("expected at most {end}, where the feed ends")));
        }
        state.presence.acknowledge(&agent.id.text(), position);
        Ok(())
    }

    /// The feed of an agent after a position; what is yet to come is after the log's end.
    pub fn feed(&self, agent: &Aggregate, after: u64) -> Feed {
        let after = after.min(self.entered.state().folded.position());
        Feed::new(self.entered.clone(), Some(agent.id.text()), after)
    }

    /// The feed of all agents from now on, for whoever tells each listener its part.
    pub async fn feed_of_all(&self) -> Result<Feed> {
        let state = self.entered.state();
        state.refresh().await?;
        Ok(Feed::new(self.entered.clone(), None, state.folded.position()))
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.entered.state().clock.now_ms()
    }

    /// An id that nothing else has.
    pub fn new_id(&self) -> String {
        self.entered.state().clock.new_id().to_string()
    }
}
