//! The plugins as they work in this workspace: what they did, what they would do, and doing it again.

use std::sync::Arc;

use super::Workspace;
use crate::consumer::circuit::Circuit;
use crate::consumer::measured::Measures;
use crate::consumer::world::{Seen, recall};
use crate::error::{Error, Result};
use crate::hook::About;
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, NewEvent};
use crate::model::id::AggregateId;
use crate::store::Error as StoreError;

pub use crate::consumer::dry_run::{Found, Trial};
pub use crate::consumer::replay::Tally;

/// Events of one dry run at most.
pub const MAX_TRIALS: usize = 200;
/// Events that a dry run looks at to find those that the plugin is called for.
const LOOK: usize = 20_000;

/// A plugin and what is known of its work here.
pub struct Told {
    pub about: About,
    pub measures: Measures,
    pub parked: u64,
    /// The event whose failure stopped it.
    pub stopped_by: Option<Arc<str>>,
}

/// Which events a dry run is for.
pub enum Trying {
    Event(String),
    From {
        position: u64,
        limit: usize,
    },
    /// One that is not in the log.
    New(Box<NewEvent>),
}

impl Workspace {
    /// The plugins, in the order of execution.
    pub async fn plugins(&self) -> Result<Vec<Told>> {
        let open = self.open();
        let parked = open.log.count_parked().await?;
        let stand = open.log.read_stand().await?;
        let told = open.plugins.about().zip(&open.measured).map(|(about, measured)| Told {
            measures: measured.read(),
            parked: parked.iter().find(|(name, _)| *name == about.name).map_or(0, |(_, steps)| *steps),
            stopped_by: Circuit::restore(stand.circuits.get(&about.name)).opened_by().cloned(),
            about: about.clone(),
        });
        Ok(told.collect())
    }

    pub async fn plugin(&self, name: &str) -> Result<Told> {
        let mut told = self.plugins().await?;
        let place = self.place(name)?;
        Ok(told.swap_remove(place))
    }

    fn place(&self, name: &str) -> Result<usize> {
        self.open().plugins.place(name).ok_or_else(|| Error::not_found("plugin", name))
    }

    /// What a plugin would make of events. Nothing is written.
    pub async fn dry_run(&self, name: &str, trying: Trying) -> Result<Vec<Trial>> {
        let place = self.place(name)?;
        let open = self.open();
        let mut trials = Vec::new();
        for seen in self.tried(place, trying).await? {
            trials.extend(crate::consumer::dry_run::dry_run(open, place, Arc::new(seen)).await?);
        }
        Ok(trials)
    }

    async fn tried(&self, place: usize, trying: Trying) -> Result<Vec<Seen>> {
        let open = self.open();
        match trying {
            Trying::Event(event_id) => {
                let id: Arc<str> = event_id.as_str().into();
                let mut found = open.log.find_events(std::slice::from_ref(&id)).await?;
                let event = found.remove(&id).ok_or_else(|| Error::not_found("event", &event_id))?;
                Ok(recall(open, Arc::new(event)).await?.into_iter().collect())
            }
            Trying::New(new) => Ok(vec![self.imagined(*new)?]),
            Trying::From { position, limit } => {
                let (mut seen, mut position, mut looked) = (Vec::new(), position, 0);
                while looked < LOOK && seen.len() < limit {
                    let events = open.events_after(position, 256).await?;
                    let Some(last) = events.last() else { break };
                    (position, looked) = (last.position, looked + events.len());
                    for event in events {
                        if seen.len() < limit && self.is_called(place, &event) {
                            seen.extend(recall(open, event).await?);
                        }
                    }
                }
                Ok(seen)
            }
        }
    }

    fn is_called(&self, place: usize, event: &Event) -> bool {
        let open = self.open();
        let (Some(about), Some(definition)) = (open.plugins.get(place), open.definition(&event.aggregate_type)) else {
            return false;
        };
        about.on.admits(&event.event_type, &definition.traits)
    }

    /// An event that is not appended, over the aggregate as it is.
    fn imagined(&self, new: NewEvent) -> Result<Seen> {
        let open = self.open();
        let definition = open.definition(&new.aggregate_type).ok_or_else(|| {
            let shown: String = new.aggregate_type.chars().take(64).collect();
            Error::invalid_at("/event/aggregate_type", format!("unknown aggregate type '{shown}'"))
        })?;
        let aggregate_id = AggregateId::parse(&new.aggregate_id)
            .ok_or_else(|| Error::invalid_at("/event/aggregate_id", "no aggregate id"))?;
        let before = open.resident.get(aggregate_id.as_str());
        let now = open.clock.now_ms();
        let event = Arc::new(Event {
            event_id: "dry-run".into(),
            aggregate_id,
            aggregate_type: new.aggregate_type.into(),
            event_type: new.event_type.into(),
            project_id: before.as_ref().and_then(|before| before.project_id.clone()),
            version: before.as_ref().map_or(1, |before| before.version + 1),
            position: open.resident.position() + 1,
            payload: Arc::new(new.payload),
            metadata: Arc::new(new.metadata),
            actor: self.actor(),
            occurred_at: new.occurred_at.unwrap_or(now),
            recorded_at: now,
        });
        let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
        Ok(Seen { event, before, after, definition })
    }

    /// Runs a plugin's enrichment again for all events after a position.
    pub async fn replay_plugin(&self, name: &str, from_position: u64) -> Result<Tally> {
        let place = self.place(name)?;
        let mut working = self.running.working.lock().await;
        let worker = working.as_mut().ok_or(StoreError::Closing)?;
        worker.replay_plugin(place, from_position).await
    }

    /// Closes the circuit of a plugin. Answers whether it was open.
    pub async fn resume_plugin(&self, name: &str) -> Result<bool> {
        let place = self.place(name)?;
        let mut working = self.running.working.lock().await;
        let worker = working.as_mut().ok_or(StoreError::Closing)?;
        worker.close_circuit(place).await
    }
}
