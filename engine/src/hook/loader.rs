//! The interface that loads versions of scripted plugins.

use std::sync::Arc;

use super::{Plugin, ScriptSource};

/// A new manifest and script of a plugin for a dry run. A part that is `None` is taken from the plugin's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginDraft {
    pub manifest: Option<String>,
    pub script: Option<String>,
}

/// A loader for versions of scripted plugins. All methods check a manifest and a script as strictly as the start of the
/// program does. Only [`Loader::load`] also runs the plugin's cases.
pub trait Loader: Send + Sync + 'static {
    /// Loads a plugin from its current files and runs its test cases. Returns `None` if no scripted plugin has this
    /// name.
    fn load(&self, name: &str) -> Result<Option<Arc<dyn Plugin>>, VersionRefusal>;

    /// Loads a version that was checked before, possibly by another server. Does not run the test cases of the plugin.
    fn restore(&self, source: &ScriptSource) -> Result<Arc<dyn Plugin>, VersionRefusal>;

    /// Loads a draft of a plugin for a dry run. If the draft lacks the manifest or the script, uses the file of the
    /// installed plugin. Returns `None` if one of the two is missing and no scripted plugin has this name. A manifest
    /// in the draft cannot raise the limits of the installed plugin.
    fn draft(&self, name: &str, draft: &PluginDraft) -> Result<Option<Arc<dyn Plugin>>, VersionRefusal>;
}

/// The reason why a version was rejected, and the place of the mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}", place = self.place())]
pub struct VersionRefusal {
    /// The path of the file relative to the folder of all plugins, the name of a setting, or `manifest` or `script` for
    /// a part of a draft.
    pub file: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub message: String,
}

impl VersionRefusal {
    fn place(&self) -> String {
        let numbers = [self.line, self.column].into_iter().flatten().map(|number| format!(":{number}"));
        std::iter::once(self.file.clone()).chain(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_plugin_version_is_reported_with_file_line_and_column() {
        let refused =
            VersionRefusal { file: "a/plugin.rhai".into(), line: Some(3), column: Some(5), message: "no".into() };
        assert_eq!(refused.to_string(), "a/plugin.rhai:3:5: no");
    }
}
