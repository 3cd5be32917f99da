//! Tests of the archive over real stores: archived data is restored, and changes to archived data are detected.

use std::sync::Arc;

use super::*;
use crate::clock::{Clock, SystemClock};
use crate::model::event::NewEvent;
use crate::model::value::{Object, Value};
use crate::workspace::aggregates::StateMoment;
use crate::{Engine, EngineSettings, Plugins, Reader, Store, Writer};

const KEY: &str = "sk_7777777777777777777777777777777777777777777777777777777777777777";

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

fn archive(folder: &tempfile::TempDir, key: &str) -> Archive {
    let url = format!("file://{}", folder.path().display());
    Archive::open(&url, [], SealingKey::parse(key).expect("a key")).expect("an archive")
}

fn backups(engine: &Arc<Engine>, folder: &tempfile::TempDir, key: &str) -> Arc<Backups> {
    let settings = BackupSettings { flush_ms: 1_000, retention_ms: 86_400_000, verify: true };
    Backups::new(engine.clone(), archive(folder, key), settings)
}

/// Opens the workspace, and waits until the engine leads it. Only the leader archives a workspace.
async fn writer(engine: &Arc<Engine>) -> Writer {
    let caller = engine.authenticate(KEY).await.expect("the key");
    let workspace_id = caller.workspace_id.clone();
    let writer = engine.enter(caller).await.expect("the workspace opens");
    while !engine.leads(&workspace_id) {
        tokio::task::yield_now().await;
    }
    writer
}

async fn append(writer: &Writer, id: &str, number: i64) {
    let event = NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([("title", Value::from(format!("{id} {number}"))), ("n", Value::from(number))]),
        ..NewEvent::default()
    };
    writer.append_events(vec![event]).await.expect("appended");
}

/// Returns a store with some events and a definition, all of which are archived.
async fn archived(folder: &tempfile::TempDir, key: &str) -> (Store, Arc<str>) {
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    engine.first_start(Some(KEY.into())).await.expect("a start");
    let id = engine.workspaces().await.expect("workspaces")[0].id.clone();
    let (backups, writer) = (backups(&engine, folder, key), writer(&engine).await);
    for number in 1..=3 {
        append(&writer, "a", number).await;
        append(&writer, &format!("b{number}"), number).await;
        backups.finish().await;
    }
    let fields =
        Object::from_iter([("name", Value::from("total")), ("type", "integer".into()), ("fold", "sum".into())]);
    let body = Object::from_iter([
        ("type_name", Value::from("invoice")),
        ("display_name", "Invoice".into()),
        ("fields", vec![Value::from(fields)].into()),
    ]);
    writer.define_type(&body.into(), false).await.expect("defined");
    for _ in 0..2 {
        let event = NewEvent {
            aggregate_id: "i".into(),
            aggregate_type: "invoice".into(),
            event_type: "invoice.paid".into(),
            payload: Object::from_iter([("total", 2)]),
            ..NewEvent::default()
        };
        writer.append_events(vec![event]).await.expect("appended");
    }
    backups.finish().await;
    backups.run_maintenance().await;
    drop(writer);
    engine.close().await;
    (store, id)
}

async fn state(engine: &Arc<Engine>, id: &str) -> (u64, Object) {
    let reader: Reader = engine.enter(engine.authenticate(KEY).await.expect("the key")).await.expect("a reader");
    let (found, _) = reader.aggregate(id, StateMoment::Now).await.expect("the aggregate");
    (found.version, (*found.state).clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_installation_is_restored_completely_or_up_to_a_given_position() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let (_, id) = archived(&folder, &key).await;
    for (until, version, has_invoice) in [(RestoreEnd::End, 3, true), (RestoreEnd::Position(3), 2, false)] {
        let store = Store::connect("mem://").await.expect("a store");
        let engine = engine(&store).await;
        let restored = restore_control(&engine, &archive(&folder, &key)).await.expect("the control database");
        assert!(restored.len() == 1 && restored[0].id == id, "{restored:?}");
        let from = RestoreFrom { workspace_id: id.clone(), until, epoch: None };
        let archive = archive(&folder, &key);
        let restored = restore_workspace(&engine, &archive, &from, &id, &|_| {}).await.expect("restored");
        assert_eq!(restored.events, restored.position);
        let (found, fields) = state(&engine, "a").await;
        assert_eq!((found, fields.get("n")), (version, Some(&Value::Int(version as i64))));
        if has_invoice {
            assert_eq!(state(&engine, "i").await.1.get("total"), Some(&Value::Int(4)));
        } else {
            assert_eq!(restored.position, 3);
        }
        restore_control(&engine, &archive).await.expect_err("the store has a workspace");
        engine.close().await;
        // A second restore continues the first.
        let engine = self::engine(&store).await;
        let whole = RestoreFrom { until: RestoreEnd::End, ..from };
        let continued = restore_workspace(&engine, &archive, &whole, &id, &|_| {}).await;
        if version == 3 {
            assert_eq!(continued.expect("nothing is left").events, 0);
        } else {
            // Opening the workspace between the two restores has appended no event.
            assert_eq!(continued.expect("continued").position, 8);
        }
        engine.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_finds_every_changed_segment_and_a_missing_segment() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let (_, id) = archived(&folder, &key).await;
    let archive = archive(&folder, &key);
    let prove = async || archive.verify(&id, 1, &|_| {}).await.expect("a proof");
    let proof = prove().await;
    assert_eq!((proof.outcome, proof.events, &proof.problems), (VerificationResult::Equal, 8, &Vec::new()));
    let segments = archive.bucket.list(&format!("{id}/000001/log")).await.expect("listed");
    assert_eq!(segments.len(), 4);
    for segment in &segments {
        let whole = archive.bucket.read(&segment.key).await.expect("read").expect("the segment");
        let mut changed = whole.to_vec();
        changed[whole.len() / 2] ^= 1;
        archive.bucket.put(&segment.key, changed.into()).await.expect("changed");
        let proof = prove().await;
        assert_eq!(proof.outcome, VerificationResult::Damaged);
        assert!(proof.problems[0].contains(&segment.key), "{:?}", proof.problems);
        archive.bucket.put(&segment.key, whole).await.expect("mended");
    }
    archive.bucket.remove(&segments[1].key).await.expect("removed");
    assert!(prove().await.problems[0].contains(&segments[1].key));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_epoch_in_the_archive_of_a_reset_store_can_be_restored() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let (_, id) = archived(&folder, &key).await;
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    let archive = archive(&folder, &key);
    restore_control(&engine, &archive).await.expect("the control database");
    let from = RestoreFrom { workspace_id: id.clone(), until: RestoreEnd::Position(4), epoch: None };
    restore_workspace(&engine, &archive, &from, &id, &|_| {}).await.expect("restored");
    let (backups, writer) = (backups(&engine, &folder, &key), writer(&engine).await);
    append(&writer, "a", 100).await;
    backups.finish().await;
    backups.run_maintenance().await;
    let described = archive.describe(&id).await.expect("described").expect("an archive");
    assert_eq!((described.epoch, described.position, described.segments), (2, 5, 3));
    assert_eq!(described.verified.expect("a proof").outcome, VerificationResult::Equal);
    drop(writer);
    engine.close().await;
    // The store is reset once more, to a state before the first branch.
    let store = Store::connect("mem://").await.expect("a store");
    let engine = self::engine(&store).await;
    restore_control(&engine, &archive).await.expect("the control database");
    let from = RestoreFrom { workspace_id: id.clone(), until: RestoreEnd::Position(2), epoch: None };
    restore_workspace(&engine, &archive, &from, &id, &|_| {}).await.expect("restored");
    let (backups, writer) = (self::backups(&engine, &folder, &key), self::writer(&engine).await);
    append(&writer, "a", 200).await;
    backups.finish().await;
    backups.run_maintenance().await;
    assert_eq!(archive.verify(&id, 1, &|_| {}).await.expect("a proof").outcome, VerificationResult::Equal);
    drop(writer);
    engine.close().await;
    // All histories can be restored.
    for (epoch, position) in [(Some(1), 8), (Some(2), 5), (Some(3), 3), (None, 3)] {
        let store = Store::connect("mem://").await.expect("a store");
        let engine = self::engine(&store).await;
        restore_control(&engine, &archive).await.expect("the control database");
        let from = RestoreFrom { workspace_id: id.clone(), until: RestoreEnd::End, epoch };
        let restored = restore_workspace(&engine, &archive, &from, &id, &|_| {}).await.expect("restored");
        assert_eq!(restored.position, position);
        engine.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_restored_as_a_new_workspace_once_per_restore_id() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let (store, id) = archived(&folder, &key).await;
    let engine = engine(&store).await;
    let backups = backups(&engine, &folder, &key);
    let owner = engine.authenticate(KEY).await.expect("the key");
    let from = RestoreFrom { workspace_id: id.clone(), until: RestoreEnd::Position(5), epoch: None };
    let restore_id = || Some(Arc::<str>::from("a-restore"));
    let begun = backups.begin_restore(from.clone(), "as it was", &owner, restore_id()).await.expect("begun");
    let (begun, key) = (begun.restore, begun.key);
    // The second request does not begin another restore.
    let again = backups.begin_restore(from.clone(), "as it was", &owner, restore_id()).await.expect("the first");
    assert_eq!((again.restore.workspace_id, again.key, again.repeated), (begun.workspace_id.clone(), None, true));
    assert_eq!(backups.restores().await.expect("a list").len(), 1);
    let ended = loop {
        let found = backups.restore(&begun.id).await.expect("the restore");
        if found.status != RestoreStatus::Running {
            break found;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((ended.status, ended.position, ended.message), (RestoreStatus::Done, 5, None));
    let caller = engine.authenticate(&key.expect("a key")).await.expect("the key works");
    assert_eq!((&caller.workspace_id, &caller.user_id), (&ended.workspace_id, &owner.user_id));
    let reader: Reader = engine.enter(caller).await.expect("the workspace opens");
    assert_eq!(reader.position(), 5);
    for (from, name) in [
        (RestoreFrom { epoch: Some(9), ..from.clone() }, "x"),
        (RestoreFrom { workspace_id: uuid::Uuid::nil().to_string().into(), ..from.clone() }, "x"),
        (from, " "),
    ] {
        assert!(backups.begin_restore(from, name, &owner, None).await.is_err(), "an invalid restore began");
    }
    drop(reader);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_installation_cannot_write_into_an_archive() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    archived(&folder, &key).await;
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    engine.first_start(Some(KEY.into())).await.expect("a start");
    let backups = backups(&engine, &folder, &key);
    append(&writer(&engine).await, "a", 1).await;
    let before = archive(&folder, &key).control_at().await.expect("read");
    backups.finish().await;
    assert_eq!(backups.warnings(), ["backup_failing"]);
    assert_eq!(archive(&folder, &key).control_at().await.expect("read"), before);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_archivers_of_one_log_write_one_chain_of_segments() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    engine.first_start(Some(KEY.into())).await.expect("a start");
    let id = engine.workspaces().await.expect("workspaces")[0].id.clone();
    let (one, other, writer) =
        (backups(&engine, &folder, &key), backups(&engine, &folder, &key), writer(&engine).await);
    for number in 1..=10 {
        append(&writer, "a", number).await;
        tokio::join!(one.finish(), other.finish());
    }
    assert_eq!((one.warnings(), other.warnings()), (Vec::new(), Vec::new()));
    one.run_maintenance().await;
    let archive = archive(&folder, &key);
    let proof = archive.verify(&id, 1, &|_| {}).await.expect("a proof");
    assert_eq!((proof.outcome, proof.events), (VerificationResult::Equal, 10));
    drop(writer);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_remove_old_parts_and_damaged_segments_but_keep_every_event() {
    let (folder, key) = (tempfile::tempdir().expect("a folder"), SealingKey::generate());
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    engine.first_start(Some(KEY.into())).await.expect("a start");
    let id = engine.workspaces().await.expect("workspaces")[0].id.clone();
    let (backups, writer) = (backups(&engine, &folder, &key), writer(&engine).await);
    let archive = archive(&folder, &key);
    let count = async || archive.bucket.list(&format!("{id}/000001/log")).await.expect("listed").len();
    for day in 1..=3 {
        for number in 1..=10 {
            append(&writer, "a", day * 100 + number).await;
            backups.finish().await;
        }
        // Two hours later, the segments are merged into one segment. A day after the merge, the parts are removed.
        let (later, next_day) = (SystemClock.now_ms() + 7_200_000, SystemClock.now_ms() + 90_000_000);
        merge::merge(&archive.bucket, &id, 1, later).await.expect("merged");
        assert_eq!(count().await, (day + 10) as usize);
        assert_eq!(archive.verify(&id, 1, &|_| {}).await.expect("a proof").events, day.unsigned_abs() * 10);
        merge::merge(&archive.bucket, &id, 1, next_day).await.expect("removed");
        assert_eq!(count().await, day as usize);
    }
    // A merged segment whose write was torn is removed while its parts exist.
    for number in 1..=10 {
        append(&writer, "a", number).await;
        backups.finish().await;
    }
    let torn = log::SegmentRef::new(1, 1, 31, 40).key(&id);
    archive.bucket.put(&torn, bytes::Bytes::from_static(b"half")).await.expect("written");
    assert_eq!(archive.verify(&id, 1, &|_| {}).await.expect("a proof").outcome, VerificationResult::Damaged);
    merge::merge(&archive.bucket, &id, 1, SystemClock.now_ms() + 90_000_000).await.expect("mended");
    append(&writer, "a", 1_000).await;
    backups.finish().await;
    backups.run_maintenance().await;
    let proof = archive.verify(&id, 1, &|_| {}).await.expect("a proof");
    assert_eq!((proof.outcome, proof.events, proof.problems), (VerificationResult::Equal, 41, Vec::new()));
    drop(writer);
    engine.close().await;
}
