//! The plugins of an engine, and the threads that run their hooks.

use std::ops::{Deref, Index, IndexMut};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::meter::{Measures, Meter};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hook::{About, Failure, FailureKind, Hook, Outcome, Plugin};

/// The stack size of a plugin thread, in bytes. Scripts may nest values deeply, and unused stack takes no memory.
const STACK: usize = 80 << 20;

/// The maximum number of inputs that a plugin processes before other plugins run on its thread.
const PORTION: usize = 64;
/// The time after which other plugins run on a plugin's thread, in microseconds.
const PORTION_US: u64 = 5_000;

/// All plugins, in the order of execution. Their hooks run on dedicated threads, so that a slow plugin delays no
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

    /// Returns an empty set of plugins.
    pub fn none() -> Result<Plugins> {
        Plugins::new(Vec::new(), 1)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the indexes of the plugins in the order of execution.
    pub fn indexes(&self) -> impl ExactSizeIterator<Item = PluginIndex> + use<> {
        (0..self.list.len()).map(PluginIndex)
    }

    /// Returns the plugin with this name.
    pub fn find(&self, name: &str) -> Option<PluginIndex> {
        self.indexes().find(|plugin| &*self.about(*plugin).name == name)
    }

    pub fn about(&self, plugin: PluginIndex) -> &About {
        self.list[plugin.0].about()
    }

    /// Returns a plugin. Only the host calls the plugin's hooks, on its own threads.
    pub fn get(&self, plugin: PluginIndex) -> &dyn Plugin {
        &*self.list[plugin.0]
    }

    pub fn name(&self, plugin: PluginIndex) -> &Arc<str> {
        &self.about(plugin).name
    }

    /// Returns the plugins whose hook is called for an event type with these traits.
    pub fn called(&self, hook: Hook, event_type: &str, traits: &[Arc<str>]) -> impl Iterator<Item = PluginIndex> {
        let called = move |about: &About| about.hooks.contains(&hook) && about.on.admits(event_type, traits);
        self.indexes().filter(move |plugin| called(self.about(*plugin)))
    }

    /// Calls a hook for each input in turn. Stops after `streak` failures in a row. A panic counts as a failure of its
    /// call. The meter records the duration of each call.
    ///
    /// The calls are passed to the threads in portions. Other plugins can run between two portions, even if this plugin
    /// is slow or has many inputs.
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
        let inputs: Arc<[Arc<I>]> = inputs.into();
        let mut outcomes = Vec::with_capacity(inputs.len());
        let mut failed = 0;
        while outcomes.len() < inputs.len() && failed < streak {
            let (sender, receiver) = oneshot::channel();
            let (plugin, from, inputs) = (self.list[plugin.0].clone(), outcomes.len(), inputs.clone());
            let (meter, clock) = (meter.clone(), clock.clone());
            self.threads.spawn(move || {
                let began = clock.monotonic_us();
                let mut portion = Vec::new();
                for input in inputs.iter().skip(from).take(PORTION) {
                    let called = clock.monotonic_us();
                    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| hook(&*plugin, input)));
                    let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
                    let now = clock.monotonic_us();
                    meter.note(&plugin.about().name, now.saturating_sub(called), &outcome);
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

/// The plugins of one workspace. They run on the engine's threads and are measured per workspace.
pub struct PluginHost {
    plugins: Arc<Plugins>,
    meters: PluginMap<Arc<Meter>>,
    clock: Arc<dyn Clock>,
}

impl PluginHost {
    pub fn new(plugins: Arc<Plugins>, clock: Arc<dyn Clock>) -> PluginHost {
        PluginHost { meters: PluginMap::new(&plugins, |_| Arc::default()), plugins, clock }
    }

    /// Calls a hook for each input in turn. Stops after `streak` failures in a row.
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

    /// Calls a hook once without counting the call in the measures. Also returns the call's duration in milliseconds.
    pub async fn try_once<I, T>(&self, plugin: PluginIndex, input: Arc<I>, hook: HookCall<I, T>) -> (Outcome<T>, f64)
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let meter: Arc<Meter> = Arc::default();
        let outcomes = self.plugins.call(plugin, vec![input], hook, 1, meter.clone(), self.clock.clone()).await;
        (only(outcomes), meter.read().p50_ms)
    }

    /// Returns the measures of the plugin's calls in this workspace since it was opened.
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
    let message = || "the plugin's thread ended before it returned a result".to_owned();
    let lost = || Failure { kind: FailureKind::Panic, message: message(), line: None, column: None };
    outcomes.into_iter().next().unwrap_or_else(|| Err(lost()))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure { kind: FailureKind::Panic, message: format!("the plugin panicked: {text}"), line: None, column: None }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::hook::{Candidates, Done, OnError, Subscription};
    use crate::model::value::Object;

    struct Named(About);

    impl Plugin for Named {
        fn about(&self) -> &About {
            &self.0
        }
    }

    fn named(name: &str) -> Arc<dyn Plugin> {
        Arc::new(Named(About {
            name: name.into(),
            version: "1.0.0".into(),
            description: String::new(),
            hooks: vec![Hook::Enrich],
            on: Subscription::default(),
            on_error: OnError::Park,
            settings: Object::new(),
            agent: None,
            tool: None,
            candidates: Candidates::default(),
        }))
    }

    /// The input shared by the calls of both plugins.
    struct Input {
        calls: Arc<AtomicUsize>,
        began: Mutex<Option<oneshot::Sender<()>>>,
        gate: Mutex<Option<mpsc::Receiver<()>>>,
    }

    fn much(_: &dyn Plugin, input: &Input) -> Outcome<()> {
        if let Some(began) = input.began.lock().expect("a lock").take() {
            let _ = began.send(());
        }
        if let Some(gate) = input.gate.lock().expect("a lock").take() {
            let _ = gate.recv();
        }
        input.calls.fetch_add(1, Ordering::SeqCst);
        Ok(Done::default())
    }

    fn little(_: &dyn Plugin, input: &Input) -> Outcome<usize> {
        Ok(Done { value: input.calls.load(Ordering::SeqCst), operations: 0 })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_busy_plugin_does_not_starve_others() {
        const INPUTS: usize = 512;
        let plugins = Arc::new(Plugins::new(vec![named("much"), named("little")], 1).expect("a thread"));
        let host = Arc::new(PluginHost::new(plugins, Arc::new(SystemClock)));
        let calls: Arc<AtomicUsize> = Arc::default();
        let (began, has_begun) = oneshot::channel();
        let (open, gate) = mpsc::channel();
        let input = |began, gate| {
            let (began, gate) = (Mutex::new(began), Mutex::new(gate));
            Arc::new(Input { calls: calls.clone(), began, gate })
        };
        let mut inputs = vec![input(Some(began), Some(gate))];
        inputs.extend((1..INPUTS).map(|_| input(None, None)));
        let index = |name| host.find(name).expect("a plugin");
        let (first, second) = (index("much"), index("little"));
        let kept = host.clone();
        let much = tokio::spawn(async move { kept.call(first, inputs, much, usize::MAX).await.len() });
        has_begun.await.expect("a call");

        let mut call = std::pin::pin!(host.call_once(second, input(None, None), little));
        assert!(futures_util::poll!(&mut call).is_pending(), "the only thread is busy");
        open.send(()).expect("the gate opens");
        let before = call.await.expect("called").value;
        assert!((1..=PORTION).contains(&before), "{before} calls ran first");
        assert_eq!(much.await.expect("all calls"), INPUTS);
    }
}
