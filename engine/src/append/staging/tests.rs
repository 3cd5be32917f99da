//! Tests appends that are staged in one batch.

use super::*;
use crate::error::ErrorCode;
use crate::model::access::WorkspaceRecord;
use crate::model::value::Value;
use crate::state::Environment;
use crate::store::Store;

async fn empty_state() -> State {
    let store = Store::connect("mem://").await.expect("memory");
    let db = store.workspace("0-1").await.expect("a database");
    State::load(WorkspaceRecord::sample(), &db, Environment::sample(&store, None).await)
        .await
        .expect("an empty workspace")
}

fn article(id: &str, verb: &str, slug: &str) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: ARTICLE.into(),
        event_type: format!("{ARTICLE}.{verb}"),
        payload: Object::from_iter([("title", Value::from(id)), (SLUG, slug.into())]),
        ..NewEvent::default()
    }
}

#[tokio::test]
async fn a_rejected_append_changes_no_slugs() {
    let state = empty_state().await;
    let (definitions, known) = (state.types.all(), EarlierWrites::default());
    let mut batch = BatchBuilder::new(&state, &definitions, &known);
    let mut stage = |events: &[NewEvent]| batch.stage(&Append::given("user:u".into(), events.to_vec()));
    stage(&[article("a", "created", "x")]).expect("a free slug");
    // The second article takes over the slug, but the third article does not exist, so the whole append is rejected.
    let takeover = [article("a", "updated", "y"), article("b", "created", "x"), article("c", "updated", "z")];
    assert!(matches!(stage(&takeover), Err(Error::NotFound { .. })));
    let taken = stage(&[article("d", "created", "x")]);
    assert!(matches!(taken, Err(Error::Conflict { code: ErrorCode::SlugTaken, .. })), "{taken:?}");
    stage(&[article("e", "created", "y")]).expect("the slug is free again");
}
