//! The plugins of an engine, and the threads that run their hooks.

use std::ops::{Deref, Index, IndexMut};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;

use super::meter::CallMeter;
use super::progress::Progress;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hook::{Failure, FailureKind, Loader, Outcome, Plugin, PluginDescription};

/// The stack size of a plugin thread, in bytes. The stack is large, because scripts may nest values deeply. Unused
/// stack takes no memory.
const STACK: usize = 80 << 20;

/// The maximum number of inputs that a plugin processes in one portion. Other plugins can run on the thread between two
/// portions.
pub(super) const PORTION: usize = 64;
/// The time after which no further call of a portion is started, in microseconds. The remaining inputs are processed in
/// later portions.
pub(super) const PORTION_US: u64 = 5_000;

/// A version of a plugin.
pub struct PluginVersion {
    pub plugin: Arc<dyn Plugin>,
    /// The digest of the version's source. `None` for a plugin that is compiled into the program.
    pub digest: Option<Arc<str>>,
}

impl PluginVersion {
    pub fn new(plugin: Arc<dyn Plugin>) -> PluginVersion {
        PluginVersion { digest: plugin.source().map(|source| source.digest()), plugin }
    }

    /// Returns whether `other` is the same version of the plugin.
    pub fn is(&self, other: &PluginVersion) -> bool {
        self.digest == other.digest
    }
}

impl Deref for PluginVersion {
    type Target = PluginDescription;

    fn deref(&self) -> &PluginDescription {
        self.plugin.about()
    }
}

/// All plugins, in the order of execution. Their hooks run on dedicated threads, so that a slow plugin does not block
/// the threads that serve requests.
pub struct Plugins {
    slots: Vec<PluginSlot>,
    threads: rayon::ThreadPool,
    pub(super) loader: Option<Arc<dyn Loader>>,
    /// The number of versions that were replaced by newer ones.
    replaced: Progress,
}

/// The place of a plugin in the order of execution, with the plugin's newest version.
struct PluginSlot {
    name: Arc<str>,
    newest: ArcSwap<PluginVersion>,
}

impl Plugins {
    /// Starts the threads for plugins. `list` contains the plugins in the order of execution.
    pub fn new(list: Vec<Arc<dyn Plugin>>, threads: usize) -> Result<Plugins> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .stack_size(STACK)
            .thread_name(|number| format!("plugin-{number}"))
            .build()
            .map_err(Error::internal)?;
        let slot = |plugin: Arc<dyn Plugin>| PluginSlot {
            name: plugin.about().name.clone(),
            newest: ArcSwap::from_pointee(PluginVersion::new(plugin)),
        };
        let slots = list.into_iter().map(slot).collect();
        Ok(Plugins { slots, threads, loader: None, replaced: Progress::default() })
    }

    /// Returns an empty set of plugins.
    pub fn none() -> Result<Plugins> {
        Plugins::new(Vec::new(), 1)
    }

    /// Sets the loader, which can load other versions of the plugins.
    pub fn with_loader(self, loader: Arc<dyn Loader>) -> Plugins {
        Plugins { loader: Some(loader), ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the indexes of the plugins in the order of execution.
    pub fn indexes(&self) -> impl ExactSizeIterator<Item = PluginIndex> + use<> {
        (0..self.slots.len()).map(PluginIndex)
    }

    /// Returns the index of the plugin with this name.
    pub fn find(&self, name: &str) -> Option<PluginIndex> {
        self.indexes().find(|plugin| **self.name(*plugin) == *name)
    }

    pub fn name(&self, plugin: PluginIndex) -> &Arc<str> {
        &self.slots[plugin.0].name
    }

    /// Returns the newest version of a plugin. A workspace may not have adopted this version yet.
    pub fn newest(&self, plugin: PluginIndex) -> Arc<PluginVersion> {
        self.slots[plugin.0].newest.load_full()
    }

    /// Replaces the newest version of a plugin. Each workspace adopts the new version between two events.
    pub(super) fn replace(&self, plugin: PluginIndex, version: PluginVersion) {
        self.slots[plugin.0].newest.store(Arc::new(version));
        self.replaced.increment();
    }

    /// Returns a receiver whose value changes when the newest version of a plugin is replaced.
    pub fn follow_versions(&self) -> tokio::sync::watch::Receiver<u64> {
        self.replaced.follow()
    }

    /// Calls a hook for each input in turn. Stops after `streak` failures in a row. A panic counts as a failure of its
    /// call. The meter records the duration of each call.
    ///
    /// The calls are passed to the threads in portions. Other plugins can run between two portions, even if this plugin
    /// is slow or has many inputs.
    pub(super) async fn call<I: HookInput, T: HookValue>(
        &self,
        plugin: &Arc<dyn Plugin>,
        inputs: Vec<Arc<I>>,
        hook: HookCall<I, T>,
        streak: usize,
        meter: Arc<CallMeter>,
        clock: Arc<dyn Clock>,
    ) -> Vec<Outcome<T>> {
        let inputs: Arc<[Arc<I>]> = inputs.into();
        let mut outcomes = Vec::with_capacity(inputs.len());
        let mut failed = 0;
        while outcomes.len() < inputs.len() && failed < streak {
            let (sender, receiver) = oneshot::channel();
            let (plugin, from, inputs) = (plugin.clone(), outcomes.len(), inputs.clone());
            let (meter, clock) = (meter.clone(), clock.clone());
            self.threads.spawn(move || {
                let began = clock.monotonic_us();
                let mut portion = Vec::new();
                for input in inputs.iter().skip(from).take(PORTION) {
                    let called = clock.monotonic_us();
                    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| hook(&*plugin, input)));
                    let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
                    let now = clock.monotonic_us();
                    meter.record(&plugin.about().name, clock.now_ms(), now.saturating_sub(called), &outcome);
                    failed = if outcome.is_err() { failed + 1 } else { 0 };
                    portion.push(outcome);
                    if failed >= streak || now.saturating_sub(began) >= PORTION_US {
                        break;
                    }
                }
                // The send fails if the caller has stopped waiting.
                let _ = sender.send((portion, failed));
            });
            let Ok((portion, failures)) = receiver.await else { break };
            outcomes.extend(portion);
            failed = failures;
        }
        outcomes
    }
}

/// An input of a hook. The threads of the plugins share the input.
pub trait HookInput: Send + Sync + 'static {}

impl<I: Send + Sync + 'static> HookInput for I {}

/// A value that a hook returns. The value moves from the thread of the plugin to the caller.
pub trait HookValue: Send + 'static {}

impl<T: Send + 'static> HookValue for T {}

/// A function that calls a hook of a plugin with a prepared input.
pub type HookCall<I, T> = fn(&dyn Plugin, &I) -> Outcome<T>;

/// The index of a plugin in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginIndex(usize);

/// A map with one value per plugin.
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

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = match text {
        Some(text) => format!("the plugin panicked: {text}"),
        None => "the plugin panicked without a message".to_owned(),
    };
    Failure { kind: FailureKind::Panic, message, line: None, column: None }
}
