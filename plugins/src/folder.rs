//! The files of a scripted plugin, read from a folder on disk or from the program itself.

use std::path::Path;

use foldwork_engine::hook::ScriptSource;

use crate::error::LoadError;

/// The content of a scripted plugin's files.
#[derive(Debug, Clone)]
pub struct PluginFolder {
    pub name: String,
    /// The path of the folder, as it appears in messages.
    pub location: String,
    pub manifest: String,
    pub script: String,
    pub cases: String,
}

pub(crate) const MANIFEST: &str = ScriptSource::MANIFEST;
pub(crate) const SCRIPT: &str = ScriptSource::SCRIPT;
pub(crate) const CASES: &str = "cases.toml";

/// Returns the name and the files of a plugin in the folder `scripts` of the repository.
macro_rules! shipped {
    ($name:literal) => {
        (
            $name,
            [
                include_str!(concat!("../../scripts/", $name, "/plugin.toml")),
                include_str!(concat!("../../scripts/", $name, "/plugin.rhai")),
                include_str!(concat!("../../scripts/", $name, "/cases.toml")),
            ],
        )
    };
}

/// The plugins that are built into the program, each with its name, manifest, script and cases.
pub const SHIPPED: [(&str, [&str; 3]); 5] = [
    shipped!("structured_data"),
    shipped!("linker"),
    shipped!("reading_stats"),
    shipped!("trait_router"),
    shipped!("find_stale"),
];

impl PluginFolder {
    /// Returns the files of plugin `name`: from the folder `scripts`, otherwise from the built-in plugins. Returns
    /// `None` if neither has this plugin.
    pub fn find(scripts: &Path, name: &str) -> Result<Option<PluginFolder>, LoadError> {
        let path = scripts.join(name);
        if path.is_dir() { PluginFolder::read(&path).map(Some) } else { Ok(PluginFolder::shipped(name)) }
    }

    /// Reads the files of a plugin from its folder. The file with the cases is optional.
    pub fn read(path: &Path) -> Result<PluginFolder, LoadError> {
        let location = path.display().to_string();
        let read = |file: &str| {
            let path = path.join(file);
            std::fs::read_to_string(&path)
                .map_err(|error| LoadError::new(path.display().to_string(), error.to_string()))
        };
        let cases = if path.join(CASES).exists() { read(CASES)? } else { String::new() };
        let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(PluginFolder { name, manifest: read(MANIFEST)?, script: read(SCRIPT)?, cases, location })
    }

    /// Returns the files of the built-in plugin `name`, or `None` if there is no such plugin.
    pub fn shipped(name: &str) -> Option<PluginFolder> {
        let (name, [manifest, script, cases]) = SHIPPED.into_iter().find(|(shipped, _)| *shipped == name)?;
        let location = format!("scripts/{name}");
        let (manifest, script, cases) = (manifest.to_owned(), script.to_owned(), cases.to_owned());
        Some(PluginFolder { name: name.to_owned(), location, manifest, script, cases })
    }

    /// Returns the sorted names of all scripted plugins: those in the folder `scripts`, and the built-in plugins.
    pub fn names(scripts: &Path) -> Vec<String> {
        let mut names = PluginFolder::within(scripts);
        names.extend(SHIPPED.iter().map(|(name, _)| (*name).to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// Returns the sorted names of the folders in `scripts` that contain a manifest.
    pub fn within(scripts: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(scripts).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().join(MANIFEST).is_file());
        let mut names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.location)
    }
}
