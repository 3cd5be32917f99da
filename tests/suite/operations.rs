//! Tests that an operation that has begun is completed even if its client disconnects.

use std::pin::pin;

use foldwork_engine::model::access::Scope;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_tests::server::{Server, Setup};
use futures_util::poll;
use poem::http::Method;
use poem::{Body, Request};

fn request(server: &Server, method: Method, path: &str, body: &str) -> Request {
    let key = server.key("owner").expect("the owner");
    Request::builder()
        .method(method)
        .uri(path.parse().expect("a path"))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(Body::from_string(body.to_owned()))
}

/// Sends a request, and drops its future after this many polls, as the server does when a connection is reset.
async fn given_up(server: &Server, request: Request, polls: usize) {
    let mut answer = pin!(server.call(request));
    for _ in 0..polls {
        if poll!(answer.as_mut()).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_listed_keys_are_valid_after_aborted_revocations() {
    let server = Server::start().await.expect("a server");
    let mut keys = Vec::new();
    // The last request is polled until it is completed.
    for polls in (0..40).map(|number| number * number).chain([usize::MAX]) {
        let workspace = server.workspace("owner").await.expect("a workspace");
        let new = NewKey { name: polls.to_string(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
        let made = workspace.owner.create_key(new, None).await.expect("a key");
        let secret = made.secret.expect("a secret");
        server.engine.authenticate(&secret).await.expect("a caller");
        let path = format!("/api/v1/keys/{}", made.record.id);
        given_up(&server, request(&server, Method::DELETE, &path, ""), polls).await;
        keys.push((made.record.id, secret));
    }
    // Waits for operations in progress.
    server.engine.close().await;
    let listed = server.workspace("owner").await.expect("a workspace").reader.list_keys().await.expect("keys");
    let mut revoked = 0;
    for (id, secret) in keys {
        let is_listed = listed.iter().any(|key| key.id == id);
        assert_eq!(server.engine.authenticate(&secret).await.is_ok(), is_listed);
        revoked += usize::from(!is_listed);
    }
    assert!(revoked > 0, "no request got far enough to revoke a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_requests_do_not_stop_the_consumer() {
    let server = Setup::with_plugins(vec!["echo".into()]).start().await.expect("a server");
    for polls in 0..20 {
        let event = r#"{"aggregate_type": "article", "event_type": "article.changed", "payload": {"title": "t"}}"#;
        given_up(&server, request(&server, Method::POST, "/api/v1/aggregates/a/events", event), polls).await;
        for path in ["/parked/replay", "/plugins/echo/replay", "/plugins/echo/resume", "/system/rebuild-graph"] {
            let path = format!("/api/v1{path}");
            given_up(&server, request(&server, Method::POST, &path, "{}"), polls).await;
        }
    }
    let event = r#"{"aggregate_type": "article", "event_type": "article.changed", "payload": {"title": "last"}}"#;
    let answer = server.call(request(&server, Method::POST, "/api/v1/aggregates/a/events", event)).await;
    assert_eq!(answer.status().as_u16(), 201);
    let workspace = server.workspace("owner").await.expect("a workspace");
    foldwork_tests::server::worked(&workspace).await.expect("the consumer reaches the end of the log");
}
