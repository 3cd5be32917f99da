//! The steps after projection: derived events, routing, and the work of scripted agents.

use std::sync::Arc;

use futures_util::future::join_all;

use super::attempt::Calls;
use super::dispatch;
use super::project::{Routing, call_route};
use super::work::{self, Assigned};
use super::worker::Worker;
use super::world::Seen;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::event::NewEvent;
use crate::model::facts::Product;

impl Worker {
    /// Appends derived events, all at once and in their order. A refused one is a failure of its step.
    pub async fn append_derived(&mut self, appends: Vec<(usize, Arc<Seen>, Vec<NewEvent>)>) -> Result<()> {
        let plugins = self.open.plugins.clone();
        let (steps, appends): (Vec<_>, Vec<_>) =
            appends.into_iter().map(|(place, seen, events)| ((place, seen), (plugins.name(place), events))).unzip();
        let appender = &self.appender;
        let appends =
            appends.into_iter().map(|(name, events)| async move { dispatch::append(appender, &name, events).await });
        let results = join_all(appends).await;
        for ((place, seen), result) in steps.into_iter().zip(results) {
            self.accept(place, Hook::Enrich, &seen, result)?;
        }
        Ok(())
    }

    pub async fn route(&mut self, place: usize, routings: Vec<Arc<Routing>>) -> Result<()> {
        let (open, plugins) = (self.open.clone(), self.open.plugins.clone());
        let Some(circuit) = self.circuits.get_mut(place) else { return Ok(()) };
        let mut calls = Calls { open: &open, plugins: &plugins, place, circuit };
        let attempts = calls.run(&routings, |routing| &routing.seen.event.event_id, call_route).await;
        let name = plugins.name(place);
        for (routing, attempt) in routings.iter().zip(attempts) {
            let Some(assigned) = self.settle(place, Hook::Route, &routing.seen, attempt) else { continue };
            match dispatch::tasks(&routing.seen, &name, &self.roster, assigned) {
                Ok(tasks) => {
                    for task in tasks {
                        let result = dispatch::append(&self.appender, &name, vec![task]).await;
                        self.accept(place, Hook::Route, &routing.seen, result)?;
                    }
                }
                Err(failure) => self.park(place, Hook::Route, &routing.seen.event, failure, 1),
            }
        }
        Ok(())
    }

    pub async fn work(&mut self, place: usize, jobs: Vec<Arc<Assigned>>) -> Result<()> {
        let (open, plugins) = (self.open.clone(), self.open.plugins.clone());
        let Some(circuit) = self.circuits.get_mut(place) else { return Ok(()) };
        let mut calls = Calls { open: &open, plugins: &plugins, place, circuit };
        let attempts = calls.run(&jobs, |(_, job)| &job.event_id, |plugin, (_, job)| work::call(plugin, job)).await;
        for (job, attempt) in jobs.iter().zip(attempts) {
            let seen = &job.0;
            let Some(product) = self.settle(place, Hook::Work, seen, attempt) else { continue };
            if let Err(failure) = self.deliver(place, seen, product).await? {
                self.park(place, Hook::Work, &seen.event, failure, 1);
            }
        }
        Ok(())
    }

    /// Appends what a scripted agent made of its task.
    pub async fn deliver(
        &self,
        place: usize,
        seen: &Seen,
        product: Product,
    ) -> Result<std::result::Result<(), Failure>> {
        let name = self.open.plugins.name(place);
        let mut appends = Vec::new();
        let about = work::subject(seen).and_then(|id| self.open.resident.get(&id));
        if let Some(about) = about.filter(|_| !product.review) {
            let made = product.artifacts.iter().filter_map(|artifact| artifact.effect.clone());
            appends.push(dispatch::effects(seen, &about, &name, made));
        }
        appends.push(vec![work::delivered(seen, &name, product)]);
        for events in appends {
            if let Err(error) = dispatch::append(&self.appender, &name, events).await {
                return dispatch::refusal(&error).map(Err).ok_or(error);
            }
        }
        Ok(Ok(()))
    }
}
