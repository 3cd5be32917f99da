//! The plugins of one workspace: the versions that the workspace has adopted, and the calls of their hooks.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustc_hash::FxHashSet;
use tokio::sync::Mutex;

use super::plugins::{HookCall, HookInput, HookValue, PluginIndex, PluginMap, PluginVersion, Plugins};
use crate::clock::Clock;
use crate::hook::{Failure, FailureKind, Hook, Outcome, PluginDescription};
use crate::model::agent;
use crate::model::aggregate::Aggregate;
use crate::state::deadlines::Deadlines;
use crate::state::meter::{CallMeter, Measures};
use crate::state::releases::Releases;

/// The plugins of one workspace, each in the version that the workspace has adopted. The plugins run on the engine's
/// threads and are measured per workspace.
pub struct PluginHost {
    /// The plugin versions that were released for all servers of the store.
    pub releases: Arc<Releases>,
    adopted: PluginMap<ArcSwap<PluginVersion>>,
    meters: PluginMap<Arc<CallMeter>>,
    /// Whether each plugin is stopped, as of the consumer's last commit.
    stopped: PluginMap<AtomicBool>,
    /// Whether parked steps have changed since they were last counted.
    parking_changed: AtomicBool,
    /// The time of the next retry of a parked step. Only a server that leads the workspace sets a time. A server that
    /// does not lead reports that another server retries the steps.
    pub retries: Deadlines,
    /// The lock that a dry run holds. Only one dry run of a workspace runs at a time, because plugins share the
    /// engine's threads.
    trying: Mutex<()>,
    clock: Arc<dyn Clock>,
}

impl PluginHost {
    pub fn new(releases: Arc<Releases>, clock: Arc<dyn Clock>) -> PluginHost {
        let plugins = releases.plugins();
        PluginHost {
            adopted: PluginMap::new(plugins, |plugin| ArcSwap::new(plugins.newest(plugin))),
            meters: PluginMap::new(plugins, |_| Arc::default()),
            stopped: PluginMap::new(plugins, |_| AtomicBool::new(false)),
            parking_changed: AtomicBool::new(true),
            retries: Deadlines::default(),
            trying: Mutex::default(),
            releases,
            clock,
        }
    }

    /// Returns the version of a plugin that the workspace has adopted.
    pub fn about(&self, plugin: PluginIndex) -> Arc<PluginVersion> {
        self.adopted[plugin].load_full()
    }

    /// Returns whether a plugin with this name is enabled and has an agent.
    pub fn has_agent(&self, name: &str) -> bool {
        self.find(name).is_some_and(|plugin| self.about(plugin).agent.is_some())
    }

    /// Returns the names of the enabled plugins that have an agent.
    pub fn with_agents(&self) -> FxHashSet<Arc<str>> {
        let names = self.indexes().map(|plugin| self.name(plugin));
        names.filter(|name| self.has_agent(name)).cloned().collect()
    }

    /// Returns whether an agent of the workspace gets work.
    pub fn gives_work_to(&self, agent: &Aggregate) -> bool {
        agent::gets_work(agent, |plugin| self.has_agent(plugin))
    }

    /// Waits until no other dry run is running in the workspace. Other dry runs wait until the result is dropped.
    pub async fn begin_trial(&self) -> impl Drop + Send {
        self.trying.lock().await
    }

    /// Returns whether the workspace has adopted the newest version of every plugin.
    pub fn is_newest(&self) -> bool {
        self.adopted.iter().all(|(plugin, adopted)| adopted.load().is(&self.newest(plugin)))
    }

    /// Adopts versions. On the leader, the workspace's worker calls this function between two events. On other servers,
    /// the graph's mirror adopts the versions that the leader has adopted. Returns whether a version changed.
    pub fn adopt(&self, versions: &PluginMap<Arc<PluginVersion>>) -> bool {
        let mut has_changed = false;
        for (plugin, version) in versions.iter() {
            has_changed |= !self.adopted[plugin].swap(version.clone()).is(version);
        }
        has_changed
    }

    /// Returns the plugins whose hook is called for an event type with these traits.
    pub fn called(&self, hook: Hook, event_type: &str, traits: &[Arc<str>]) -> impl Iterator<Item = PluginIndex> {
        let called =
            move |about: &PluginDescription| about.hooks.contains(&hook) && about.on.admits(event_type, traits);
        self.indexes().filter(move |plugin| called(&self.adopted[*plugin].load()))
    }

    /// Calls a hook for each input in turn, in the given version of the plugin. Stops after `streak` failures in a row.
    pub async fn call<I: HookInput, T: HookValue>(
        &self,
        plugin: PluginIndex,
        version: &PluginVersion,
        inputs: Vec<Arc<I>>,
        hook: HookCall<I, T>,
        streak: usize,
    ) -> Vec<Outcome<T>> {
        let meter = self.meters[plugin].clone();
        self.releases.plugins().call(&version.plugin, inputs, hook, streak, meter, self.clock.clone()).await
    }

    /// Calls a hook once, in the given version of the plugin. The workspace need not have adopted the version.
    pub async fn call_version<I: HookInput, T: HookValue>(
        &self,
        plugin: PluginIndex,
        version: &PluginVersion,
        input: Arc<I>,
        hook: HookCall<I, T>,
    ) -> Outcome<T> {
        only(self.call(plugin, version, vec![input], hook, 1).await)
    }

    /// Calls a hook once, in the given version of a plugin, without counting the call in the measures. The workspace
    /// need not have adopted the version. Also returns the call's duration in milliseconds.
    pub async fn try_once<I: HookInput, T: HookValue>(
        &self,
        version: &PluginVersion,
        input: Arc<I>,
        hook: HookCall<I, T>,
    ) -> (Outcome<T>, f64) {
        let meter: Arc<CallMeter> = Arc::default();
        let call =
            self.releases.plugins().call(&version.plugin, vec![input], hook, 1, meter.clone(), self.clock.clone());
        let outcomes = call.await;
        (only(outcomes), meter.read().p50_ms)
    }

    /// Returns whether a plugin is stopped, as of the consumer's last commit.
    pub fn is_stopped(&self, plugin: PluginIndex) -> bool {
        self.stopped[plugin].load(Ordering::Relaxed)
    }

    pub fn set_stopped(&self, plugin: PluginIndex, stopped: bool) {
        self.stopped[plugin].store(stopped, Ordering::Relaxed);
    }

    /// Records that steps were parked or released.
    pub fn note_parking(&self) {
        self.parking_changed.store(true, Ordering::Release);
    }

    /// Returns whether steps were parked or released since the last call. Also returns `true` on the first call.
    pub fn take_parking_changed(&self) -> bool {
        self.parking_changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the number of calls of all plugins since this server opened the workspace.
    pub fn runs(&self) -> u64 {
        self.meters.iter().map(|(_, meter)| meter.runs()).sum()
    }

    /// Returns the measures of the plugin's calls since this server opened the workspace.
    pub fn measures(&self, plugin: PluginIndex) -> Measures {
        self.meters[plugin].read()
    }
}

impl Deref for PluginHost {
    type Target = Plugins;

    fn deref(&self) -> &Plugins {
        self.releases.plugins()
    }
}

fn only<T>(outcomes: Vec<Outcome<T>>) -> Outcome<T> {
    let message = || "the call of the plugin ended without a result".to_owned();
    let lost = || Failure { kind: FailureKind::Panic, message: message(), line: None, column: None };
    outcomes.into_iter().next().unwrap_or_else(|| Err(lost()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as BlockingMutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::clock::SystemClock;
    use crate::hook::{Candidates, HookOutput, OnError, Plugin, Subscription};
    use crate::model::value::Object;
    use crate::state::plugins::PORTION;
    use crate::store::Store;

    struct Named(PluginDescription);

    impl Plugin for Named {
        fn about(&self) -> &PluginDescription {
            &self.0
        }
    }

    fn named(name: &str) -> Arc<dyn Plugin> {
        Arc::new(Named(PluginDescription {
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

    /// The input of one call. All inputs share the counter `calls`.
    struct Input {
        calls: Arc<AtomicUsize>,
        began: BlockingMutex<Option<oneshot::Sender<()>>>,
        gate: BlockingMutex<Option<mpsc::Receiver<()>>>,
    }

    fn much(_: &dyn Plugin, input: &Input) -> Outcome<()> {
        if let Some(began) = input.began.lock().expect("a lock").take() {
            let _ = began.send(());
        }
        if let Some(gate) = input.gate.lock().expect("a lock").take() {
            let _ = gate.recv();
        }
        input.calls.fetch_add(1, Ordering::SeqCst);
        Ok(HookOutput::default())
    }

    fn little(_: &dyn Plugin, input: &Input) -> Outcome<usize> {
        Ok(HookOutput { value: input.calls.load(Ordering::SeqCst), operations: 0 })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_busy_plugin_does_not_block_other_plugins() {
        const INPUTS: usize = 512;
        let plugins = Arc::new(Plugins::new(vec![named("much"), named("little")], 1).expect("a thread"));
        let store = Store::connect("mem://").await.expect("a store");
        let releases = Arc::new(Releases::open(&store, plugins).await.expect("releases"));
        let host = Arc::new(PluginHost::new(releases, Arc::new(SystemClock)));
        let calls: Arc<AtomicUsize> = Arc::default();
        let (began, has_begun) = oneshot::channel();
        let (open, gate) = mpsc::channel();
        let input = |began, gate| {
            let (began, gate) = (BlockingMutex::new(began), BlockingMutex::new(gate));
            Arc::new(Input { calls: calls.clone(), began, gate })
        };
        let mut inputs = vec![input(Some(began), Some(gate))];
        inputs.extend((1..INPUTS).map(|_| input(None, None)));
        let index = |name| host.find(name).expect("a plugin");
        let (first, second) = (index("much"), index("little"));
        let kept = host.clone();
        let about = host.about(first);
        let much = tokio::spawn(async move { kept.call(first, &about, inputs, much, usize::MAX).await.len() });
        has_begun.await.expect("a call");

        let about = host.about(second);
        let mut call = std::pin::pin!(host.call_version(second, &about, input(None, None), little));
        assert!(futures_util::poll!(&mut call).is_pending(), "the only thread is busy");
        open.send(()).expect("the gate opens");
        let before = call.await.expect("a result").value;
        assert!((1..=PORTION).contains(&before), "{before} calls of the busy plugin ran first");
        assert_eq!(much.await.expect("all calls"), INPUTS);
    }
}
