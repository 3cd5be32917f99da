//! The versions of scripted plugins that all servers of a store use.
//!
//! A server releases a version when it starts with files that differ from the newest release, and when an operator
//! reloads a changed plugin. The control database stores the newest release of each plugin. Each workspace adopts this
//! release between two events. The checkpoint of the graph stores the adopted version and the position of its first
//! event, so exactly one version processes each event when the follower reaches the event. Later retries, replays and
//! rebuilds use the version that is adopted at that time.
//!
//! A step is written only if the checkpoint still names the versions that the step ran with, so the store decides which
//! version processed an event. If a server finds the digest of another version in the checkpoint, the server loads the
//! newest releases from the control database. If the checks of the loader reject the files of a plugin, reloading the
//! plugin changes nothing.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::plugins::{PluginIndex, PluginMap, PluginVersion, Plugins};
use crate::error::{Error, ErrorCode, Result};
use crate::hook::{Loader, VersionRefusal};
use crate::model::value::{Object, Value};
use crate::shared_check::SharedCheck;
use crate::store::{self, Database, Store};

/// The plugins of an engine, with the releases in its store.
pub struct Releases {
    control: Database,
    plugins: Arc<Plugins>,
    /// Whether no other process writes to the store.
    exclusive: bool,
    /// The lock that is held while a release is read or written.
    release_lock: Mutex<()>,
    checked: SharedCheck,
}

impl Releases {
    /// Opens the releases of a store. If the newest version of a plugin in this process differs from the release in the
    /// store, releases the version of this process.
    pub async fn open(store: &Store, plugins: Arc<Plugins>) -> Result<Releases> {
        let (control, exclusive) = (store.control().await?, store.is_exclusive());
        let releases =
            Releases { control, plugins, exclusive, release_lock: Mutex::default(), checked: SharedCheck::default() };
        let released = releases.control.read_released().await?;
        for plugin in releases.plugins.indexes() {
            let version = releases.plugins.newest(plugin);
            let is_released = |digest: &Arc<str>| released.contains(&(version.name.clone(), digest.clone()));
            if version.digest.as_ref().is_some_and(|digest| !is_released(digest)) {
                releases.write(&version).await?;
            }
        }
        Ok(releases)
    }

    pub fn plugins(&self) -> &Arc<Plugins> {
        &self.plugins
    }

    /// Loads a plugin from its current files. If the loaded version differs from the newest version, releases the
    /// loaded version. Returns whether the versions differ.
    pub async fn reload(&self, plugin: PluginIndex) -> Result<bool> {
        let _one = self.release_lock.lock().await;
        let name = self.plugins.name(plugin).clone();
        let loaded = self.load(move |loader| loader.load(&name)).await?;
        let Some(loaded) = loaded.map_err(|refused| conflict(&refused))? else {
            let name = self.plugins.name(plugin);
            let message = format!("the plugin '{name}' is a part of the program and has no files");
            return Err(Error::invalid_with_code(ErrorCode::PluginWithoutFiles, message));
        };
        let version = PluginVersion::new(loaded);
        if version.is(&self.plugins.newest(plugin)) {
            return Ok(false);
        }
        self.write(&version).await?;
        self.replace(plugin, version);
        Ok(true)
    }

    /// Loads the plugin versions that other servers have released. Concurrent calls share one query.
    pub async fn refresh(&self) -> Result<()> {
        if self.exclusive { Ok(()) } else { self.checked.share(|| self.load_released()).await }
    }

    async fn load_released(&self) -> Result<()> {
        let _one = self.release_lock.lock().await;
        for (name, digest) in self.control.read_released().await? {
            let Some(plugin) = self.plugins.find(&name) else { continue };
            if self.plugins.newest(plugin).digest.as_ref().is_none_or(|known| *known == digest) {
                continue;
            }
            let Some(source) = self.control.find_release(&name).await? else { continue };
            let restored = self.load(move |loader| loader.restore(&source).map(Some)).await?;
            // This server cannot process events with the released version, so its workers wait.
            let restored = restored.map_err(|refused| {
                tracing::error!(%refused, plugin = %name, "failed to load a plugin version released by another server");
                let record = Some(format!("the released version of the plugin '{name}'"));
                Error::Unavailable(store::Error::Corrupt { record, reason: refused.to_string() })
            })?;
            let restored = restored.ok_or_else(|| Error::not_found("plugin", &name))?;
            self.replace(plugin, PluginVersion::new(restored));
        }
        Ok(())
    }

    /// Runs the loader on a thread for blocking work. Returns `None` if the engine has no loader or `load` returns
    /// `None`.
    pub async fn load<T: Send + 'static>(
        &self,
        load: impl FnOnce(&dyn Loader) -> Result<Option<T>, VersionRefusal> + Send + 'static,
    ) -> Result<Result<Option<T>, VersionRefusal>> {
        let Some(loader) = self.plugins.loader.clone() else { return Ok(Ok(None)) };
        tokio::task::spawn_blocking(move || load(&*loader)).await.map_err(Error::internal)
    }

    async fn write(&self, version: &PluginVersion) -> Result<()> {
        if let (Some(source), Some(digest)) = (version.plugin.source(), &version.digest) {
            self.control.write_release(source, digest).await?;
        }
        Ok(())
    }

    fn replace(&self, plugin: PluginIndex, version: PluginVersion) {
        tracing::info!(
            plugin = %version.name, version = version.version, digest = ?version.digest,
            "a new plugin version is in use"
        );
        self.plugins.replace(plugin, version);
    }
}

/// Returns the error for a version that the checks reject, with the file, line and column of the mistake.
fn conflict(refused: &VersionRefusal) -> Error {
    let number = |number: Option<usize>| Value::from(number.and_then(|number| i64::try_from(number).ok()));
    let details = Object::from_iter([
        ("file", Value::from(refused.file.as_str())),
        ("line", number(refused.line)),
        ("column", number(refused.column)),
    ]);
    Error::conflict_with(ErrorCode::PluginRefused, refused.to_string(), details)
}

/// A plugin version that a workspace has adopted, as stored in the workspace's checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptedVersion {
    /// The digest of the version's source.
    pub digest: Arc<str>,
    /// The position of the first event that the version processes.
    pub from_position: u64,
}

const DIGEST: &str = "digest";
const FROM: &str = "from";

impl AdoptedVersion {
    /// Returns the adopted version of a plugin from `stored`, the stored form of a workspace's adopted versions.
    /// Returns `None` if `stored` contains no version of the plugin.
    pub fn of(stored: &Object, plugin: &str) -> Option<AdoptedVersion> {
        let entry = stored.get(plugin).and_then(Value::as_object)?;
        let from = entry.get(FROM).and_then(Value::as_int).unwrap_or_default();
        Some(AdoptedVersion {
            digest: entry.get(DIGEST)?.as_str()?.into(),
            from_position: u64::try_from(from).unwrap_or(0),
        })
    }

    /// Returns the new stored form of the adopted versions, or `None` if `stored` needs no change. The first event that
    /// a new version processes is the event after `position`. The adopted versions of plugins that `versions` does not
    /// contain stay unchanged.
    pub fn changed(stored: &Object, versions: &PluginMap<Arc<PluginVersion>>, position: u64) -> Option<Object> {
        let mut changed = stored.clone();
        for (_, version) in versions.iter() {
            let Some(digest) = &version.digest else { continue };
            if AdoptedVersion::of(stored, &version.name).is_some_and(|adopted| adopted.digest == *digest) {
                continue;
            }
            let from = i64::try_from(position + 1).unwrap_or(i64::MAX);
            let entry = Object::from_iter([(DIGEST, Value::from(digest.clone())), (FROM, from.into())]);
            changed.insert(version.name.clone(), Value::from(entry));
        }
        (changed != *stored).then_some(changed)
    }
}
