//! The input of the archiver: the log of an open or closed workspace.

use std::sync::Arc;

use crate::error::Result;
use crate::model::event::Event;
use crate::state::State;
use crate::store::DatabaseReader;
use crate::store::workspace::definitions::PastDefinition;
use crate::store::workspace::log::{fitting, take_part};

/// The maximum number of events in a segment.
const MAX_EVENTS: usize = 8_192;
/// The maximum size of the events of a segment in memory, in bytes. A segment may contain one event that is larger.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of definitions that are read for a segment.
const MAX_DEFINITIONS: usize = 64;
/// The maximum size of the definitions of a segment, in bytes. A segment may contain one definition that is larger.
const MAX_DEFINITION_BYTES: usize = 8 << 20;

/// The log of a workspace.
pub enum LogSource {
    /// A workspace that this server has open. Its last events are in memory.
    Open(Arc<State>),
    Closed(DatabaseReader),
}

/// The events and definitions that the next segment contains. Each list is in the order of the log.
#[derive(Default)]
pub struct SegmentContent {
    pub events: Vec<Arc<Event>>,
    pub definitions: Vec<PastDefinition>,
}

impl LogSource {
    pub fn db(&self) -> &DatabaseReader {
        match self {
            LogSource::Open(state) => &state.db,
            LogSource::Closed(db) => db,
        }
    }

    /// Returns the content of the next segment, up to the limits of a segment. The content begins after the event at
    /// `position` and after the first `definitions` definitions of the log.
    pub async fn part_after(&self, position: u64, definitions: u64) -> Result<SegmentContent> {
        // A definition is in the store before the first event to which it applies. Definitions are therefore read after
        // the events.
        let mut events = self.events_after(position).await?;
        let last = events.last().map_or(position, |event| event.position);
        let start = usize::try_from(definitions).unwrap_or(usize::MAX);
        let mut definitions = self.db().read_defined(start, MAX_DEFINITIONS).await?;
        let is_full = definitions.len() == MAX_DEFINITIONS;
        let fitting = fitting(definitions.iter().map(|definition| definition.text.len()), MAX_DEFINITION_BYTES);
        if fitting < definitions.len() || is_full {
            definitions.truncate(fitting);
            // Events after the last definition that was read are left out, because definitions before these events may
            // not have been read yet.
            let read_to = definitions.last().map_or(last, |definition| definition.position);
            events.retain(|event| event.position <= read_to);
        }
        let last = events.last().map_or(position, |event| event.position);
        definitions.retain(|definition| definition.position <= last);
        Ok(SegmentContent { events, definitions })
    }

    async fn events_after(&self, position: u64) -> Result<Vec<Arc<Event>>> {
        if let LogSource::Open(state) = self
            && let Some(mut events) = state.folded.last_events(position, MAX_EVENTS)
        {
            events.truncate(fitting(events.iter().map(|event| event.size_bytes()), MAX_BYTES));
            return Ok(events);
        }
        let refs = self.db().event_refs_after(position, MAX_EVENTS).await?;
        let part = take_part(&mut refs.into(), MAX_EVENTS, MAX_BYTES);
        Ok(self.db().read_event_refs(&part, None).await?.into_iter().map(Arc::new).collect())
    }
}
