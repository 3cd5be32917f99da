//! Reads the workspace's events in the order of the log, and appends events as another log has recorded them.

use std::sync::Arc;

use super::Offline;
use crate::append::request::{Append, AppendOutcome};
use crate::error::{Error, Result};
use crate::model::agent;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, PROJECT};
use crate::model::event::{Event, MAX_EVENTS_PER_APPEND, NewEvent};
use crate::workspace::projects::find_project;

/// The actor of imported events for which no actor is known.
const IMPORT: &str = "system";

impl Offline {
    /// Returns at most `limit` events after a position.
    pub async fn events_after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Event>>> {
        self.state.events_after(position, limit).await
    }

    /// Appends events of any type, all of them or none. An event with [`NewEvent::recorded`] keeps its actor and its
    /// times, may follow the deletion of its aggregate, and is checked against the definition of its type only if the
    /// type is managed. Events that are already in the log are not appended again.
    pub async fn append(&self, events: Vec<NewEvent>) -> Result<AppendOutcome> {
        self.append_naming(events, None).await
    }

    /// Appends events. If `upload` is set, one of the events refers to this upload.
    pub(super) async fn append_naming(&self, events: Vec<NewEvent>, upload: Option<Arc<str>>) -> Result<AppendOutcome> {
        if events.len() > MAX_EVENTS_PER_APPEND {
            let message = format!("expected at most {MAX_EVENTS_PER_APPEND} events, got {}", events.len());
            return Err(Error::invalid(message));
        }
        let append = Append { managed: true, upload, ..Append::given(IMPORT.into(), events) };
        self.appender.append(append).await
    }

    /// Returns whether the log has an event with this id.
    pub async fn has_event(&self, event_id: &str) -> Result<bool> {
        let ids = [Arc::from(event_id)];
        Ok(!self.state.db.find_events(&ids, self.position()).await?.is_empty())
    }

    /// Returns whether no aggregate has this id.
    pub fn is_free(&self, id: &str) -> bool {
        self.state.folded.get(id).is_none()
    }

    /// Returns whether this is the id of an agent that a server has registered for a plugin.
    pub fn is_plugin_agent(&self, id: &str) -> bool {
        let agent = self.state.folded.get(id).filter(|found| &*found.aggregate_type == AGENT);
        agent.is_some_and(|agent| agent.state.get(agent::PLUGIN).is_some_and(|plugin| !plugin.is_null()))
    }

    /// Returns all projects, oldest first.
    pub fn projects(&self) -> Vec<Arc<Aggregate>> {
        let snapshot = self.state.folded.snapshot();
        let is_project = |found: &&Arc<Aggregate>| &*found.aggregate_type == PROJECT && !found.deleted;
        snapshot.iter().filter(is_project).cloned().collect()
    }

    /// Returns the project with this id or slug.
    pub fn project(&self, id_or_slug: &str) -> Option<Arc<Aggregate>> {
        find_project(&self.state, id_or_slug)
    }
}
