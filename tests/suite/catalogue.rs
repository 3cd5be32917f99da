//! Tests the catalogue of the pipeline language over HTTP: every example returns its documented result, and the page
//! shows every entry.

use foldwork_tests::expectation::all_well;
use foldwork_tests::server::Server;
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};

async fn call(server: &Server, method: Method, path: &str, body: Option<&Value>) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path.parse().expect("a path"))
        .header("authorization", format!("Bearer {}", server.key("owner").expect("an owner")))
        .content_type("application/json");
    let request = match body {
        Some(body) => request.body(Body::from_json(body).expect("JSON")),
        None => request.finish(),
    };
    let text = server.call(request).await.into_body().into_string().await.expect("a text");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_catalogue_returns_its_documented_result() {
    let server = Server::start().await.expect("a server");
    let list = call(&server, Method::GET, "/api/v1/pipelines/operators", None).await;
    let entries = list["data"].as_array().expect("a list");
    assert!(entries.len() > 200, "the catalogue has only {} entries", entries.len());
    let mut wrong = Vec::new();
    for entry in entries {
        let example = &entry["example"];
        let is_fold = entry["name"] == "$fold";
        for event in example["input"].as_array().into_iter().flatten().filter(|_| is_fold) {
            let mut event = event.clone();
            let id = event.as_object_mut().and_then(|event| event.remove("aggregate_id")).expect("an id");
            event["aggregate_type"] = "article".into();
            let path = format!("/api/v1/aggregates/{}/events", id.as_str().expect("a text"));
            call(&server, Method::POST, &path, Some(&event)).await;
        }
        let answer =
            call(&server, Method::POST, "/api/v1/aggregates/query", Some(&json!({"pipeline": example["pipeline"]})))
                .await;
        let mut results = answer["results"].clone();
        if is_fold {
            // An example may show only some of a state's fields.
            let shown = example["result"][0].as_object().expect("a row").keys();
            results =
                json!([shown.map(|name| (name.clone(), results[0][name].clone())).collect::<serde_json::Map<_, _>>()]);
        }
        let whole = matches!(entry["kind"].as_str(), Some("stage" | "query")) || example["result"] == results;
        let found = if whole { results } else { results[0]["result"].clone() };
        if found != example["result"] {
            wrong.push(format!("{} {}: found {answer}, expected {}", entry["kind"], entry["name"], example["result"]));
        }
    }
    all_well(wrong);
    let page = call(&server, Method::GET, "/docs/operators", None).await;
    let page = page.as_str().expect("a page");
    let shown =
        |entry: &&Value| !page.contains(&format!("<code>{}</code>", entry["name"].as_str().unwrap_or_default()));
    all_well(entries.iter().filter(shown).map(|entry| format!("the page does not show {}", entry["name"])).collect());
}
