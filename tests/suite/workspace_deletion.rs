//! Tests the deletion of a workspace on two servers of one store: the owners are informed once, and one server deletes
//! the workspace completely.

use std::sync::Arc;

use foldwork_engine::clock::Clock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::{Administrator, Engine, EngineSettings, Error, Plugins, Store, tend_deletions};
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};

const DAY_MS: i64 = 86_400_000;
/// The time after which every server has closed a removed workspace.
const CLOSED_AFTER_MS: i64 = 300_000;

async fn engine(store: &Store, clock: &Arc<FixedClock>) -> Arc<Engine> {
    let clock = clock.clone() as Arc<dyn Clock>;
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), clock, EngineSettings::default(), plugins).await.expect("an engine")
}

async fn append(workspace: &Handles) -> Result<(), Error> {
    let event = NewEvent {
        aggregate_id: "a".into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_deleted_on_both_servers_after_the_grace_period() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = format!("file://{}", folder.path().display());
    let store = Store::connect("mem://").await.expect("a store").with_files(&files, []).expect("files");
    let clock = Arc::new(FixedClock::default());
    let (one, two) = (engine(&store, &clock).await, engine(&store, &clock).await);
    let owner = one.first_start(None).await.expect("a start").expect("an empty store").key;
    let (record, key) = one.provision("other", None).await.expect("a workspace");
    let operator: Administrator =
        one.enter(one.authenticate(&owner).await.expect("a caller")).await.expect("an operator");
    let elsewhere = enter(&two, &key).await.expect("a workspace");
    append(&elsewhere).await.expect("appended");
    let own = folder.path().join(&*record.id);
    std::fs::create_dir_all(&own).expect("a folder");
    std::fs::write(own.join("upload"), "bytes").expect("a file");

    operator.delete_workspace(&record.id).await.expect("begun");
    for engine in [&one, &two, &one, &two] {
        tend_deletions(engine).await;
    }
    let here = enter(&one, &key).await.expect("a workspace in the grace period");
    append(&here).await.expect("appended");
    assert_eq!(here.reader.position(), 3, "two events, and one task for the owner");

    clock.advance(30 * DAY_MS);
    let mut grant = elsewhere.reader.grant();
    tend_deletions(&one).await;
    assert!(!own.exists());
    assert_eq!(one.workspaces().await.expect("workspaces").len(), 1);
    for engine in [&one, &two] {
        assert!(matches!(engine.authenticate(&key).await, Err(Error::Unauthenticated(_))));
    }
    grant.ended().await;
    append(&elsewhere).await.expect_err("the log is gone");
    tend_deletions(&two).await;

    // The workspace cannot be restored while a slow server may still write to it or delete it.
    assert!(matches!(one.restore_workspace(&record, false).await, Err(Error::Unavailable(_))));
    for _ in 0..2 {
        std::fs::create_dir_all(&own).expect("the folder of a slow server");
        clock.advance(CLOSED_AFTER_MS);
        tend_deletions(&two).await;
        tend_deletions(&one).await;
    }
    one.restore_workspace(&record, false).await.expect("a restored workspace");
    assert_eq!(two.workspaces().await.expect("workspaces").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_was_interrupted_is_completed_by_the_next_server() {
    let folder = tempfile::tempdir().expect("a folder");
    // Replaces the folder of the workspace with a file, so that the server cannot remove the bytes.
    let files = format!("file://{}", folder.path().display());
    let store = Store::connect("mem://").await.expect("a store").with_files(&files, []).expect("files");
    let clock = Arc::new(FixedClock::default());
    let first = engine(&store, &clock).await;
    let owner = first.first_start(None).await.expect("a start").expect("an empty store").key;
    let (record, _) = first.provision("other", None).await.expect("a workspace");
    let operator: Administrator =
        first.enter(first.authenticate(&owner).await.expect("a caller")).await.expect("a right");
    operator.delete_workspace(&record.id).await.expect("begun");
    clock.advance(30 * DAY_MS);
    let own = folder.path().join(&*record.id);
    std::fs::write(&own, "in the way").expect("a file");
    tend_deletions(&first).await;
    assert_eq!(first.workspaces().await.expect("workspaces").len(), 1, "the deleted workspace is not listed");
    drop(first);
    std::fs::remove_file(&own).expect("removed");
    std::fs::create_dir_all(own.join("upload")).expect("a folder");
    tend_deletions(&*engine(&store, &clock).await).await;
    assert!(!own.exists());
}
