//! Resets the connections of requests that replay steps. Afterwards, the consumer of the log processes new events.

use std::time::Instant;

use serde_json::{Value, json};

use super::target::Target;
use super::{consumed, moments, post, read, reset_after, until};
use crate::client::Client;

const STEPS: u32 = 60;

fn note(id: String, fail: bool) -> Value {
    let payload = json!({"text": "one two", "fail": fail});
    json!({"aggregate_id": id, "aggregate_type": "note", "event_type": "note.created", "payload": payload})
}

async fn parked(client: &Client) -> Vec<String> {
    let page = read(client, "/api/v1/parked?limit=200").await;
    let steps = page["data"].as_array().into_iter().flatten();
    steps.filter_map(|step| Some(step["id"].as_str()?.to_owned())).collect()
}

/// Returns the number of notes for which the plugin has stored facts.
async fn found(client: &Client) -> Value {
    let pipeline =
        json!([{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$match": {"_facts.shaky.words": 2}}]);
    post(client, "/api/v1/aggregates/query", &json!({"pipeline": pipeline})).await["count"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consumer_continues_and_no_facts_are_lost_after_aborted_replays() {
    let target = Target::start_shaky().await;
    let definition = json!({"type_name": "note", "fields": [{"name": "text", "type": "string"}]});
    post(&target.client, "/api/v1/aggregates/define", &definition).await;
    // The plugin is not stopped, because successful calls are between the failures.
    let notes = (0..=STEPS).flat_map(|n| [note(format!("failing-{n}"), true), note(format!("between-{n}"), false)]);
    post(&target.client, "/api/v1/events", &json!({"events": notes.collect::<Vec<_>>()})).await;
    consumed(&target.client).await;
    let steps = parked(&target.client).await;
    assert_eq!(steps.len(), STEPS as usize + 1);

    let target = target.restart_fixed().await;
    let client = &target.client;
    let path = |step: &str| format!("/api/v1/parked/{step}/replay");
    let began = Instant::now();
    assert_eq!(post(client, &path(&steps[0]), &json!({})).await["done"], 1);
    for (moment, step) in moments(began.elapsed(), STEPS).zip(&steps[1..]) {
        // The plugin ignores this event, so the consumer's position is stored only by the replay.
        assert_eq!(client.send("POST", "/api/v1/aggregates/between/events", &crate::noted("one")).await.0, 201);
        consumed(client).await;
        reset_after(client, ("POST", &path(step), "{}"), moment).await;
    }
    post(client, "/api/v1/events", &json!({"events": [note("later".into(), false)]})).await;
    consumed(client).await;
    // Steps whose replay never began can still be replayed, and no facts are lost.
    post(client, "/api/v1/parked/replay", &json!({"plugin": "shaky"})).await;
    until(async || {
        let still_parked = parked(client).await;
        (!still_parked.is_empty()).then(|| format!("these steps are still parked: {still_parked:?}"))
    })
    .await;
    assert_eq!(found(client).await, 2 * STEPS + 3);
    target.end().await;
}
