//! Tests concurrent changes that the log appends in one batch: each response shows the state right after the change of
//! its own request, even if other changes follow in the same batch.

use futures_util::future::join_all;
use poem::http::Method;
use serde_json::{Value, json};

use super::board::{DRAFTER, get, post, request_with, server, task};

#[tokio::test]
async fn an_action_on_a_task_returns_the_task_after_this_action() {
    let server = server().await;
    let actions = [
        ("claim", "task.claimed", json!({"agent_id": DRAFTER})),
        ("release", "task.released", json!({"agent_id": DRAFTER})),
        ("defer", "task.deferred", json!({"for_seconds": 600})),
        ("ask", "task.asked", json!({"message": "shorter"})),
        ("reject", "task.rejected", json!({})),
    ];
    let mut followed = 0;
    for first in 0..actions.len() * 2 {
        let id = task(&server, DRAFTER).await;
        // Each batch begins with a different action.
        let rotated = actions.iter().cycle().skip(first).take(actions.len());
        let sent = rotated.map(async |(verb, event_type, body)| {
            let (status, task) = post(&server, &format!("/mailbox/{id}/{verb}"), body).await;
            (*event_type, status, task)
        });
        let answers = join_all(sent).await;
        let (_, task) = get(&server, &format!("/mailbox/{id}")).await;
        let timeline = task["timeline"].as_array().expect("a timeline");
        let done: Vec<&(&str, u16, Value)> = answers.iter().filter(|(_, status, _)| *status == 200).collect();
        assert_eq!(timeline.len(), done.len() + 1, "each event has a response: {answers:#?} {timeline:#?}");
        for (event_type, _, answer) in done {
            let version = answer["version"].as_u64().expect("a version") as usize;
            let entry = &timeline[version - 1];
            assert_eq!((&entry["event_type"], &entry["status"]), (&json!(event_type), &answer["status"]), "{answer}");
            followed += usize::from(version < timeline.len());
        }
    }
    assert!(followed > 0, "no action was followed by another action");
}

#[tokio::test]
async fn an_edit_of_an_article_returns_the_article_after_this_edit() {
    let server = server().await;
    let (_, article) = post(&server, "/articles", &json!({"title": "first"})).await;
    let path = format!("/articles/{}", article["aggregate_id"].as_str().expect("an id"));
    let titles = ["a", "b", "c", "d"];
    let edits = titles.map(async |title| request_with(&server, Method::PATCH, &path, &json!({"title": title})).await.1);
    let edited = join_all(edits).await;
    let mut versions: Vec<u64> = edited.iter().filter_map(|article| article["version"].as_u64()).collect();
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4, 5], "{edited:#?}");
    for (title, article) in titles.iter().zip(&edited) {
        assert_eq!(article["title"], *title);
    }
}
