//! Tests that a state loads correctly while another server defines a type.

use super::*;
use crate::model::definition::{Field, FieldType};
use crate::state::peers::Peers;
use crate::store::Store;
use crate::store::workspace::append::AppendBatch;

#[tokio::test]
async fn a_state_includes_a_type_that_is_defined_while_the_state_loads() {
    let store = Store::connect("mem://").await.expect("memory").share();
    let db = store.workspace("0-1").await.expect("a database");
    let environment = Environment::sample(&store, Some(Arc::new(Peers::new("s".into())))).await;
    let state = State::begin(WorkspaceRecord::sample(), &db, environment).await.expect("the definitions");
    let define = async |field: &str, changed| {
        let fields = vec![Field::new(field, FieldType::String)];
        let mut definition = Definition::new("trip", "Trip", Vec::new(), fields);
        definition.revision = changed + 1;
        db.replace_definition(&definition, changed, 0).await.expect("written");
    };
    define("to", 0).await;
    let event = Event { aggregate_type: "trip".into(), ..Event::sample("t", "trip.created", 1) };
    db.append(AppendBatch { events: &[Arc::new(event).into()], types_changed: 1, ..AppendBatch::default() })
        .await
        .expect("appended");
    state.load_states().await.expect("loaded");
    assert_eq!(state.folded.get("t").map(|trip| trip.version), Some(1));
    // The next check of the head still detects the changed definition.
    define("via", 1).await;
    state.refresh().await.expect("read");
    assert_eq!((state.types.changed(), state.types.get("trip").map(|trip| trip.revision)), (2, Some(2)));
}
