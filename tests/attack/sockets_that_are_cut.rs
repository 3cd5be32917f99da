//! Breaks the connection of an agent repeatedly while the agent gets tasks. Each task is delivered at least once, even
//! if the server restarts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::target::Target;
use crate::client::Client;
use crate::socket::{Socket, agent, task, topic};

const TASKS: usize = 200;
const CUTS: usize = 40;

/// Joins the agent's channel, adds the tasks of `count` events to `seen`, acknowledges some of the events, and breaks
/// the connection.
async fn listen(client: &Client, agent: &str, count: usize, seen: &mut BTreeSet<String>) {
    let topic = topic(agent);
    let mut socket = Socket::open(client, &json!({"agent_ids": [agent]})).await;
    let joined = socket.join(&topic, json!({})).await;
    for number in 0..count {
        let message = socket.next_broadcast(&topic).await;
        seen.insert(message["payload"]["task"]["id"].as_str().expect("an id").to_owned());
        if number % 2 == 0 {
            let payload =
                json!({"type": "broadcast", "event": "ack", "payload": {"position": message["payload"]["position"]}});
            socket.push(Some(&joined), &topic, "broadcast", payload).await;
        }
    }
    socket.cut();
}

/// Reads events until `seen` contains every expected task, and acknowledges all events.
async fn take_in(client: &Client, agent: &str, expected: &BTreeSet<String>, seen: &mut BTreeSet<String>) {
    let topic = topic(agent);
    let mut socket = Socket::open(client, &json!({"agent_ids": [agent]})).await;
    let joined = socket.join(&topic, json!({})).await;
    let mut position = Value::Null;
    while !expected.is_subset(seen) {
        let message = socket.next_broadcast(&topic).await;
        seen.insert(message["payload"]["task"]["id"].as_str().expect("an id").to_owned());
        position = message["payload"]["position"].clone();
    }
    if !position.is_null() {
        socket.acknowledge(&joined, &topic, &position).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connections_lose_no_events_and_acknowledgements_survive_a_restart() {
    let target = Target::start().await;
    let id = agent(&target.client, "writer").await;
    let (made, mut seen) = {
        let client = Client { address: target.client.address, key: target.client.key.clone() };
        let agent = id.clone();
        let giving = tokio::spawn(async move {
            let mut made = BTreeSet::new();
            for number in 0..TASKS {
                made.insert(task(&client, &agent, &format!("Task {number}")).await);
            }
            made
        });
        let mut seen = BTreeSet::new();
        for cut in 0..CUTS {
            listen(&target.client, &id, cut % 5, &mut seen).await;
        }
        (giving.await.expect("no panic"), seen)
    };
    take_in(&target.client, &id, &made, &mut seen).await;
    assert_eq!(seen, made);

    // The acknowledged position of the agent survives the restart.
    let late = task(&target.client, &id, "late").await;
    let target = target.restart().await;
    let mut after = BTreeSet::new();
    take_in(&target.client, &id, &[late.clone()].into(), &mut after).await;
    assert!(after.contains(&late));
    assert!(after.len() <= 2, "acknowledged events are sent again: {after:?}");
    target.end().await;
}
