//! Loads the enabled plugins. A plugin that cannot be loaded prevents the start.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use foldwork_engine::hook::Plugin;
use foldwork_engine::model::value::Object;

use crate::folder::Folder;
use crate::script::limits::Limits;
use crate::script::{Script, case};

/// Why a plugin was rejected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The file or the setting.
    pub location: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl LoadError {
    pub(crate) fn new(location: impl Into<String>, message: impl Into<String>) -> LoadError {
        LoadError { location: location.into(), line: None, column: None, message: message.into(), hint: None }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.location)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for LoadError {}

/// Keys of `[plugins]` that cannot be names of plugins.
const RESERVED: [&str; 4] = ["enabled", "folder", "threads", "limits"];

/// Loads the enabled plugins in their order, which is the order in which their hooks are called.
///
/// Native plugins come from [`crate::native()`]. Scripted plugins come from the folder `scripts` or from the program
/// itself. The cases of a plugin must pass with the manifest's settings.
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
    let mut native = crate::native();
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
        let folder = Folder::find(scripts, name)?;
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
