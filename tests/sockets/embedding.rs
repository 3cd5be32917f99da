//! Tests embeddings from a service. The test runs a small service, and a server that uses the service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use foldwork_server::Config;
use foldwork_server::config::{Embedding, EmbeddingCalls};
use foldwork_server::embedding;
use poem::http::StatusCode;
use poem::listener::{Acceptor, Listener, TcpListener};
use poem::web::{Data, Json};
use poem::{EndpointExt, IntoResponse, Route, Server, handler, post};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{TIMEOUT, created, serve_with};

/// The requests that the service has received.
type Requests = Arc<Mutex<Vec<Value>>>;

/// Responds with one vector for each text, in reverse order of the texts. A vector contains the length of the text and
/// the number 1. Rejects requests with the text `refuse`, and never responds to requests with the text `wait`.
#[handler]
async fn embeddings(Json(body): Json<Value>, Data(requests): Data<&Requests>) -> poem::Response {
    requests.lock().expect("no panic before").push(body.clone());
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).expect("texts");
    if texts.iter().any(|text| text == "refuse") {
        return (StatusCode::TOO_MANY_REQUESTS, "slow down").into_response();
    }
    if texts.iter().any(|text| text == "wait") {
        return std::future::pending().await;
    }
    let vector = |(index, text): (usize, &String)| json!({"index": index, "embedding": [text.len(), 1.0]});
    let data: Vec<Value> = texts.iter().enumerate().map(vector).rev().collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

/// Starts the service and returns settings with its URL.
async fn service(requests: &Requests) -> Embedding {
    let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await.expect("a port");
    let address = acceptor.local_addr()[0].to_string();
    let routes = Route::new().at("/v1/embeddings", post(embeddings)).data(requests.clone());
    tokio::spawn(Server::new_with_acceptor(acceptor).run(routes));
    let url = address.replace("socket://", "http://") + "/v1/";
    Embedding { url, model: "lengths".into(), calls: EmbeddingCalls { batch: 2, ..EmbeddingCalls::default() } }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_sent_to_an_embedding_service_in_batches_and_errors_are_reported() {
    let requests = Requests::default();
    let settings = service(&requests).await;
    let embed = embedding::open(&settings).expect("settings").expect("a model");
    assert_eq!(embed.model(), "lengths");
    let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    let (model, input) = (embed.clone(), texts(&["a", "bb", "ccc"]));
    let vectors = tokio::task::spawn_blocking(move || model.embed(&input)).await.expect("no panic");
    assert_eq!(vectors.expect("vectors"), [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]);
    let parts = [json!({"model": "lengths", "input": ["a", "bb"]}), json!({"model": "lengths", "input": ["ccc"]})];
    assert_eq!(*requests.lock().expect("no panic before"), parts);

    let (model, input) = (embed.clone(), texts(&["refuse"]));
    let refused = tokio::task::spawn_blocking(move || model.embed(&input)).await.expect("no panic");
    assert_eq!(refused.expect_err("refused").0, "the embedding service returned 429 Too Many Requests: slow down");

    let calls = EmbeddingCalls { timeout: Duration::from_millis(50), ..settings.calls.clone() };
    let hasty = embedding::open(&Embedding { calls, ..settings.clone() }).expect("settings").expect("a model");
    let late = tokio::task::spawn_blocking(move || hasty.embed(&["wait".into()])).await.expect("no panic");
    assert!(late.expect_err("too late").0.contains("timed out"));

    let nameless = Embedding { model: String::new(), ..settings.clone() };
    let error = embedding::open(&nameless).err().expect("no model is named");
    assert_eq!(error.to_string(), "search.embedding.model is empty; expected the name of a model");
    let nowhere = Embedding { url: "nowhere".into(), ..settings };
    let error = embedding::open(&nowhere).err().expect("no URL");
    assert_eq!(error.to_string(), "search.embedding.url: invalid URL 'nowhere'");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_searches_with_its_configured_embedding_service() {
    let mut config = Config::default();
    config.search.embedding = service(&Requests::default()).await;
    let serving = serve_with(config).await;
    assert_eq!(serving.client.send("POST", "/api/v1/aggregates/a/events", &created("one")).await.0, 201);
    let found = async {
        loop {
            let query = r#"{"query": "two"}"#;
            let (status, answer) = serving.client.send("POST", "/api/v1/aggregates/search", query).await;
            assert_eq!(status, 200, "{answer}");
            if answer.contains(r#""kind":"vector""#) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let answer = timeout(TIMEOUT, found).await.expect("the event is embedded");
    assert!(answer.contains(r#""vector":1.0"#) && !answer.contains("warnings"), "{answer}");
    serving.end().await;
}
