//! The counts of plugin calls in one workspace, summed over the servers that share the store.
//!
//! The leader calls most hooks, but any server may call a tool or become the leader. Each server stores its own counts
//! before it publishes the effects of the calls, so every server returns the same sums.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::meter::Measures;
use super::peers::Peers;
use super::plugin_host::PluginHost;
use crate::error::Result;
use crate::store::Database;

/// The minimum age at which the list of living servers counts as outdated. The counts of servers that are missing from
/// an outdated list are not removed.
const MAX_BEAT_AGE: Duration = Duration::from_secs(30);

/// The measures of each plugin, by the plugin's name.
type MeasuresByName = BTreeMap<Arc<str>, Measures>;

/// The stored counts of plugin calls in one workspace.
pub struct CallCounts {
    db: Database,
    /// The servers of the store. `None` if no other process writes to the store.
    peers: Option<Arc<Peers>>,
    /// The state of this server's stored counts. The lock is held while counts are written, so that older counts never
    /// replace newer ones.
    stored: Mutex<Option<StoredCounts>>,
}

struct StoredCounts {
    /// The counts from before this server last opened the workspace.
    earlier: MeasuresByName,
    /// The number of calls from the time when this server last opened the workspace to the last write of the counts.
    runs: u64,
}

impl CallCounts {
    pub fn new(db: Database, peers: Option<Arc<Peers>>) -> CallCounts {
        CallCounts { db, peers, stored: Mutex::default() }
    }

    /// Stores the counts of this server if other servers share the store and plugins were called since the last write.
    /// Only logs a failure, with the value of `workspace`. After a failure, the next call of this function stores these
    /// counts as well.
    pub async fn store(&self, workspace: &str, plugins: &PluginHost) {
        if let Some(peers) = &self.peers
            && let Err(error) = self.write(peers, plugins).await
        {
            tracing::debug!(%error, workspace, "failed to store the counts of plugin calls");
        }
    }

    async fn write(&self, peers: &Peers, plugins: &PluginHost) -> Result<()> {
        let mut stored = self.stored.lock().await;
        let runs = plugins.runs();
        if runs == stored.as_ref().map_or(0, |stored| stored.runs) {
            return Ok(());
        }
        let stored = match &mut *stored {
            Some(stored) => stored,
            None => {
                // After a longer gap, the list of living servers may lack servers that have written counts.
                let is_current = peers.beat_age(Instant::now()) < MAX_BEAT_AGE;
                let alive = is_current.then(|| peers.alive());
                let earlier = self.db.begin_plugin_calls(&peers.server_id, alive.as_deref()).await?.unwrap_or_default();
                stored.insert(StoredCounts { earlier, runs: 0 })
            }
        };
        let mut counts = stored.earlier.clone();
        for plugin in plugins.indexes() {
            counts.entry(plugins.name(plugin).clone()).or_default().add(&plugins.measures(plugin));
        }
        self.db.write_plugin_calls(&peers.server_id, &counts).await?;
        stored.runs = runs;
        Ok(())
    }

    /// Returns the measures of each plugin, summed over all servers that are alive. The plugins are in the order of
    /// execution.
    pub async fn read(&self, plugins: &PluginHost) -> Result<Vec<Measures>> {
        let Some(peers) = &self.peers else {
            return Ok(plugins.indexes().map(|plugin| plugins.measures(plugin)).collect());
        };
        let mut sums = vec![Measures::default(); plugins.indexes().len()];
        for (server, counts) in self.db.read_plugin_calls::<MeasuresByName>().await? {
            if !peers.is_alive(&server) {
                continue;
            }
            for (sum, plugin) in sums.iter_mut().zip(plugins.indexes()) {
                if let Some(measures) = counts.get(plugins.name(plugin)) {
                    sum.add(measures);
                }
            }
        }
        Ok(sums)
    }
}
