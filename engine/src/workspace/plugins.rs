//! Reads the status and source of the workspace's plugins, and reloads, dry-runs, replays and resumes plugins.

mod dry_run;

use std::sync::Arc;

use super::call_context::{CallContext, Operation};
use super::rights::{Administrator, Reader, Writer};
use crate::consumer::plugins::circuit::Circuit;
use crate::consumer::plugins::replay;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::{Hook, PluginDescription, ScriptSource};
use crate::state::meter::Measures;
use crate::state::plugins::PluginIndex;

pub use crate::consumer::plugins::replay::ReplayTally;
pub use crate::state::releases::AdoptedVersion;
pub use dry_run::{DryRun, DryRunInput, DryRunVersion, HookResult, MAX_SCRIPT_BYTES, MAX_TRIALS, Trial};

/// A plugin and its status in this workspace.
pub struct PluginStatus {
    pub about: PluginDescription,
    /// The adopted version. `None` for a plugin that is compiled into the program, and before the workspace has adopted
    /// a version.
    pub adopted: Option<AdoptedVersion>,
    pub measures: Measures,
    pub parked: u64,
    /// The id of the event whose failure opened the plugin's circuit. `None` if the circuit is closed.
    pub stopped_by: Option<Arc<str>>,
}

/// The source of a plugin's version.
pub struct PluginSource {
    pub version: String,
    pub digest: Option<Arc<str>>,
    /// The names and texts of the files. Empty for a plugin that is compiled into the program.
    pub files: Vec<(&'static str, Arc<str>)>,
}

/// The result of reloading a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct ReloadOutcome {
    pub version: String,
    /// Whether the files differ from the version that was loaded before.
    pub has_changed: bool,
    pub adopted: AdoptedVersion,
}

impl Reader {
    /// Returns the plugins, in the order of execution.
    pub async fn plugins(&self) -> Result<Vec<PluginStatus>> {
        self.context.refresh_graph().await?;
        let state = self.context.state();
        let parked = state.db.count_parked().await?;
        let checkpoint = state.db.read_graph_checkpoint().await?;
        let measures = state.call_counts.read(&state.plugins).await?;
        let status = |(plugin, measures)| {
            let about = state.plugins.about(plugin);
            PluginStatus {
                measures,
                parked: parked.iter().find(|(name, _)| *name == about.name).map_or(0, |(_, steps)| *steps),
                stopped_by: Circuit::restore(checkpoint.circuits.get(&about.name)).opened_by().cloned(),
                adopted: about.digest.as_ref().and_then(|_| AdoptedVersion::of(&checkpoint.versions, &about.name)),
                about: PluginDescription::clone(&about),
            }
        };
        Ok(state.plugins.indexes().zip(measures).map(status).collect())
    }

    /// Returns the plugin with this name.
    pub async fn plugin(&self, name: &str) -> Result<PluginStatus> {
        let found = self.plugins().await?.into_iter().find(|status| &*status.about.name == name);
        found.ok_or_else(|| Error::not_found("plugin", name))
    }

    /// Returns the source of a plugin, in the version that the workspace has adopted.
    pub async fn plugin_source(&self, name: &str) -> Result<PluginSource> {
        let plugin = self.context.plugin_index(name)?;
        self.context.refresh_graph().await?;
        let version = self.context.state().plugins.about(plugin);
        let files = |source: &ScriptSource| {
            [(ScriptSource::MANIFEST, source.manifest.clone()), (ScriptSource::SCRIPT, source.script.clone())].into()
        };
        Ok(PluginSource {
            version: version.version.clone(),
            digest: version.digest.clone(),
            files: version.plugin.source().map(files).unwrap_or_default(),
        })
    }
}

impl Administrator {
    /// Loads a plugin from its current files. All workspaces of the store then adopt the version. This workspace
    /// processes events with the new version from the returned position on. If the files are rejected, the plugin stays
    /// unchanged.
    pub async fn reload_plugin(&self, name: &str) -> Result<ReloadOutcome> {
        let plugin = self.context.plugin_index(name)?;
        Operation::perform(self, move |operation| async move {
            let state = operation.state();
            let has_changed = state.plugins.releases.reload(plugin).await?;
            // The turn adopts the newest versions.
            let turn = operation.worker().await?;
            let stored = state.db.read_graph_checkpoint().await?.versions;
            let about = state.plugins.about(plugin);
            turn.keep();
            let adopted = AdoptedVersion::of(&stored, &about.name);
            let adopted = adopted.ok_or_else(|| Error::not_found("version of the plugin", &about.name))?;
            Ok(ReloadOutcome { version: about.version.clone(), has_changed, adopted })
        })
        .await
    }
}

/// The hooks that a replay runs if the request names no hook, in this order.
const REPLAYED: [Hook; 2] = [Hook::Enrich, Hook::Route];

impl Writer {
    /// Runs hooks of a plugin again for the events after a position. `hook` selects one hook. Without `hook`, runs
    /// `enrich` and `route`. `route` leaves out events for which the plugin has already assigned tasks, and `work` runs
    /// only for tasks without an answer.
    pub async fn replay_plugin(&self, name: &str, hook: Option<Hook>, from_position: u64) -> Result<ReplayTally> {
        let plugin = self.context.plugin_index(name)?;
        Operation::perform(self, move |operation| async move {
            // The turn adopts the newest versions.
            let mut turn = operation.worker().await?;
            let hooks = match replayed_hooks(&operation.state().plugins.about(plugin), hook) {
                Ok(hooks) => hooks,
                Err(refused) => {
                    turn.keep();
                    return Err(refused);
                }
            };
            let mut total = ReplayTally::default();
            for hook in hooks {
                let tally = replay::replay_plugin(&mut turn.worker, plugin, hook, from_position).await?;
                total = total.with(&tally);
            }
            turn.keep();
            Ok(total)
        })
        .await
    }

    /// Counts the events, or for the hook `work` the tasks, for which [`Writer::replay_plugin`] would call a plugin.
    /// Calls no plugin and changes nothing.
    pub async fn count_replay(&self, name: &str, hook: Option<Hook>, from_position: u64) -> Result<ReplayTally> {
        let (plugin, state) = (self.context.plugin_index(name)?, self.context.state());
        self.context.refresh_graph().await?;
        let mut total = ReplayTally::default();
        for hook in replayed_hooks(&state.plugins.about(plugin), hook)? {
            total = total.with(&replay::count(state, plugin, hook, from_position).await?);
        }
        Ok(total)
    }

    /// Closes the circuit of a plugin. Returns whether the circuit was open.
    pub async fn resume_plugin(&self, name: &str) -> Result<bool> {
        let plugin = self.context.plugin_index(name)?;
        Operation::perform(self, move |operation| async move {
            let mut turn = operation.worker().await?;
            let was_open = turn.worker.close_circuit(plugin).await?;
            turn.keep();
            Ok(was_open)
        })
        .await
    }
}

/// Returns the hooks of a plugin that a replay runs again: `hook`, or the hooks in [`REPLAYED`]. Fails if the plugin
/// has none of these hooks.
fn replayed_hooks(about: &PluginDescription, hook: Option<Hook>) -> Result<Vec<Hook>> {
    let wanted = hook.map_or(REPLAYED.to_vec(), |hook| vec![hook]);
    let hooks: Vec<Hook> = wanted.into_iter().filter(|hook| about.hooks.contains(hook)).collect();
    if hooks.is_empty() {
        let names = |hooks: &[Hook]| hooks.iter().map(|hook| hook.name()).collect::<Vec<_>>().join(", ");
        let lacking = hook.map_or_else(|| names(&REPLAYED).replace(", ", " or "), |hook| hook.name().to_owned());
        let has_work = hook.is_none() && about.hooks.contains(&Hook::Work);
        let work = if has_work { "; the hook 'work' is replayed only if the request names this hook" } else { "" };
        let message = format!(
            "the plugin '{}' has no hook {lacking} to replay; its hooks are {}{work}",
            about.name,
            names(&about.hooks)
        );
        return Err(Error::invalid_with_code(ErrorCode::NoSuchHook, message));
    }
    Ok(hooks)
}

impl CallContext {
    fn plugin_index(&self, name: &str) -> Result<PluginIndex> {
        self.state().plugins.find(name).ok_or_else(|| Error::not_found("plugin", name))
    }
}
