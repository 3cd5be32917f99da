//! Opens an embedded store so that nothing written to it is lost after a crash tore the end of its write-ahead log.
//!
//! SurrealKV 0.21 repairs a torn log by putting a new file in its place, but goes on writing to the old one, which no
//! later start finds. So where opening has replaced a file, the store is closed and opened again: the second time
//! there is nothing to repair.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::session::Session;
use super::{Result, Sizes};

/// The lock of the first opening is let go by a task of its own; this long it is waited for.
const TRIES: usize = 200;
const WAIT: Duration = Duration::from_millis(25);

/// Connects to `surrealkv://` and the store's folder.
pub async fn open(url: &str, folder: &Path, sizes: &Sizes) -> Result<Session> {
    let before = files(folder);
    let root = Session::open(url, sizes).await?;
    let after = files(folder);
    let replaced = before.iter().any(|(name, file)| after.get(name).is_some_and(|now| now != file));
    if !replaced {
        return Ok(root);
    }
    tracing::warn!("the end of the store's log was torn; it has been repaired and is opened again");
    drop(root);
    for _ in 1..TRIES {
        tokio::time::sleep(WAIT).await;
        if let Ok(root) = Session::open(url, sizes).await {
            return Ok(root);
        }
    }
    Session::open(url, sizes).await
}

/// The segments of the write-ahead log, by name, with what tells a file from another of the same name.
fn files(folder: &Path) -> BTreeMap<std::ffi::OsString, u64> {
    let entries = std::fs::read_dir(folder.join("wal")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.ino()))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::sync::Arc;

    use crate::clock::SystemClock;
    use crate::model::event::NewEvent;
    use crate::{Engine, Plugins, Settings, Store};

    /// Opens the store in a folder, appends events to one stream, and answers how many there are now. What a crash
    /// would leave at that moment is copied to `crashed`.
    async fn append(folder: &Path, events: usize, crashed: &Path) -> u64 {
        let key = format!("sk_{}", "7".repeat(64));
        let store = Store::connect(&format!("surrealkv://{}", folder.display())).await.expect("a store");
        let engine =
            Engine::open(store, Arc::new(SystemClock), Settings::default(), Plugins::none().expect("no plugins"))
                .await
                .expect("an engine");
        engine.first_start(Some(key.clone())).await.expect("a workspace");
        let caller = engine.authenticate(&key).await.expect("a caller");
        let scopes = caller.scopes().to_vec();
        let workspace = engine.enter(caller, &scopes).await.expect("a workspace");
        for _ in 0..events {
            let new = NewEvent {
                aggregate_id: "a".into(),
                aggregate_type: "article".into(),
                event_type: "article.updated".into(),
                ..NewEvent::default()
            };
            workspace.append_events(vec![new]).await.expect("appended");
        }
        for part in ["wal", "manifest", "sstables", "vlog"] {
            std::fs::create_dir_all(crashed.join(part)).expect("a folder");
            for entry in std::fs::read_dir(folder.join(part)).expect("a folder").flatten() {
                std::fs::copy(entry.path(), crashed.join(part).join(entry.file_name())).expect("copied");
            }
        }
        workspace.position()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_written_after_a_torn_log_was_repaired_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        assert_eq!(append(&path("first"), 3, &path("second")).await, 3);
        let segments = std::fs::read_dir(path("second/wal")).expect("segments").flatten().map(|entry| entry.path());
        let last = segments.max().expect("a segment");
        let mut file = std::fs::OpenOptions::new().append(true).open(last).expect("a segment");
        file.write_all(&[0xff; 64]).expect("torn");
        assert_eq!(append(&path("second"), 4, &path("third")).await, 7);
        assert_eq!(append(&path("third"), 0, &path("fourth")).await, 7);
    }
}
