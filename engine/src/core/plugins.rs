//! The plugins of an engine, and the threads on which their hooks run.

use std::ops::{Deref, Index, IndexMut};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::meter::{Measures, Meter};
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

    /// The plugins in the order of execution.
    pub fn indexes(&self) -> impl ExactSizeIterator<Item = PluginIndex> + use<> {
        (0..self.list.len()).map(PluginIndex)
    }

    /// The plugin of this name.
    pub fn find(&self, name: &str) -> Option<PluginIndex> {
        self.indexes().find(|plugin| &*self.about(*plugin).name == name)
    }

    pub fn about(&self, plugin: PluginIndex) -> &About {
        self.list[plugin.0].about()
    }

    pub fn name(&self, plugin: PluginIndex) -> &Arc<str> {
        &self.about(plugin).name
    }

    /// The plugins with a hook that are called for an event type of these traits.
    pub fn called(&self, hook: Hook, event_type: &str, traits: &[Arc<str>]) -> impl Iterator<Item = PluginIndex> {
        let called = move |about: &About| about.hooks.contains(&hook) && about.on.admits(event_type, traits);
        self.indexes().filter(move |plugin| called(self.about(*plugin)))
    }

    /// Calls a hook for each input in turn, and ends early after so many failures in a row. A panic is a failure of
    /// that call. `note` is told what each call took, in microseconds.
    async fn call<I, T>(
        &self,
        plugin: PluginIndex,
        inputs: Vec<Arc<I>>,
        hook: HookCall<I, T>,
        streak: usize,
        meter: Arc<Meter>,
        clock: Arc<dyn Clock>,
    ) -> Vec<Outcome<T>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let plugin = self.list[plugin.0].clone();
        let (answer, answered) = oneshot::channel();
        self.threads.spawn(move || {
            let mut outcomes = Vec::with_capacity(inputs.len());
            let mut failed = 0;
            for input in inputs {
                let began = clock.monotonic_us();
                let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| hook(&*plugin, &input)));
                let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
                meter.note(&plugin.about().name, clock.monotonic_us().saturating_sub(began), &outcome);
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

/// How a hook of a plugin is called with what was prepared for it.
pub type HookCall<I, T> = fn(&dyn Plugin, &I) -> Outcome<T>;

/// One of the engine's plugins, by its number in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginIndex(usize);

/// Something for each plugin.
#[derive(Debug, Clone, Default)]
pub struct PluginMap<T>(Vec<T>);

impl<T> PluginMap<T> {
    pub fn new(plugins: &Plugins, make: impl FnMut(PluginIndex) -> T) -> PluginMap<T> {
        PluginMap(plugins.indexes().map(make).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (PluginIndex, &T)> {
        self.0.iter().enumerate().map(|(index, each)| (PluginIndex(index), each))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PluginIndex, &mut T)> {
        self.0.iter_mut().enumerate().map(|(index, each)| (PluginIndex(index), each))
    }
}

impl<T> Index<PluginIndex> for PluginMap<T> {
    type Output = T;

    fn index(&self, plugin: PluginIndex) -> &T {
        &self.0[plugin.0]
    }
}

impl<T> IndexMut<PluginIndex> for PluginMap<T> {
    fn index_mut(&mut self, plugin: PluginIndex) -> &mut T {
        &mut self.0[plugin.0]
    }
}

/// The plugins as they work in one workspace: called on the engine's threads, measured for the workspace.
pub struct PluginHost {
    plugins: Arc<Plugins>,
    meters: PluginMap<Arc<Meter>>,
    clock: Arc<dyn Clock>,
}

impl PluginHost {
    pub fn new(plugins: Arc<Plugins>, clock: Arc<dyn Clock>) -> PluginHost {
        PluginHost { meters: PluginMap::new(&plugins, |_| Arc::default()), plugins, clock }
    }

    /// Calls a hook for each input in turn, and ends early after so many failures in a row.
    pub async fn call<I, T>(
        &self,
        plugin: PluginIndex,
        inputs: Vec<Arc<I>>,
        hook: HookCall<I, T>,
        streak: usize,
    ) -> Vec<Outcome<T>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let meter = self.meters[plugin].clone();
        self.plugins.call(plugin, inputs, hook, streak, meter, self.clock.clone()).await
    }

    /// Calls a hook once.
    pub async fn call_once<I, T>(&self, plugin: PluginIndex, input: Arc<I>, hook: HookCall<I, T>) -> Outcome<T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        only(self.call(plugin, vec![input], hook, 1).await)
    }

    /// Calls a hook once without counting it among the plugin's calls. Returns the milliseconds that it took too.
    pub async fn try_once<I, T>(&self, plugin: PluginIndex, input: Arc<I>, hook: HookCall<I, T>) -> (Outcome<T>, f64)
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let meter: Arc<Meter> = Arc::default();
        let outcomes = self.plugins.call(plugin, vec![input], hook, 1, meter.clone(), self.clock.clone()).await;
        (only(outcomes), meter.read().p50_ms)
    }

    /// What the plugin's calls took in this workspace since it was opened.
    pub fn measures(&self, plugin: PluginIndex) -> Measures {
        self.meters[plugin].read()
    }
}

impl Deref for PluginHost {
    type Target = Plugins;

    fn deref(&self) -> &Plugins {
        &self.plugins
    }
}

fn only<T>(outcomes: Vec<Outcome<T>>) -> Outcome<T> {
    let message = || "the plugin's thread ended before it answered".to_owned();
    let lost = || Failure { kind: FailureKind::Panic, message: message(), line: None, column: None };
    outcomes.into_iter().next().unwrap_or_else(|| Err(lost()))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure { kind: FailureKind::Panic, message: format!("the plugin panicked: {text}"), line: None, column: None }
}
