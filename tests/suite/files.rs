//! Files under concurrent and interrupted uploads: the quota holds, and no bytes stay that no file refers to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use foldwork_engine::clock::SystemClock;
use foldwork_engine::workspace::files::{Incoming, NewFile, Uploaded, Usage};
use foldwork_engine::{Engine, Error, Plugins, Settings, Store};
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::Server;
use futures_util::{FutureExt, StreamExt, stream};
use poem::http::StatusCode;
use poem::{Body, Request};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// How long a test waits before it fails, and the interval between checks. No test waits this long unless something is
/// wrong.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const SIZE: usize = 100_000;

/// A store with its files in a folder. Several engines open it, like the servers of one store.
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

    async fn engine(&self, settings: Settings) -> Arc<Engine> {
        let plugins = Plugins::none().expect("no plugins");
        Engine::open(self.store.share(), Arc::new(SystemClock), settings, plugins).await.expect("an engine")
    }

    /// Opens two engines of this store and returns a handle of each on the first workspace, and its key.
    async fn twins(&self, settings: Settings) -> ([Handles; 2], String) {
        let (one, two) = (self.engine(settings.clone()).await, self.engine(settings).await);
        let key = one.first_start(None).await.expect("started").expect("a new store").key;
        ([enter(&one, &key).await.expect("one"), enter(&two, &key).await.expect("two")], key)
    }

    /// Returns the sizes of all files in the folder.
    fn on_disk(&self) -> Vec<u64> {
        let entries = |path: &Path| std::fs::read_dir(path).expect("a folder").filter_map(Result::ok);
        let files = entries(self.folder.path()).flat_map(|workspace| entries(&workspace.path()));
        // A file that is removed meanwhile has no length.
        files.filter_map(|file| Some(file.metadata().ok()?.len())).collect()
    }

    /// Waits until the listed, counted and stored bytes agree, and returns the usage.
    async fn agrees(&self, workspace: &Handles) -> Usage {
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
        assert!(agreed.is_ok(), "the files on the disk are {:?}", self.on_disk());
        agreed.expect("they agree")
    }
}

fn limited(quota_bytes: u64) -> Settings {
    Settings { quota_bytes, ..Settings::default() }
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
async fn upload(workspace: &Handles, new: &NewFile, size: usize, seed: u8) -> Result<Uploaded, Error> {
    loop {
        match workspace.writer.upload_file(new.clone(), bytes(size, seed)).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

/// Starts fifty concurrent uploads with capacity for ten.
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
                let is_full = matches!(error, Error::Invalid { code: "storage_quota_exceeded", .. });
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
    assert_eq!(shared.agrees(&two).await, Usage { used_bytes: 0, quota_bytes: None, files: 0, file_bytes: 0 });
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
async fn a_broken_upload_leaves_nothing() {
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

/// Starts an upload that pauses in its middle until the returned sender is used.
async fn paused(
    workspace: &Handles,
    size: u64,
) -> (oneshot::Sender<()>, tokio::task::JoinHandle<Result<Uploaded, Error>>) {
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
async fn a_server_presumed_dead_cannot_commit_removed_bytes() {
    let shared = Shared::new().await;
    // The lease of this server's uploads ends immediately, so its uploads count as abandoned.
    let ([silent, _], key) = shared.twins(Settings { upload_lease_ms: 0, ..Settings::default() }).await;
    let (go, running) = paused(&silent, 2 * SIZE as u64).await;
    // A starting server looks for abandoned uploads.
    let starting = shared.engine(Settings::default()).await;
    let other = enter(&starting, &key).await.expect("a workspace");
    let removed = async {
        while other.reader.storage_usage().await.expect("counted").used_bytes > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, removed).await.expect("abandoned uploads are removed");
    go.send(()).expect("it waits");
    assert!(matches!(running.await.expect("no panic"), Err(Error::Unavailable(_))));
    assert_eq!(shared.agrees(&other).await.files, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_a_live_server_is_not_removed() {
    let shared = Shared::new().await;
    let ([living, silent], key) = shared.twins(Settings::default()).await;
    let (go, running) = paused(&living, 2 * SIZE as u64).await;
    // The broken upload of the other server is removed meanwhile, which shows that the search ran.
    let broken = stream::iter([Err(std::io::Error::other("broken off"))]).boxed();
    silent.writer.upload_file(new_file("b", Some(5)), broken).await.expect_err("broken off");
    let starting = shared.engine(Settings::default()).await;
    let other = enter(&starting, &key).await.expect("a workspace");
    upload(&other, &new_file("c", None), 5, 1).await.expect("stored");
    go.send(()).expect("it waits");
    let stored = running.await.expect("no panic").expect("stored");
    assert_eq!(shared.agrees(&other).await.used_bytes, 2 * SIZE as u64 + 5);
    assert!(!stored.replaced);
}

/// Stores a file and returns a link to it.
async fn linked(server: &Server, filename: &str) -> anyhow::Result<String> {
    let owner = server.key("owner").context("the owner")?;
    let workspace = server.workspace("owner").await?.reader.record().id.to_string();
    let path = format!("/api/v1/files/{workspace}/_/_/_/{filename}");
    let request = |method: &str| {
        let request = Request::builder().method(method.parse().expect("a method")).uri(path.parse().expect("a path"));
        request.header("authorization", format!("Bearer {owner}"))
    };
    server.call(request("PUT").body(Body::from(filename.to_owned()))).await;
    let link = server.call(request("GET").finish()).await.into_body().into_string().await?;
    let link: Value = serde_json::from_str(&link)?;
    Ok(link["url"].as_str().context("a link")?.to_owned())
}

async fn fetched(server: &Server, url: &str) -> (StatusCode, String) {
    let response = server.call(Request::builder().uri(url.parse().expect("a URL")).finish()).await;
    (response.status(), response.into_body().into_string().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_valid_for_one_path_and_one_hour() {
    let server = Server::start().await.expect("a server");
    let one = linked(&server, "one.txt").await.expect("a link");
    let two = linked(&server, "two.txt").await.expect("a link");
    assert_eq!(fetched(&server, &one).await, (StatusCode::OK, "one.txt".into()));
    let part = |url: &str, name: &str| {
        let at = url.find(&format!("{name}=")).expect("a parameter") + name.len() + 1;
        url[at..].split('&').next().expect("a value").to_owned()
    };
    let with = |url: &str, name: &str, value: &str| {
        url.replace(&format!("{name}={}", part(url, name)), &format!("{name}={value}"))
    };
    let later = part(&one, "exp").parse::<i64>().expect("a time") + 1;
    let altered = [
        one.replace("one.txt", "two.txt"),
        with(&one, "sig", &part(&two, "sig")),
        with(&one, "exp", &later.to_string()),
        with(&one, "kid", "another"),
        with(&one, "sig", &part(&one, "sig").replace(|letter: char| letter != 'A', "A")),
        with(&one, "sig", ""),
        with(&one, "exp", "never"),
        one.split('?').next().expect("a path").to_owned(),
    ];
    for url in altered {
        let (status, body) = fetched(&server, &url).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{url} is answered {body}");
        assert!(body.contains("invalid_link"), "{body}");
    }
    server.clock.advance(60 * 60 * 1_000 - 1);
    assert_eq!(fetched(&server, &one).await.0, StatusCode::OK);
    server.clock.advance(1);
    assert_eq!(fetched(&server, &one).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_published_content_ends_when_it_is_unpublished() {
    let server = Server::start().await.expect("a server");
    let owner = server.workspace("owner").await.expect("a workspace");
    let call = async |method: &str, path: String, key: &str, body: &str| {
        let request = Request::builder().method(method.parse().expect("a method")).uri(path.parse().expect("a path"));
        let request = request.header("authorization", format!("Bearer {}", server.key(key).expect("a key")));
        let answer = server.call(request.header("content-type", "application/json").body(Body::from(body.to_owned())));
        let answer = answer.await;
        (answer.status(), serde_json::from_str::<Value>(&answer.into_body().into_string().await.expect("a text")))
    };
    let (_, article) = call("POST", "/api/v1/articles".into(), "owner", r#"{"title":"x"}"#).await;
    let article = article.expect("JSON")["aggregate_id"].as_str().expect("an id").to_owned();
    let publish = async |verb: &str| {
        let (status, _) = call("POST", format!("/api/v1/articles/{article}/{verb}"), "owner", "").await;
        assert_eq!(status, StatusCode::OK, "{verb}");
    };
    let path = format!("/api/v1/files/{}/_/article/{article}/one.txt", owner.reader.record().id);
    assert_eq!(call("PUT", path.clone(), "owner", "bytes").await.0, StatusCode::CREATED);
    publish("publish").await;
    let link = async |key: &str| {
        let (status, link) = call("GET", path.clone(), key, "").await;
        assert_eq!(status, StatusCode::OK);
        link.expect("JSON")["url"].as_str().expect("a URL").to_owned()
    };
    let (of_reader, of_owner) = (link("content").await, link("owner").await);
    for url in [&of_reader, &of_owner] {
        assert_eq!(fetched(&server, url).await, (StatusCode::OK, "bytes".into()));
    }
    publish("unpublish").await;
    let (status, body) = fetched(&server, &of_reader).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert_eq!(fetched(&server, &of_owner).await.0, StatusCode::OK, "the owner may read drafts");
    for altered in ["", "of=everything&"] {
        let url = of_reader.replace("of=published&", altered);
        assert_eq!(fetched(&server, &url).await.0, StatusCode::FORBIDDEN);
    }
    publish("publish").await;
    assert_eq!(fetched(&server, &of_reader).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_outlives_the_key_that_signed_it() {
    const MINUTE: i64 = 60 * 1_000;
    let server = Server::start().await.expect("a server");
    linked(&server, "one.txt").await.expect("a link");
    server.clock.advance(24 * 60 * MINUTE - 10 * MINUTE);
    let old = linked(&server, "one.txt").await.expect("a link");
    server.clock.advance(20 * MINUTE);
    let new = linked(&server, "one.txt").await.expect("a link");
    let key = |url: &str| url.split("kid=").nth(1).and_then(|rest| rest.split('&').next()).map(str::to_owned);
    assert_ne!(key(&old), key(&new));
    assert_eq!(fetched(&server, &old).await.0, StatusCode::OK);
    server.clock.advance(40 * MINUTE);
    assert_eq!(fetched(&server, &old).await.0, StatusCode::FORBIDDEN);
    assert_eq!(fetched(&server, &new).await.0, StatusCode::OK);
}

/// Paths out of the folder are rejected, and no file outside is touched.
#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_the_folder() {
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
        // A file name may contain anything, because files in the folder never have that name.
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
