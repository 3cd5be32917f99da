//! The plugins of an engine, and the threads on which their hooks run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::measured::Measured;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hook::{About, Failure, FailureKind, Hook, Outcome, Plugin};

/// A thread's stack: scripts may nest their values deeply. What is not used of it takes no memory.
const STACK: usize = 80 << 20;

/// Every plugin, in the order of execution. Their hooks run on threads of their own, so that a slow one delays no
/// request.
pub struct Plugins {
    list: Vec<Arc<dyn Plugin>>,
    threads: rayon::ThreadPool,
}

impl Plugins {
    pub fn new(list: Vec<Arc<dyn Plugin>>, threads: usize) -> Result<Plugins> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .stack_size(STACK)
            .thread_name(|number| format!("plugin-{number}"))
            .build()
            .map_err(Error::internal)?;
        Ok(Plugins { list, threads })
    }

    /// Without any plugin.
    pub fn none() -> Result<Plugins> {
        Plugins::new(Vec::new(), 1)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn about(&self) -> impl ExactSizeIterator<Item = &About> {
        self.list.iter().map(|plugin| plugin.about())
    }

    /// The place of a plugin that has a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.about().position(|about| &*about.name == name)
    }

    pub fn get(&self, place: usize) -> Option<&About> {
        self.list.get(place).map(|plugin| plugin.about())
    }

    /// The name of the plugin at a place; empty where there is none.
    pub fn name(&self, place: usize) -> Arc<str> {
        self.get(place).map(|about| about.name.clone()).unwrap_or_default()
    }

    /// Places of the plugins with a hook that are called for an event type of these traits.
    pub fn called(&self, hook: Hook, event_type: &str, traits: &[Arc<str>]) -> Vec<usize> {
        let called = |about: &About| about.hooks.contains(&hook) && about.on.admits(event_type, traits);
        self.about().enumerate().filter(|(_, about)| called(about)).map(|(place, _)| place).collect()
    }

    /// Calls a hook for each input in turn, and ends early after so many failures in a row.
    ///
    /// A panic is a failure of that call.
    pub async fn call<I, T>(
        &self,
        place: usize,
        inputs: Vec<Arc<I>>,
        hook: fn(&dyn Plugin, &I) -> Outcome<T>,
        streak: usize,
        (clock, measured): (Arc<dyn Clock>, Arc<Measured>),
    ) -> Vec<Outcome<T>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let Some(plugin) = self.list.get(place).cloned() else { return Vec::new() };
        let (answer, answered) = oneshot::channel();
        self.threads.spawn(move || {
            let mut outcomes = Vec::with_capacity(inputs.len());
            let mut failed = 0;
            for input in inputs {
                let began = clock.monotonic_us();
                let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| hook(&*plugin, &input)));
                let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
                measured.note(&plugin.about().name, clock.monotonic_us().saturating_sub(began), &outcome);
                failed = if outcome.is_err() { failed + 1 } else { 0 };
                outcomes.push(outcome);
                if failed == streak {
                    break;
                }
            }
            // Whoever stopped waiting does not mind.
            let _ = answer.send(outcomes);
        });
        answered.await.unwrap_or_default()
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure { kind: FailureKind::Panic, message: format!("the plugin panicked: {text}"), line: None, column: None }
}
