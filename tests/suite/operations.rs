//! What was begun runs to its end, whether or not the one who asked for it waits.

use std::pin::pin;

use foldwork_engine::model::access::Scope;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_tests::server::Server;
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

/// Sends a request and gives it up after so many polls, as a connection that is reset does.
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
async fn a_key_that_is_not_listed_opens_nothing_however_its_revocation_ended() {
    let server = Server::start().await.expect("a server");
    let mut keys = Vec::new();
    // The last request is waited for.
    for polls in (0..40).map(|number| number * number).chain([usize::MAX]) {
        let workspace = server.workspace("owner").await.expect("a workspace");
        let new = NewKey { name: polls.to_string(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
        let made = workspace.owner.create_key(new, None).await.expect("a key");
        let secret = made.secret.expect("its secret");
        server.engine.authenticate(&secret).await.expect("it opens");
        let path = format!("/api/v1/keys/{}", made.record.id);
        given_up(&server, request(&server, Method::DELETE, &path, ""), polls).await;
        keys.push((made.record.id, secret));
    }
    // Waits for what is under way.
    server.engine.close().await;
    let listed = server.workspace("owner").await.expect("a workspace").reader.list_keys().await.expect("keys");
    let mut revoked = 0;
    for (id, secret) in keys {
        let is_listed = listed.iter().any(|key| key.id == id);
        assert_eq!(server.engine.authenticate(&secret).await.is_ok(), is_listed);
        revoked += usize::from(!is_listed);
    }
    assert!(revoked > 0, "no request came so far");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_given_up_leave_the_consumer_at_work() {
    let server = Server::start_with_plugins(vec!["echo".into()]).await.expect("a server");
    for polls in 0..20 {
        let event = r#"{"aggregate_type": "article", "event_type": "article.updated", "payload": {"title": "t"}}"#;
        given_up(&server, request(&server, Method::POST, "/api/v1/aggregates/a/events", event), polls).await;
        for path in ["/parked/replay", "/plugins/echo/replay", "/plugins/echo/resume", "/system/rebuild-graph"] {
            let path = format!("/api/v1{path}");
            given_up(&server, request(&server, Method::POST, &path, "{}"), polls).await;
        }
    }
    let event = r#"{"aggregate_type": "article", "event_type": "article.updated", "payload": {"title": "last"}}"#;
    let answer = server.call(request(&server, Method::POST, "/api/v1/aggregates/a/events", event)).await;
    assert_eq!(answer.status().as_u16(), 201);
    let workspace = server.workspace("owner").await.expect("a workspace");
    foldwork_tests::server::worked(&workspace).await.expect("the consumer comes to the end of the log");
}
