//! The steps after projection: derived events, routing, and the work of scripted agents.

use std::sync::Arc;

use futures_util::future::join_all;

use super::attempt::Calls;
use super::dispatch;
use super::event_context::EventContext;
use super::project::{Routing, call_route};
use super::work::{self, Job};
use super::worker::Worker;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::event::NewEvent;
use crate::model::facts::Product;

impl Worker {
    /// Appends derived events, all at once and in their order. A refused one is a failure of its step.
    pub async fn append_derived(
        &mut self,
        appends: Vec<(PluginIndex, Arc<EventContext>, Vec<NewEvent>)>,
    ) -> Result<()> {
        let state = self.state.clone();
        let (steps, appends): (Vec<_>, Vec<_>) = appends
            .into_iter()
            .map(|(plugin, seen, events)| ((plugin, seen), (state.plugins.name(plugin).clone(), events)))
            .unzip();
        let appender = &self.appender;
        let appends =
            appends.into_iter().map(|(name, events)| async move { dispatch::append(appender, &name, events).await });
        let results = join_all(appends).await;
        for ((plugin, seen), result) in steps.into_iter().zip(results) {
            self.accept(plugin, Hook::Enrich, &seen, result)?;
        }
        Ok(())
    }

    pub async fn route(&mut self, plugin: PluginIndex, routings: Vec<Arc<Routing>>) -> Result<()> {
        let state = self.state.clone();
        let mut calls = Calls { state: &state, plugin, circuit: &mut self.circuits[plugin] };
        let attempts = calls.run(&routings, |routing| &routing.seen.event.event_id, call_route).await;
        let name = state.plugins.name(plugin).clone();
        for (routing, attempt) in routings.iter().zip(attempts) {
            let Some(assigned) = self.reconcile(plugin, Hook::Route, &routing.seen, attempt) else { continue };
            match dispatch::tasks(&routing.seen, &name, &self.roster, assigned) {
                Ok(tasks) => {
                    for task in tasks {
                        let result = dispatch::append(&self.appender, &name, vec![task]).await;
                        self.accept(plugin, Hook::Route, &routing.seen, result)?;
                    }
                }
                Err(failure) => self.park(plugin, Hook::Route, &routing.seen.event, failure, 1),
            }
        }
        Ok(())
    }

    pub async fn work(&mut self, plugin: PluginIndex, jobs: Vec<Arc<Job>>) -> Result<()> {
        let state = self.state.clone();
        let mut calls = Calls { state: &state, plugin, circuit: &mut self.circuits[plugin] };
        let attempts = calls.run(&jobs, |job| &job.seen.event.event_id, work::call).await;
        for (job, attempt) in jobs.iter().zip(attempts) {
            let seen = &job.seen;
            let Some(product) = self.reconcile(plugin, Hook::Work, seen, attempt) else { continue };
            if let Err(failure) = self.deliver(plugin, seen, product).await? {
                self.park(plugin, Hook::Work, &seen.event, failure, 1);
            }
        }
        Ok(())
    }

    /// Appends what a scripted agent made of its task.
    pub async fn deliver(
        &self,
        plugin: PluginIndex,
        seen: &EventContext,
        product: Product,
    ) -> Result<std::result::Result<(), Failure>> {
        let name = self.state.plugins.name(plugin).clone();
        let mut appends = Vec::new();
        let about = work::subject(seen).and_then(|id| self.state.folded.get(&id));
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
