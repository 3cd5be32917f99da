//! Operations for agents that listen: connecting, sending heartbeats, and reading and acknowledging feeds.

use std::sync::Arc;

use super::PageLimit;
use super::feed::Feed;
use super::mailbox::work::check_instance;
use super::rights::Listener;
use crate::access::credential::ListenerCredential;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::leases::HeldClaims;
use crate::model::agent;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::AGENT;

/// The maximum number of agents that a heartbeat may name. The same limit applies to the claims of a heartbeat.
const MAX_NAMED: usize = 1_000;
/// The maximum number of agents that a credential may name. A credential is sent in a URL.
const MAX_IN_CREDENTIAL: usize = 100;

/// The data that an agent's program needs to listen.
pub struct AgentConnection {
    pub agents: Vec<Arc<Aggregate>>,
    pub credential: String,
    /// The expiry time of the credential, in milliseconds since the epoch.
    pub expires_at: i64,
}

/// A report that a worker is alive. An agent may run as several workers, and each worker renews only its own claims.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    pub agent_ids: Vec<String>,
    /// The claims that the worker holds, as pairs of a task id and a claim number. If `claims` is `None`, the claims of
    /// `instance` are renewed.
    pub claims: Option<Vec<(String, u64)>>,
    /// The instance that the worker named in its claims. If `claims` and `instance` are both `None`, the claims without
    /// an instance that were made with the caller's key or session, or by the caller, are renewed. Claims that record
    /// no key, session or user are renewed as well.
    pub instance: Option<String>,
}

/// The result of a heartbeat.
pub struct HeartbeatOutcome {
    /// The known agents, each with the number of its pending tasks.
    pub updated: Vec<(Arc<str>, u64)>,
    pub unknown: Vec<String>,
    /// The number of renewed leases. If the store cannot be shared by several servers, the number also counts leases
    /// that have expired.
    pub renewed: usize,
}

impl Listener {
    /// Restricts the right to the agents and the actions that a credential covers.
    pub(crate) fn for_agents(self, listening: &ListenerCredential) -> Listener {
        Listener { agents: listening.agents.clone(), acts: listening.acts, ..self }
    }

    /// Returns the name of the caller as shown to listeners.
    pub fn actor(&self) -> Arc<str> {
        self.context.actor()
    }

    /// Returns an agent that this right may access. Other agents are reported as not found.
    pub async fn agent(&self, id: &str) -> Result<Arc<Aggregate>> {
        self.context.refresh().await?;
        self.find(id).ok_or_else(|| Error::not_found("agent", id))
    }

    fn find(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.context.state().folded.get(id).filter(|found| self.reaches(id) && agent::is_agent(found))
    }

    fn reaches(&self, id: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|agent| **agent == *id))
    }

    /// Marks agents as present and issues a credential for listening. `named` selects the agents, and the credential
    /// covers only the selected agents. Without `named`, selects all enabled agents that this right may access, except
    /// agents whose work a plugin does. The credential then covers all agents that this right may access.
    pub async fn connect(&self, named: Option<Vec<String>>) -> Result<AgentConnection> {
        let state = self.context.state();
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
                let agents = self.context.list(Some(AGENT), None, PageLimit::NONE, admits).await?.items;
                (agents, self.agents.clone())
            }
        };
        let (credential, expires_at) =
            self.context.access().issue_listener_credential(self.caller(), reach, self.acts).await?;
        self.seen(&agents).await?;
        Ok(AgentConnection { agents, credential, expires_at })
    }

    /// Marks agents as present and renews the leases that the worker holds. A caller who may not act for the agents
    /// renews no lease. Fails if no given agent is known.
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatOutcome> {
        let claims = self.held_claims(&heartbeat)?;
        let ids = heartbeat.agent_ids;
        if ids.is_empty() || ids.len() > MAX_NAMED {
            return Err(Error::invalid_at("/agent_ids", format!("expected 1 to {MAX_NAMED} ids")));
        }
        let state = self.context.state();
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
        let renewed = match claims {
            Some(claims) => {
                let held: Vec<Arc<str>> = agents.iter().map(|agent| agent.id.text()).collect();
                self.context.renewals().renew_soon(state, &held, &claims, state.clock.now_ms()).await?
            }
            None => 0,
        };
        let pending = |agent: &Arc<Aggregate>| state.folded.workloads.of(agent.id.as_str()).pending;
        let updated = agents.iter().map(|agent| (agent.id.text(), pending(agent))).collect();
        Ok(HeartbeatOutcome { updated, unknown, renewed })
    }

    /// Returns the claims that a heartbeat renews, or `None` if the caller may not act for agents. Fails if a caller
    /// who may not act for agents names claims or an instance. Otherwise, the heartbeat would succeed without renewing
    /// the named claims.
    fn held_claims(&self, heartbeat: &Heartbeat) -> Result<Option<HeldClaims>> {
        let Heartbeat { claims, instance, .. } = heartbeat;
        if !self.acts {
            let message = "renewing claims needs the scope `api:write`, at least the role `editor`, and a plan that \
                           has not lapsed";
            let is_named = claims.is_some() || instance.is_some();
            return if is_named { Err(Error::forbidden(ErrorCode::InsufficientRight, message)) } else { Ok(None) };
        }
        if claims.as_ref().is_some_and(|claims| claims.len() > MAX_NAMED) {
            return Err(Error::invalid_at("/claims", format!("expected at most {MAX_NAMED} claims")));
        }
        check_instance(instance.as_deref())?;
        Ok(Some(match (claims, instance) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid_at("/instance", "expected either `claims` or `instance`, not both"));
            }
            (Some(claims), None) => HeldClaims::Named(claims.iter().cloned().collect()),
            (None, Some(instance)) => HeldClaims::Instance(instance.clone()),
            (None, None) => HeldClaims::ClaimedWith(self.caller().origin()),
        }))
    }

    async fn seen(&self, agents: &[Arc<Aggregate>]) -> Result<()> {
        let state = self.context.state();
        let now = state.clock.now_ms();
        let ids: Vec<Arc<str>> = agents.iter().map(|agent| agent.id.text()).collect();
        state.presence.seen(&ids, now);
        state.presence.settle().await
    }

    /// Returns the position up to which an agent has acknowledged its feed. The feed of a new agent starts at the
    /// agent's first event.
    pub async fn cursor(&self, agent: &Aggregate) -> Result<u64> {
        let state = self.context.state();
        state.presence.refresh(state.clock.now_ms()).await?;
        let acknowledged = state.presence.acknowledged(agent.id.as_str());
        // The agent may have acknowledged events that another server has appended. If the store was restored from an
        // older copy, the acknowledged position may be after the end of the log.
        let acknowledged = acknowledged.min(self.context.end_for(acknowledged).await?);
        Ok(acknowledged.max(agent.first_position))
    }

    /// Records that an agent has processed its feed up to a position. The caller needs the right to act for the agent,
    /// because acknowledged items are not delivered again. The right to listen is not enough. Fails for a position
    /// after the end of the log.
    pub async fn acknowledge(&self, agent: &Aggregate, position: u64) -> Result<()> {
        if !self.acts {
            let message = "acknowledging for an agent needs the scope `api:write`, at least the role `editor`, and a \
                           plan that has not lapsed";
            return Err(Error::forbidden(ErrorCode::InsufficientRight, message));
        }
        let (state, end) = (self.context.state(), self.context.end_for(position).await?);
        if position > end {
            return Err(Error::invalid_at("/position", format!("expected at most {end}, the end of the log")));
        }
        state.presence.acknowledge(&agent.id.text(), position);
        state.presence.settle().await
    }

    /// Returns `position` if the log has reached this position. Fails for a later position.
    pub async fn reached(&self, position: u64) -> Result<u64> {
        self.context.check_position(position).await.map(|()| position)
    }

    /// Returns the feed of an agent after a position. A position after the end of the log counts as the end.
    pub fn feed(&self, agent: &Aggregate, after: u64) -> Feed {
        let after = after.min(self.context.state().folded.position());
        Feed::new(self.context.clone(), Some(agent.id.text()), after)
    }

    /// Returns the feed of all agents, starting at the end of the log. The reader of this feed passes each item to the
    /// listeners for the item's agent.
    pub async fn feed_of_all(&self) -> Result<Feed> {
        let state = self.context.state();
        state.refresh().await?;
        Ok(Feed::new(self.context.clone(), None, state.folded.position()))
    }

    /// Returns a new unique id.
    pub fn new_id(&self) -> String {
        self.context.state().clock.new_id().to_string()
    }
}
