//! Tests that a restore from the archive of a running server returns the workspace to its current state, or to its
//! state at a position.

use std::sync::Arc;

use foldwork_engine::archive::{
    Archive, BackupSettings, Backups, RestoreEnd, RestoreFrom, SealingKey, VerificationResult, restore_control,
    restore_workspace,
};
use foldwork_engine::{Engine, Store};
use foldwork_tests::server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::exports::{config, engine, mixed, post, shown};

/// An archive in a folder.
struct Place {
    folder: TempDir,
    key: String,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder"), key: SealingKey::generate() }
    }

    fn archive(&self) -> Archive {
        let key = SealingKey::parse(&self.key).expect("a key");
        Archive::open(&format!("file://{}", self.folder.path().display()), [], key).expect("an archive")
    }

    fn backups(&self, engine: &Arc<Engine>) -> Arc<Backups> {
        let settings = BackupSettings { flush_ms: 1_000, retention_ms: 0, verify: true };
        Backups::new(engine.clone(), self.archive(), settings)
    }

    /// Restores the control database and the first workspace into a new store. `until` is the end of the restored log.
    async fn restore(&self, until: RestoreEnd) -> Store {
        let store = Store::connect("mem://").await.expect("a store");
        let (engine, archive) = (engine(&store).await, self.archive());
        let workspaces = restore_control(&engine, &archive).await.expect("the control database");
        let from = RestoreFrom { workspace_id: workspaces[0].id.clone(), until, epoch: None };
        restore_workspace(&engine, &archive, &from, &workspaces[0].id, &|_| {}).await.expect("restored");
        engine.close().await;
        store
    }
}

async fn rows(server: &Server, fold: Value) -> Vec<Value> {
    let pipeline = json!({"pipeline": [{"$fold": fold}, {"$sort": {"_id": 1}}]});
    let mut rows = post(server, "aggregates/query", pipeline).await["results"].as_array().expect("rows").clone();
    // The live server folds earlier states under the current definition, and returns only the current facts.
    rows.retain(|row| row["aggregate_type"] != "trip");
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.remove("_facts");
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_workspace_has_the_same_data_as_before() {
    let (server, place) = (mixed().await, Place::new());
    let before = shown(&server).await;
    let backups = place.backups(&server.engine);
    backups.finish().await;
    backups.run_maintenance().await;
    assert_eq!(backups.warnings(), Vec::<&str>::new());
    let workspaces = place.archive().workspaces().await.expect("listed");
    for id in &workspaces {
        let proof = place.archive().verify(id, 1, &|_| {}).await.expect("a proof");
        assert_eq!((proof.outcome, proof.problems), (VerificationResult::Equal, Vec::new()), "{id}");
    }
    let store = place.restore(RestoreEnd::End).await;
    let owner = server.key("owner").expect("an owner").to_owned();
    let target = Server::start_over(&config(), store, &owner).await.expect("a server");
    for ((path, before), (_, after)) in before.into_iter().zip(shown(&target).await) {
        assert_eq!(after, before, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_up_to_any_position_has_the_states_of_that_position() {
    let (server, place) = (mixed().await, Place::new());
    place.backups(&server.engine).finish().await;
    let owner = server.key("owner").expect("an owner").to_owned();
    let head = server.workspace("owner").await.expect("a workspace").reader.position();
    let mut sums = Vec::new();
    for position in 1..=head {
        let store = place.restore(RestoreEnd::Position(position)).await;
        // Without plugins, the restored workspace contains no events beyond the position.
        let mut config = config();
        config.plugins.enabled.clear();
        let target = Server::start_over(&config, store, &owner).await.expect("a server");
        let expected = rows(&server, json!({"position": position})).await;
        assert_eq!(rows(&target, json!({})).await, expected, "position {position}");
        // Up to the trip's last event before the redefinition, the amount is a sum.
        let pipeline = json!([{"$match": {"aggregate_id": "trip"}}, {"$fold": {}}]);
        let trip = post(&target, "aggregates/query", json!({"pipeline": pipeline})).await;
        sums.extend(trip["results"][0].get("amount").and_then(Value::as_f64));
    }
    assert!(sums.first() == Some(&2.0) && sums.contains(&5.0) && sums.last() == Some(&3.0), "{sums:?}");
    assert!(head > 10 && rows(&server, json!({})).await.len() > 3, "the workspace has records of several kinds");
}
