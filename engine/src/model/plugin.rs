//! The source of a scripted plugin. A version of a plugin is identified by its source.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::value::Object;

/// The source of a scripted plugin. The result of a call depends only on the input, the source and the limits of the
/// call.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptSource {
    pub name: Arc<str>,
    pub manifest: Arc<str>,
    pub script: Arc<str>,
    /// The settings of the configuration, which override the settings of the manifest.
    pub settings: Object,
}

impl ScriptSource {
    /// The name of the file with the manifest in a plugin's folder.
    pub const MANIFEST: &str = "plugin.toml";
    /// The name of the file with the script in a plugin's folder.
    pub const SCRIPT: &str = "plugin.rhai";

    /// Returns the SHA-256 of the source, as hexadecimal digits. Two sources with the same digest are the same version.
    pub fn digest(&self) -> Arc<str> {
        let settings = serde_json::to_string(&self.settings).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [&*self.name, &*self.manifest, &*self.script, &settings] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hex::encode(hash.finalize()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_with_different_manifests_scripts_or_settings_have_different_digests() {
        let source = |manifest: &str, script: &str, settings: &[(&str, i64)]| ScriptSource {
            name: "plugin".into(),
            manifest: manifest.into(),
            script: script.into(),
            settings: settings.iter().map(|(name, value)| (*name, *value)).collect(),
        };
        let digest = source("ab", "c", &[]).digest();
        assert_eq!(digest, source("ab", "c", &[]).digest());
        assert_ne!(digest, source("a", "bc", &[]).digest());
        assert_ne!(digest, source("ab", "c", &[("x", 1)]).digest());
        assert_eq!(digest.len(), 64);
    }
}
