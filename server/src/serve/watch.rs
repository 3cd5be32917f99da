//! Keeps the plugins of a running server current: reloads plugins whose files change, and adopts the versions that
//! other servers of the store release.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::Engine;
use foldwork_plugins::{Stamps, natives, stamps};

use crate::config::Plugins;

/// The interval between checks.
const PAUSE: Duration = Duration::from_secs(1);

/// Checks for released versions at regular intervals until the task is aborted. If the settings enable the watch, also
/// checks for changed files.
pub async fn keep_plugins(engine: Arc<Engine>, settings: Plugins) {
    let mut watch = settings.watch.then(|| PluginWatch::new(engine.clone(), &settings));
    let mut interval = tokio::time::interval(PAUSE);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = engine.refresh_plugins().await {
            tracing::warn!(%error, "the plugin versions that other servers released cannot be read");
        }
        if let Some(watch) = &mut watch {
            watch.check().await;
        }
    }
}

/// A watch of the plugins' files, which reloads plugins whose files have changed. Compares modification times and sizes
/// instead of using events of the file system, so that network folders can be watched as well.
pub struct PluginWatch {
    engine: Arc<Engine>,
    folder: PathBuf,
    watched: Vec<WatchedPlugin>,
}

struct WatchedPlugin {
    name: String,
    /// The modification times and sizes of the files at the last attempt to load the plugin, whatever its outcome.
    tried: Stamps,
    /// The modification times and sizes of the files at the last check.
    seen: Stamps,
}

impl PluginWatch {
    /// Creates a watch of the enabled scripted plugins. The plugins must have been loaded from their current files.
    pub fn new(engine: Arc<Engine>, settings: &Plugins) -> PluginWatch {
        let folder = PathBuf::from(&settings.folder);
        let native: Vec<_> = natives().iter().map(|native| native.name().to_owned()).collect();
        let watched = settings.enabled.iter().filter(|name| !native.contains(name)).map(|name| {
            let tried = stamps(&folder, name);
            WatchedPlugin { name: name.clone(), tried, seen: tried }
        });
        PluginWatch { watched: watched.collect(), engine, folder }
    }

    /// Reloads the plugins whose files have changed since the last attempt to load them. A failed attempt is not
    /// repeated until the files change again. A plugin whose files have changed since the previous check is reloaded at
    /// a later check, because an editor may still be saving files.
    pub async fn check(&mut self) {
        for watched in &mut self.watched {
            let now = stamped(&self.folder, &watched.name).await;
            let is_still = now == watched.seen;
            watched.seen = now;
            if !is_still || now == watched.tried {
                continue;
            }
            watched.tried = now;
            match self.engine.reload_plugin(&watched.name).await {
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, plugin = watched.name, "failed to reload a plugin"),
            }
        }
    }
}

async fn stamped(folder: &Path, name: &str) -> Stamps {
    let (folder, name) = (folder.to_owned(), name.to_owned());
    tokio::task::spawn_blocking(move || stamps(&folder, &name)).await.unwrap_or_default()
}
