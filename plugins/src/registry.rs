//! Loads the enabled plugins. If a plugin cannot be loaded, the server does not start.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use foldwork_engine::hook::Plugin;
use foldwork_engine::model::value::Object;

use crate::error::LoadError;
use crate::folder::Folder;
use crate::limits::Limits;
use crate::natives::natives;
use crate::script::{Script, case};

/// The keys of `[plugins]` that are settings and therefore cannot be names of plugins.
const RESERVED: [&str; 4] = ["enabled", "folder", "threads", "limits"];

/// Loads the enabled plugins in the given order. Their hooks are called in the same order.
///
/// Native plugins come from [`crate::natives()`]. Scripted plugins come from the folder `scripts`, or are built into
/// the program. The cases of a scripted plugin must pass with the settings of the manifest.
pub fn load(
    enabled: &[String],
    scripts: &Path,
    settings: &BTreeMap<String, Object>,
    limits: Limits,
) -> Result<Vec<Arc<dyn Plugin>>, LoadError> {
    limits.check().map_err(|message| LoadError::new("[plugins.limits]", message))?;
    if let Some(name) = settings.keys().find(|name| !enabled.contains(name)) {
        let hint = crate::suggestion::nearest(name, enabled.iter().map(String::as_str));
        let error = LoadError::new(format!("[plugins.{name}]"), format!("the plugin '{name}' is not enabled"));
        return Err(LoadError { hint: hint.map(|hint| format!("did you mean '{hint}'?")), ..error });
    }
    if let Some(name) = enabled.iter().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(LoadError::new("[plugins] enabled", format!("'{name}' is a setting, not a plugin")));
    }
    let mut native = natives();
    let mut loaded: Vec<Arc<dyn Plugin>> = Vec::new();
    for name in enabled {
        if loaded.iter().any(|plugin| *plugin.about().name == **name) {
            return Err(LoadError::new("[plugins] enabled", format!("'{name}' is listed twice")));
        }
        if let Some(index) = native.iter().position(|native| native.name() == name) {
            if settings.contains_key(name) {
                return Err(LoadError::new(
                    format!("[plugins.{name}]"),
                    format!("the plugin '{name}' has no settings"),
                ));
            }
            loaded.push(native.swap_remove(index).plugin);
            continue;
        }
        let folder = find(scripts, name)?;
        let script = Script::load(&folder, limits)?;
        if let Some(failed) = case::run(&script, &folder)?.into_iter().find_map(|outcome| outcome.failure) {
            return Err(failed);
        }
        let script = match settings.get(name) {
            Some(settings) => script.with_settings(settings)?,
            None => script,
        };
        loaded.push(Arc::new(script));
    }
    Ok(loaded)
}

/// Finds the files of a scripted plugin. If there is no such plugin, the error suggests the most similar name.
fn find(scripts: &Path, name: &str) -> Result<Folder, LoadError> {
    if let Some(folder) = Folder::find(scripts, name)? {
        return Ok(folder);
    }
    let mut known = Folder::names(scripts);
    known.extend(natives().iter().map(|native| native.name().to_owned()));
    let hint = crate::suggestion::nearest(name, known.iter().map(String::as_str));
    let message = format!("there is no plugin '{name}': {} is not a folder", scripts.join(name).display());
    Err(LoadError {
        hint: hint.map(|hint| format!("did you mean '{hint}'?")),
        ..LoadError::new("[plugins] enabled", message)
    })
}
