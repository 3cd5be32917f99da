//! Tests that an embedded store contains all acknowledged data after its process was killed. Most tests cover former
//! bugs that lost data (see `vendor/README.md`). `tests/crash/run --faults` tests failing disks.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::events::{EventLimit, LogFilter};
use foldwork_engine::{Sizes, Store};
use foldwork_tests::embedded::engine;
use foldwork_tests::handles::enter;

const KEY: &str = "sk_7777777777777777777777777777777777777777777777777777777777777777";
const MEBIBYTE: usize = 1 << 20;
/// The subfolders of a store that are copied. The store's lock is not copied.
const PARTS: [&str; 4] = ["wal", "sstables", "vlog", "manifest"];

/// A folder with copies of a store. Each copy has the state that a crash leaves.
struct Crashes {
    folder: tempfile::TempDir,
    crashes: usize,
}

/// The commits that are appended between two crashes, and the size of the memtable during this time.
#[derive(Clone, Copy)]
struct Writes {
    memtable_bytes: usize,
    commits: usize,
    bytes_each: usize,
}

impl Crashes {
    fn new() -> Crashes {
        Crashes { folder: tempfile::tempdir().expect("a folder"), crashes: 0 }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join(self.crashes.to_string())
    }

    /// Opens the store that the last crash left, checks that it is complete, appends the commits, and crashes. Returns
    /// the number of events found after opening.
    async fn append(&mut self, writes: Writes) -> u64 {
        let store = self.store();
        let sizes = Sizes { memtable_bytes: writes.memtable_bytes, ..Sizes::default() };
        let opened = Store::connect_with(&format!("surrealkv://{}", store.display()), &sizes).await.expect("a store");
        let engine = engine(opened).await;
        engine.first_start(Some(KEY.into())).await.expect("a start");
        let workspace = enter(&engine, KEY).await.expect("a workspace");

        let found = workspace.reader.position();
        let log = workspace
            .reader
            .log(0, EventLimit::events(usize::MAX), &LogFilter::default(), Duration::ZERO)
            .await
            .expect("the log");
        let positions: Vec<u64> = log.items.iter().map(|event| event.position).collect();
        assert_eq!(positions, (1..=found).collect::<Vec<u64>>(), "events are missing");

        for number in 0..writes.commits {
            let body = Value::from("x".repeat(writes.bytes_each));
            let new = NewEvent {
                aggregate_id: format!("a{number}"),
                aggregate_type: "article".into(),
                event_type: "article.changed".into(),
                payload: [("body", body)].into_iter().collect(),
                ..NewEvent::default()
            };
            workspace.writer.append_events(vec![new]).await.expect("appended");
        }
        flushed(&store).await;
        self.crashes += 1;
        copy(&store, &self.store());
        found
    }

    /// Appends bytes of an incomplete record to the log, like a crash during a write.
    fn tear(&self) {
        self.append_to_log(&[0xff; 64]);
    }

    fn append_to_log(&self, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new().append(true).open(self.segment()).expect("a segment");
        file.write_all(bytes).expect("a torn segment");
    }

    /// Returns the last segment of the log.
    fn segment(&self) -> PathBuf {
        segments(&self.store()).into_iter().max().expect("a segment")
    }

    /// Returns the name and the content of each file in which a repair has saved the torn end of a log segment.
    fn kept(&self) -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(self.store().join("wal")).expect("segments").flatten();
        let named = files.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
        let kept = named.filter(|(name, _)| name.contains(".wal.cut-"));
        kept.map(|(name, path)| (name, fs::read(path).expect("a kept torn end"))).collect()
    }
}

/// Returns the segments of a store's log, without the files in which repairs have saved torn ends of segments.
fn segments(store: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(store.join("wal")).expect("segments").flatten().map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "wal")).collect()
}

/// Waits until every full memtable has been written to a table and its log segment has been removed.
async fn flushed(store: &Path) {
    let all = async {
        while segments(store).len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("full memtables are flushed");
}

/// Copies an open store in a consistent state. The copy is repeated until the manifest, which lists the store's files,
/// is the same before and after the copy.
fn copy(store: &Path, to: &Path) {
    let manifest = || {
        let files = fs::read_dir(store.join("manifest")).expect("a manifest").flatten();
        files.map(|file| fs::read(file.path()).unwrap_or_default()).collect::<Vec<_>>()
    };
    loop {
        let before = manifest();
        let _ = fs::remove_dir_all(to);
        for part in PARTS {
            fs::create_dir_all(to.join(part)).expect("a folder");
            for entry in fs::read_dir(store.join(part)).into_iter().flatten().flatten() {
                // Ignores an error: if the file was removed before the copy, the manifest has changed too.
                let _ = fs::copy(entry.path(), to.join(part).join(entry.file_name()));
            }
        }
        if before == manifest() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_around_a_full_memtable_survive_a_crash() {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: MEBIBYTE, commits: 48, bytes_each: 100_000 };
    assert_eq!(crashes.append(writes).await, 0);
    assert_eq!(crashes.append(writes).await, 48);
    assert_eq!(crashes.append(Writes { commits: 0, ..writes }).await, 96);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_larger_than_a_memtable_survives_a_crash() {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: MEBIBYTE, commits: 2, bytes_each: 3 * MEBIBYTE };
    assert_eq!(crashes.append(writes).await, 0);
    assert_eq!(crashes.append(Writes { commits: 0, ..writes }).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_log_survives_a_crash_when_memtables_become_smaller() {
    let mut crashes = Crashes::new();
    let large = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 48, bytes_each: 100_000 };
    let small = Writes { memtable_bytes: MEBIBYTE, commits: 1, bytes_each: 1_000 };
    assert_eq!(crashes.append(large).await, 0);
    assert_eq!(crashes.append(small).await, 48);
    assert_eq!(crashes.append(small).await, 49);
    assert_eq!(crashes.append(Writes { commits: 0, ..small }).await, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_after_the_repair_of_a_torn_log_survive_a_crash() {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 3, bytes_each: 100 };
    assert_eq!(crashes.append(writes).await, 0);
    crashes.tear();
    assert_eq!(crashes.append(writes).await, 3);
    assert_eq!(crashes.append(Writes { commits: 0, ..writes }).await, 6);
}

/// Appends bytes to the log that a crash left, and checks that the store opens with all events. Returns the name and
/// the content of each file in which the repair has saved the torn end of the log.
async fn torn_by(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 3, bytes_each: 100 };
    assert_eq!(crashes.append(writes).await, 0);
    crashes.append_to_log(bytes);
    assert_eq!(crashes.append(writes).await, 3);
    let kept = crashes.kept();
    assert_eq!(crashes.append(Writes { commits: 0, ..writes }).await, 6);
    assert_eq!(crashes.kept().len(), kept.len(), "kept ends stay, and nothing is truncated again");
    kept
}

#[tokio::test(flavor = "multi_thread")]
async fn the_torn_end_of_a_log_is_kept_beside_the_segment() {
    let bytes = [0xff; 64];
    let kept = torn_by(&bytes).await;
    assert!(matches!(&kept[..], [(name, cut)] if name.ends_with("-1") && cut == &bytes), "{kept:?}");
}

/// The torn record has fewer bytes than the header of a record. If the record stayed in the log, a replay could mistake
/// the record for padding, and could mistake later records for damage.
#[tokio::test(flavor = "multi_thread")]
async fn a_torn_record_shorter_than_a_record_header_is_truncated() {
    let bytes = [0x17, 0x2a, 0x99];
    let kept = torn_by(&bytes).await;
    assert!(matches!(&kept[..], [(_, cut)] if cut == &bytes), "{kept:?}");
}

/// The record is torn at a block boundary. Every remaining block of the record is valid, although the record is
/// incomplete.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_torn_at_a_block_boundary_is_truncated() {
    const BLOCK: u64 = 32 << 10;
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 3, bytes_each: 1_000 };
    assert_eq!(crashes.append(writes).await, 0);
    let large = Writes { commits: 1, bytes_each: 8 * BLOCK as usize, ..writes };
    assert_eq!(crashes.append(large).await, 3);
    // Truncates the log within the record of the event. The records after the event, its node and a checkpoint, are
    // much shorter than the removed part.
    let segment = fs::OpenOptions::new().write(true).open(crashes.segment()).expect("a segment");
    let length = segment.metadata().expect("a length").len();
    segment.set_len((length / BLOCK - 4) * BLOCK).expect("a torn segment");
    assert_eq!(crashes.append(writes).await, 3);
    assert_eq!(crashes.kept().len(), 1);
    assert_eq!(crashes.append(Writes { commits: 0, ..writes }).await, 6);
}

/// The store must not truncate the log at the damage, because acknowledged records after the damage would be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_damaged_before_its_end_is_not_opened() {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 3, bytes_each: 100 };
    assert_eq!(crashes.append(writes).await, 0);
    let mut damaged = fs::read(crashes.segment()).expect("a segment");
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::write(crashes.segment(), &damaged).expect("a damaged segment");

    let url = format!("surrealkv://{}", crashes.store().display());
    let Err(refused) = Store::connect_with(&url, &Sizes::default()).await else { panic!("the store was opened") };
    let message = refused.to_string();
    let names_file = message.contains(&crashes.segment().display().to_string());
    assert!(
        names_file && message.contains("damaged at offset") && message.contains("a whole record follows"),
        "{message}"
    );
    assert_eq!(fs::read(crashes.segment()).expect("a segment"), damaged, "the damaged segment was changed");
    assert_eq!(crashes.kept(), []);
}

/// Reads the log with the reader that later releases of SurrealKV use to convert a store.
#[tokio::test(flavor = "multi_thread")]
async fn later_releases_of_the_storage_engine_read_the_log_of_a_killed_server() {
    let mut crashes = Crashes::new();
    let writes = Writes { memtable_bytes: 64 * MEBIBYTE, commits: 20, bytes_each: 40_000 };
    assert_eq!(crashes.append(writes).await, 0);
    assert_eq!(crashes.append(writes).await, 20);
    let mut next = None;
    let mut bodies = 0;
    for segment in surrealkv_compat_v1::wal_segments(&crashes.store().join("wal")).expect("segments") {
        let read = surrealkv_compat_v1::read_wal_segment(&segment.path).expect("a segment");
        assert_eq!(read.damage, None, "segment {}", segment.id);
        for batch in read.batches {
            assert_eq!(*next.get_or_insert(batch.starting_seq), batch.starting_seq, "a batch is missing");
            next = Some(batch.starting_seq + batch.entries.len() as u64);
            let values = batch.entries.iter().filter_map(|entry| entry.value.as_ref());
            bodies += values.filter(|value| value.len() >= writes.bytes_each).count();
        }
    }
    assert!(bodies >= 2 * writes.commits, "{bodies} of {} bodies are in the log", 2 * writes.commits);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_operating_system_user_of_the_server_can_access_the_folder_of_a_store() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let (new, open) = (folder.path().join("new"), folder.path().join("open"));
    fs::create_dir(&open).expect("a folder");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("the permissions of the folder");
    for path in [new, open] {
        let store = Store::connect_with(&format!("surrealkv://{}", path.display()), &Sizes::default()).await;
        let permissions = fs::metadata(&path).expect("a folder").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o700);
        drop(store.expect("a store"));
    }
}
