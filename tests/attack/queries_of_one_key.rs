//! Sends very many expensive queries with one key. The queries of another key are neither rejected nor starved.

use serde_json::json;
use tokio::task::JoinSet;

use super::key;
use super::target::Target;
use crate::client::Client;

/// The number of queries that the flood sends at the same time. The server rejects some of these queries, because fewer
/// queries of one key can run or wait at the same time.
const FLOOD: usize = 80;
const QUERIES: usize = 20;
const EXPENSIVE: &str = r#"{"pipeline": [{"$documents": [{"a": 1}]}, {"$project":
    {"n": {"$size": {"$map": {"input": {"$range": [0, 20000]}, "in": {"$add": ["$$this", 1]}}}}}}]}"#;
const CHEAP: &str = r#"{"pipeline": [{"$documents": [{"a": 1}]}]}"#;
const PATH: &str = "/api/v1/aggregates/query";

async fn flood(client: Client) {
    loop {
        let (status, answer) = client.send("POST", PATH, EXPENSIVE).await;
        assert!(status == 200 || status == 429, "{status} {answer:.300}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_of_one_key_do_not_take_the_capacity_of_another_key() {
    let target = Target::start().await;
    let client = &target.client;
    let (_, other) = key(client, "second", None).await;
    let mut flooding = JoinSet::new();
    for _ in 0..FLOOD {
        flooding.spawn(flood(Client { address: client.address, key: client.key.clone() }));
    }
    // The flood has filled its share once a query of the same key is rejected.
    super::until(async || {
        let (status, _) = client.send("POST", PATH, CHEAP).await;
        (status != 429).then(|| "no query is rejected".to_owned())
    })
    .await;
    for number in 0..QUERIES {
        let (status, answer) = other.send("POST", PATH, CHEAP).await;
        assert_eq!(status, 200, "query {number}: {answer:.300}");
    }
    assert!(flooding.try_join_next().is_none(), "a client of the flood ended");
    flooding.shutdown().await;
    let (status, _) = other.send("POST", "/api/v1/aggregates/search", &json!({"query": "a"}).to_string()).await;
    assert_eq!(status, 200);
    target.end().await;
}
