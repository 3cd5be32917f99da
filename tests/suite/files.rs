//! Tests concurrent and interrupted uploads: the quota is never exceeded, and no bytes remain without a file that
//! refers to them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::workspace::files::{Incoming, NewFile, StorageUsage, UploadOutcome};
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_tests::handles::{Handles, enter};
use futures_util::{FutureExt, StreamExt, stream};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The time limit for each wait of a test. A wait reaches the limit only if the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const SIZE: usize = 100_000;

/// A store with its files in a folder. Several engines share the store, like servers.
struct Shared {
    store: Store,
    folder: TempDir,
}

impl Shared {
    async fn new() -> Shared {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::connect("mem://").await.expect("a store");
        let url = format!("file://{}", folder.path().display());
        Shared { store: store.with_files(&url, []).expect("a folder for files"), folder }
    }

    async fn engine(&self, settings: EngineSettings) -> Arc<Engine> {
        let plugins = Plugins::none().expect("no plugins");
        Engine::open(self.store.share(), Arc::new(SystemClock), settings, plugins).await.expect("an engine")
    }

    /// Opens two engines on this store. Returns both engines' handles for the first workspace, and the key of the
    /// workspace.
    async fn twins(&self, settings: EngineSettings) -> ([Handles; 2], String) {
        let (one, two) = (self.engine(settings.clone()).await, self.engine(settings).await);
        let key = one.first_start(None).await.expect("started").expect("a new store").key;
        ([enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace")], key)
    }

    /// Returns the sizes of all files in the folder.
    fn on_disk(&self) -> Vec<u64> {
        let entries = |path: &Path| std::fs::read_dir(path).expect("a folder").filter_map(Result::ok);
        let files = entries(self.folder.path()).flat_map(|workspace| entries(&workspace.path()));
        // Skips files that are removed during the listing.
        files.filter_map(|file| Some(file.metadata().ok()?.len())).collect()
    }

    /// Waits until the storage usage matches the files in the folder: the number of files, their total size, and the
    /// bytes that count towards the quota. Returns the storage usage.
    async fn agrees(&self, workspace: &Handles) -> StorageUsage {
        let look = async {
            loop {
                let usage = workspace.reader.storage_usage().await.expect("counted");
                let on_disk = self.on_disk();
                let same = usage.used_bytes == usage.file_bytes
                    && usage.used_bytes == on_disk.iter().sum::<u64>()
                    && usage.files == on_disk.len() as u64;
                if same {
                    return usage;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let agreed = tokio::time::timeout(TIMEOUT, look).await;
        assert!(agreed.is_ok(), "the storage usage differs from the files on the disk: {:?}", self.on_disk());
        agreed.expect("the usage matches the disk")
    }
}

fn limited(quota_bytes: u64) -> EngineSettings {
    EngineSettings { quota_bytes, ..EngineSettings::default() }
}

fn new_file(filename: &str, size: Option<u64>) -> NewFile {
    NewFile { filename: filename.into(), mime_type: "text/plain".into(), size, ..NewFile::default() }
}

/// Returns this many bytes in three blocks.
fn bytes(size: usize, seed: u8) -> Incoming {
    let block = size / 3;
    let blocks = [block, block, size - 2 * block].map(|size| Ok(vec![seed; size].into()));
    stream::iter(blocks).boxed()
}

/// Uploads a file and retries while the store is unavailable.
async fn upload(workspace: &Handles, new: &NewFile, size: usize, seed: u8) -> Result<UploadOutcome, Error> {
    loop {
        match workspace.writer.upload_file(new.clone(), bytes(size, seed)).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

/// Starts fifty concurrent uploads, of which ten fit into the quota, and checks that exactly ten succeed.
async fn fifty(shared: &Shared, over: &[Handles], announced: bool) {
    let uploads = (0..50u8).map(|number| {
        let workspace = over[usize::from(number) % over.len()].clone();
        let new = new_file(&format!("{number}.bin"), announced.then_some(SIZE as u64));
        tokio::spawn(async move { upload(&workspace, &new, SIZE, number).await })
    });
    let mut stored = 0;
    for upload in uploads.collect::<Vec<_>>() {
        match upload.await.expect("no panic") {
            Ok(_) => stored += 1,
            Err(error) => {
                let is_full = matches!(error, Error::Invalid { code: ErrorCode::StorageQuotaExceeded, .. });
                assert!(is_full, "{error}");
            }
        }
    }
    assert_eq!(stored, 10);
    for workspace in over {
        let usage = shared.agrees(workspace).await;
        assert_eq!((usage.files, usage.used_bytes), (10, 10 * SIZE as u64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uploads_are_stored_up_to_the_quota() {
    for announced in [true, false] {
        let shared = Shared::new().await;
        let ([one, _], _) = shared.twins(limited(11 * SIZE as u64 - 1)).await;
        fifty(&shared, &[one], announced).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uploads_on_two_servers_respect_the_quota() {
    for announced in [true, false] {
        let shared = Shared::new().await;
        let (twins, _) = shared.twins(limited(11 * SIZE as u64 - 1)).await;
        fifty(&shared, &twins, announced).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_or_deleted_file_leaves_no_bytes() {
    let shared = Shared::new().await;
    let ([one, two], _) = shared.twins(limited(0)).await;
    let new = new_file("a.bin", None);
    let first = upload(&one, &new, SIZE, 1).await.expect("stored");
    assert!(!first.replaced);
    let again = upload(&two, &new, SIZE, 1).await.expect("stored");
    assert_eq!((again.replaced, again.file.version), (true, 1), "the same bytes make no new version");
    assert_eq!(shared.agrees(&one).await.files, 1);
    let other = upload(&two, &new, 7, 2).await.expect("stored");
    assert_eq!((other.replaced, other.file.version), (true, 2));
    assert_eq!(shared.agrees(&one).await.used_bytes, 7);
    let path = foldwork_engine::model::file::text(&other.file, "path").expect("a path").to_owned();
    one.writer.delete_file(&path).await.expect("deleted");
    assert!(matches!(two.writer.delete_file(&path).await, Err(Error::NotFound { .. })));
    assert_eq!(shared.agrees(&two).await, StorageUsage { used_bytes: 0, quota_bytes: None, files: 0, file_bytes: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_replacements_leave_one_file() {
    let shared = Shared::new().await;
    let (twins, _) = shared.twins(limited(0)).await;
    let uploads = (0..12u8).map(|number| {
        let workspace = twins[usize::from(number) % 2].clone();
        tokio::spawn(async move { upload(&workspace, &new_file("a.bin", None), SIZE, number).await })
    });
    let mut made = 0;
    for upload in uploads.collect::<Vec<_>>() {
        made += usize::from(!upload.await.expect("no panic").expect("stored").replaced);
    }
    assert_eq!(made, 1);
    assert_eq!(shared.agrees(&twins[0]).await.used_bytes, SIZE as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_interrupted_or_has_a_wrong_length_leaves_no_bytes() {
    let shared = Shared::new().await;
    let ([one, _], _) = shared.twins(limited(0)).await;
    let broken = || Err(std::io::Error::other("broken off"));
    for announced in [None, Some(3 << 20)] {
        for blocks in [0, 1, 20] {
            let came = (0..blocks).map(|_| Ok(vec![1; 128 << 10].into()));
            let incoming = stream::iter(came.chain([broken()]).collect::<Vec<_>>()).boxed();
            one.writer.upload_file(new_file("a", announced), incoming).await.expect_err("broken off");
            assert_eq!(shared.agrees(&one).await.used_bytes, 0);
        }
        // The body must have exactly the announced length.
        let incoming = bytes(SIZE, 1);
        let wrong = announced.map(|_| SIZE as u64 - 1);
        assert_eq!(one.writer.upload_file(new_file("a", wrong), incoming).await.is_err(), wrong.is_some());
        if wrong.is_none() {
            let path = format!("{}/_/_/_/a", one.reader.record().id);
            one.writer.delete_file(&path).await.expect("deleted");
        }
    }
    assert_eq!(shared.agrees(&one).await.used_bytes, 0);
}

/// Starts an upload that pauses after half of the bytes until the returned sender is used.
async fn paused(
    workspace: &Handles,
    size: u64,
) -> (oneshot::Sender<()>, tokio::task::JoinHandle<Result<UploadOutcome, Error>>) {
    let (go, gone) = oneshot::channel::<()>();
    let half = (size / 2) as usize;
    let wait = gone.map(move |_| Ok(vec![2; half].into())).into_stream();
    let incoming = stream::iter([Ok(vec![1; half].into())]).chain(wait).boxed();
    let (workspace, new) = (workspace.clone(), new_file("slow.bin", Some(size)));
    let reader = workspace.reader.clone();
    let before = reader.storage_usage().await.expect("counted").used_bytes;
    let running = tokio::spawn(async move { workspace.writer.upload_file(new, incoming).await });
    while reader.storage_usage().await.expect("counted").used_bytes == before {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    (go, running)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_cannot_be_committed_after_its_bytes_were_removed_as_abandoned() {
    let shared = Shared::new().await;
    // The lease of this server's uploads ends immediately, so its uploads count as abandoned.
    let ([silent, _], key) = shared.twins(EngineSettings { upload_lease_ms: 0, ..EngineSettings::default() }).await;
    let (go, running) = paused(&silent, 2 * SIZE as u64).await;
    // A server searches for abandoned uploads when it starts.
    let starting = shared.engine(EngineSettings::default()).await;
    let other = enter(&starting, &key).await.expect("a workspace");
    let removed = async {
        while other.reader.storage_usage().await.expect("counted").used_bytes > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, removed).await.expect("abandoned uploads are removed");
    go.send(()).expect("the upload waits");
    assert!(matches!(running.await.expect("no panic"), Err(Error::Unavailable(_))));
    assert_eq!(shared.agrees(&other).await.files, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_in_progress_on_a_running_server_is_not_removed() {
    let shared = Shared::new().await;
    let ([living, silent], key) = shared.twins(EngineSettings::default()).await;
    let (go, running) = paused(&living, 2 * SIZE as u64).await;
    // The starting server removes the broken upload of the other server, which shows that the search ran.
    let broken = stream::iter([Err(std::io::Error::other("broken off"))]).boxed();
    silent.writer.upload_file(new_file("b", Some(5)), broken).await.expect_err("broken off");
    let starting = shared.engine(EngineSettings::default()).await;
    let other = enter(&starting, &key).await.expect("a workspace");
    upload(&other, &new_file("c", None), 5, 1).await.expect("stored");
    go.send(()).expect("the upload waits");
    let stored = running.await.expect("no panic").expect("stored");
    assert_eq!(shared.agrees(&other).await.used_bytes, 2 * SIZE as u64 + 5);
    assert!(!stored.replaced);
}

/// Paths that lead out of the folder are rejected, and no file outside the folder changes.
#[tokio::test(flavor = "multi_thread")]
async fn no_upload_creates_a_file_outside_the_folder_of_files() {
    let shared = Shared::new().await;
    let ([one, _], _) = shared.twins(limited(0)).await;
    let outside = shared.folder.path().with_extension("outside");
    let name = outside.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let filenames = [
        format!("../{name}"),
        format!("../../{name}"),
        format!("..%2F{name}"),
        outside.display().to_string(),
        format!("..\\{name}"),
        "..".into(),
        "x\0".into(),
        "x".repeat(4_096),
    ];
    for filename in filenames {
        let stored = upload(&one, &new_file(&filename, None), 3, 1).await;
        // A filename may contain any characters, because the folder does not use filenames.
        assert_eq!(stored.is_ok(), filename.starts_with("..%2F"), "{filename}");
        for id in [&filename, "../..", "/"] {
            let mut new = new_file("x", None);
            new.place.aggregate_id = Some(id.to_owned());
            assert!(upload(&one, &new, 3, 1).await.is_err(), "{id}");
        }
        assert!(!outside.exists());
    }
    assert_eq!(shared.agrees(&one).await.files, 1);
}
