//! Loads the enabled plugins when the server starts. While the server runs, loads other versions of these plugins, and
//! drafts of scripted plugins for dry runs. If a plugin cannot be loaded at the start, the server does not start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldwork_engine::hook::{Loader, Plugin, PluginDraft, ScriptSource, VersionRefusal};
use foldwork_engine::model::value::Object;

use crate::error::LoadError;
use crate::folder::{CASES, MANIFEST, PluginFolder, SCRIPT};
use crate::limits::CallLimits;
use crate::manifest::Manifest;
use crate::natives::natives;
use crate::script::{Script, case};
use crate::suggestion::did_you_mean;

/// The keys of `[plugins]` that are settings or former settings and therefore cannot be names of plugins.
const RESERVED: [&str; 6] = ["enabled", "folder", "threads", "limits", "watch", "deadline"];

/// Loads the enabled plugins in the given order. The hooks of the plugins are called in the same order.
///
/// Native plugins come from [`crate::natives()`]. Scripted plugins come from the folder `scripts`, or are built into
/// the program. The cases of a scripted plugin must pass with the settings of the manifest.
pub fn load(
    enabled: &[String],
    scripts: &Path,
    settings: &BTreeMap<String, Object>,
    limits: CallLimits,
) -> Result<Vec<Arc<dyn Plugin>>, LoadError> {
    limits.check().map_err(|message| LoadError::new("the limits of the server", message))?;
    let in_list = |message: String| LoadError::new("[plugins] enabled", message);
    let in_table =
        |name: &str, reason: &str| LoadError::new(format!("[plugins.{name}]"), format!("the plugin '{name}' {reason}"));
    if let Some(name) = settings.keys().find(|name| !enabled.contains(name)) {
        let hint = did_you_mean(name, enabled.iter().map(String::as_str));
        return Err(in_table(name, "is not enabled").with_hint(hint));
    }
    if let Some(name) = enabled.iter().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(in_list(format!("'{name}' is a current or former setting, not a plugin")));
    }
    let mut native = natives();
    let mut loaded: Vec<Arc<dyn Plugin>> = Vec::new();
    for name in enabled {
        if loaded.iter().any(|plugin| *plugin.about().name == **name) {
            return Err(in_list(format!("the plugin '{name}' is listed twice")));
        }
        if let Some(index) = native.iter().position(|native| native.name() == name) {
            if settings.contains_key(name) {
                return Err(in_table(name, "has no settings"));
            }
            loaded.push(native.swap_remove(index).plugin);
            continue;
        }
        loaded.push(Arc::new(checked(&find(scripts, name)?, settings.get(name), limits)?));
    }
    Ok(loaded)
}

/// Loads a scripted plugin, and overrides the manifest's settings with `settings`. The test cases of the plugin must
/// pass with the settings of the manifest.
fn checked(folder: &PluginFolder, settings: Option<&Object>, limits: CallLimits) -> Result<Script, LoadError> {
    let script = Script::load(folder, limits)?;
    if let Some(failed) = case::run(&script, folder)?.into_iter().find_map(|outcome| outcome.failure) {
        return Err(failed);
    }
    settings.map_or(Ok(script.clone()), |settings| script.with_settings(settings))
}

/// The folder, the settings and the limits with which plugins are loaded while the server runs.
#[derive(Debug, Clone)]
pub struct Scripts {
    pub folder: PathBuf,
    pub settings: BTreeMap<String, Object>,
    pub limits: CallLimits,
}

impl Scripts {
    /// Returns the files of a scripted plugin, or `None` if no scripted plugin has this name. Messages name the files
    /// without the path of the folder, because clients receive the messages.
    fn find(&self, name: &str) -> Result<Option<PluginFolder>, VersionRefusal> {
        if natives().iter().any(|native| native.name() == name) {
            return Ok(None);
        }
        let shown = |error: LoadError| refused(&self.folder, error);
        let folder = PluginFolder::find(&self.folder, name).map_err(shown)?;
        Ok(folder.map(|folder| PluginFolder { location: name.to_owned(), ..folder }))
    }
}

impl Loader for Scripts {
    fn load(&self, name: &str) -> Result<Option<Arc<dyn Plugin>>, VersionRefusal> {
        let Some(folder) = self.find(name)? else { return Ok(None) };
        let script = checked(&folder, self.settings.get(name), self.limits);
        Ok(Some(Arc::new(script.map_err(|error| refused(&self.folder, error))?)))
    }

    fn restore(&self, source: &ScriptSource) -> Result<Arc<dyn Plugin>, VersionRefusal> {
        let folder = PluginFolder {
            name: source.name.to_string(),
            location: source.name.to_string(),
            manifest: source.manifest.to_string(),
            script: source.script.to_string(),
            cases: String::new(),
        };
        let script = Script::load(&folder, self.limits).and_then(|script| match source.settings.is_empty() {
            true => Ok(script),
            false => script.with_settings(&source.settings),
        });
        Ok(Arc::new(script.map_err(|error| refused(&self.folder, error))?))
    }

    fn draft(&self, name: &str, draft: &PluginDraft) -> Result<Option<Arc<dyn Plugin>>, VersionRefusal> {
        let installed = self.find(name)?;
        let part = |given: &Option<String>, own: fn(&PluginFolder) -> &String| {
            given.clone().or_else(|| installed.as_ref().map(|folder| own(folder).clone()))
        };
        let (manifest, script) = (part(&draft.manifest, |own| &own.manifest), part(&draft.script, |own| &own.script));
        let (Some(manifest), Some(script)) = (manifest, script) else { return Ok(None) };
        // A manifest that a client sends must not raise the limits of the installed plugin.
        let most = match (&draft.manifest, &installed) {
            (None, _) => None,
            (Some(_), Some(folder)) => Some(Manifest::read(folder, self.limits).map_or(self.limits, |own| own.limits)),
            (Some(_), None) => Some(self.limits),
        };
        let (name, cases) = (name.to_owned(), String::new());
        let folder = PluginFolder { location: name.clone(), name: name.clone(), manifest, script, cases };
        let loaded = Script::load_within(&folder, self.limits, most).and_then(|loaded| {
            let settings = self.settings.get(&name).filter(|_| draft.manifest.is_none());
            settings.map_or(Ok(loaded.clone()), |settings| loaded.with_settings(settings))
        });
        let given = |error: LoadError| {
            let refused = refused(&self.folder, error);
            let field = match refused.file.strip_prefix(&format!("{name}/")) {
                Some(MANIFEST) if draft.manifest.is_some() => "manifest",
                Some(SCRIPT) if draft.script.is_some() => "script",
                _ => return refused,
            };
            VersionRefusal { file: field.to_owned(), ..refused }
        };
        Ok(Some(Arc::new(loaded.map_err(given)?)))
    }
}

/// Converts a load error to a refusal. The path of a file in `folder` becomes relative to `folder`.
fn refused(folder: &Path, error: LoadError) -> VersionRefusal {
    let below = Path::new(&error.location).strip_prefix(folder).ok().and_then(Path::to_str);
    let file = below.map_or(error.location.clone(), str::to_owned);
    let message = error.hint.map_or(error.message.clone(), |hint| format!("{}; {hint}", error.message));
    VersionRefusal { file, line: error.line, column: error.column, message }
}

/// The modification times and sizes of a plugin's manifest, script and cases. The entry of a missing file is `None`.
pub type Stamps = [Option<(std::time::SystemTime, u64)>; 3];

/// Returns the modification times and sizes of the files of the plugin `name` in the folder `scripts`.
pub fn stamps(scripts: &Path, name: &str) -> Stamps {
    [MANIFEST, SCRIPT, CASES].map(|file| {
        let found = std::fs::metadata(scripts.join(name).join(file)).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

/// Finds the files of a scripted plugin. Fails if no scripted plugin has this name. The error suggests a similar name
/// if one exists.
fn find(scripts: &Path, name: &str) -> Result<PluginFolder, LoadError> {
    if let Some(folder) = PluginFolder::find(scripts, name)? {
        return Ok(folder);
    }
    let mut known = PluginFolder::names(scripts);
    known.extend(natives().iter().map(|native| native.name().to_owned()));
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    let message = format!("there is no plugin '{name}': {} is not a folder", scripts.join(name).display());
    Err(LoadError::new("[plugins] enabled", message).with_hint(hint))
}
