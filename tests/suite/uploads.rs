//! Tests upload links: no part of a link can be changed, and a link becomes invalid when its creator loses the right to
//! upload.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::plan::PlanStatus;
use foldwork_engine::workspace::files::NewFile;
use foldwork_engine::workspace::keys::{DerivedKeys, NewKey};
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::{AccessSettings, Administrator};
use foldwork_server::Config;
use foldwork_tests::handles::join;
use foldwork_tests::issuer::Provider;
use foldwork_tests::server::Server;
use futures_util::future::join_all;
use poem::http::{Method, StatusCode};
use poem::{Body, Request};
use serde_json::{Value, json};
use strum::VariantArray;

const MINUTE: i64 = 60 * 1_000;

async fn started() -> Server {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    Server::start_with(&config).await.expect("a server")
}

/// Calls the tool that creates upload links, and returns its result or its error.
async fn tool(server: &Server, bearer: &str, arguments: Value) -> Result<Value, Value> {
    let call = json!({"name": "upload_file_link", "arguments": arguments});
    let request = crate::mcp::request(bearer, "tools/call", call);
    let text = server.call(request).await.into_body().into_string().await.expect("a text");
    let result = serde_json::from_str::<Value>(&text).expect("JSON")["result"].clone();
    match result["isError"] == true {
        false => Ok(result["structuredContent"].clone()),
        true => Err(serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON")),
    }
}

async fn link(server: &Server, bearer: &str, filename: &str) -> String {
    let answer = tool(server, bearer, json!({"filename": filename})).await.expect("a link");
    answer["url"].as_str().expect("a URL").to_owned()
}

async fn put(server: &Server, url: &str, bytes: impl Into<Body>) -> (StatusCode, Value) {
    let request = Request::builder().method(Method::PUT).uri(url.parse().expect("a URL")).body(bytes.into());
    let answer = server.call(request).await;
    let status = answer.status();
    let text = answer.into_body().into_string().await.expect("a text");
    (status, serde_json::from_str(&text).expect("JSON"))
}

async fn is_refused(server: &Server, url: &str) {
    let (status, body) = put(server, url, "x").await;
    assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("invalid_link")), "{url}");
    let fields = body.as_object().expect("an object").keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(fields, ["error", "code", "request_id"], "the error shows nothing about the link's creator");
}

/// Creates a key of a workspace with the scopes to read and write over the Model Context Protocol.
async fn model_key(server: &Server, name: &str, expires_at: Option<i64>) -> (String, String) {
    let scopes = vec![Scope::McpRead, Scope::McpWrite];
    let new = NewKey { name: "model".into(), scopes, expires_at, ..NewKey::default() };
    let made = server.workspace(name).await.expect("a workspace").owner.create_key(new, None).await.expect("a key");
    (made.record.id.to_string(), made.secret.expect("a secret"))
}

/// Returns the part of a URL before the link's token, and the three parts of the token.
fn parts(url: &str) -> (&str, [&str; 3]) {
    let (before, token) = url.split_once("link=").expect("a link");
    let parts: Vec<&str> = token.split('.').collect();
    (before, parts.try_into().expect("three parts"))
}

async fn used_bytes(server: &Server, name: &str) -> u64 {
    server.workspace(name).await.expect("a workspace").reader.storage_usage().await.expect("counted").used_bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modified_upload_link_is_rejected() {
    let server = started().await;
    let (_, key) = model_key(&server, "owner", None).await;
    let (one, two) = (link(&server, &key, "one.txt").await, link(&server, &key, "two.txt").await);
    let (before, [claims, key_id, signature]) = parts(&one);
    let (_, [_, _, of_two]) = parts(&two);
    let bytes = URL_SAFE_NO_PAD.decode(claims).expect("base64");
    let known: Value = serde_json::from_slice(&bytes).expect("JSON");
    let changed = |name: &str, value: Value| {
        let mut changed = known.clone();
        assert_ne!(changed[name], value, "{name} is unchanged");
        changed[name] = value;
        format!("{}.{key_id}.{signature}", URL_SAFE_NO_PAD.encode(changed.to_string()))
    };
    let path = known["path"].as_str().expect("a path");
    let theirs = server.workspace("other").await.expect("a workspace").reader.record().id.to_string();
    let mut by = known["by"].clone();
    by["key"] = Value::Null;
    let tokens = [
        changed("path", path.replace("one", "two").into()),
        changed("path", path.replace(path.split('/').next().expect("a segment"), &theirs).into()),
        changed("path", "../../x".into()),
        changed("mime_type", "text/html".into()),
        changed("max_bytes", Value::Null),
        changed("version", 1.into()),
        changed("expires_at", i64::MAX.into()),
        changed("by", by),
        format!("{claims}.{key_id}.{of_two}"),
        format!("{claims}.{key_id}."),
        format!("{claims}.another.{signature}"),
        format!("{claims}.{key_id}"),
        claims.to_owned(),
        "..".to_owned(),
        String::new(),
        "x".repeat(20_000),
    ];
    for token in tokens {
        is_refused(&server, &format!("{before}link={token}")).await;
    }
    assert_eq!(used_bytes(&server, "owner").await, 0);
    assert_eq!(put(&server, &one, "1").await.0, StatusCode::CREATED);
    assert_eq!(put(&server, &two, "22").await.0, StatusCode::CREATED);
    assert_eq!(used_bytes(&server, "owner").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_signed_for_another_purpose_are_rejected() {
    let server = started().await;
    let owner = server.workspace("owner").await.expect("a workspace");
    let request = Request::builder().method(Method::POST).uri_str("/api/v1/agents/connect");
    let request = request.header("authorization", format!("Bearer {}", server.key("owner").expect("a key")));
    let request = request.header("content-type", "application/json").body(Body::from_string("{}".to_owned()));
    let text = server.call(request).await.into_body().into_string().await.expect("a text");
    let connected: Value = serde_json::from_str(&text).expect("JSON");
    let credential = connected["anon_key"].as_str().expect("a credential");
    let credential = credential.strip_prefix("fwrt_").expect("a prefix");
    is_refused(&server, &format!("/api/v1/uploads?link={credential}")).await;
    // The token of an upload link is valid for no other purpose.
    let new = NewFile { filename: "x".into(), mime_type: "text/plain".into(), ..NewFile::default() };
    let link = owner.writer.upload_link(new, None).await.expect("a link");
    assert!(server.engine.authenticate(&link.token).await.is_err());
    assert!(server.engine.listen(&format!("fwrt_{}", link.token)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_link_expires_after_15_minutes_or_earlier_with_its_key() {
    let server = started().await;
    let (id, key) = model_key(&server, "owner", None).await;
    let revoked = link(&server, &key, "one.txt").await;
    let owner = server.workspace("owner").await.expect("a workspace");
    owner.owner.revoke_key(&id, DerivedKeys::End).await.expect("revoked");
    is_refused(&server, &revoked).await;

    // A link also becomes invalid when the key from which its creator's key is derived is revoked.
    let all = NewKey { name: "all".into(), scopes: Scope::VARIANTS.to_vec(), ..NewKey::default() };
    let first = owner.owner.create_key(all, None).await.expect("a key");
    let by_first =
        foldwork_tests::handles::enter(&server.engine, &first.secret.expect("a secret")).await.expect("a workspace");
    let scopes = vec![Scope::McpRead, Scope::McpWrite];
    let derived = NewKey { name: "derived".into(), scopes, ..NewKey::default() };
    let derived = by_first.owner.create_key(derived, None).await.expect("a key");
    let of_derived = link(&server, &derived.secret.expect("a secret"), "two.txt").await;
    owner.owner.revoke_key(&first.record.id, DerivedKeys::End).await.expect("revoked");
    is_refused(&server, &of_derived).await;

    let soon = 1_767_225_600_000 + MINUTE;
    let (_, key) = model_key(&server, "owner", Some(soon)).await;
    let answer = tool(&server, &key, json!({"filename": "three.txt"})).await.expect("a link");
    assert_eq!(answer["expires_at"], "2026-01-01T00:01:00.000Z", "the link expires with its key");
    let url = answer["url"].as_str().expect("a URL").to_owned();
    server.clock.advance(MINUTE - 1);
    assert_eq!(put(&server, &url, "x").await.0, StatusCode::CREATED);
    let (_, other) = model_key(&server, "owner", None).await;
    let lasting = link(&server, &other, "four.txt").await;
    server.clock.advance(15 * MINUTE - 1);
    assert_eq!(put(&server, &lasting, "x").await.0, StatusCode::CREATED);
    let late = link(&server, &other, "five.txt").await;
    server.clock.advance(15 * MINUTE);
    is_refused(&server, &late).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_link_is_valid_only_while_its_user_may_upload_files() {
    // Users get no personal workspace, so a token is valid for the workspace that its user has joined.
    let settings = AccessSettings { auto_provision: false, ..Provider::settings(&["ES256"]) };
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    let server = Server::start_deciding(&config, settings, Arc::default()).await.expect("a server");
    let owner = server.workspace("owner").await.expect("a workspace");
    let token = server.key("cleo").expect("a token").to_owned();
    let cleo = join(&server.engine, &owner.owner, &token, "cleo@example.com", Role::Editor).await.expect("joined");
    let cleo = cleo.user_id().to_owned();
    let kept = link(&server, &token, "one.txt").await;
    let caller = server.engine.authenticate(server.key("owner").expect("a key")).await.expect("a caller");
    let operator: Administrator = server.engine.enter(caller).await.expect("a right");

    let plan = |status| NewPlan { status: Some(status), ..NewPlan::default() };
    operator.set_plan(&cleo, plan(PlanStatus::Canceled)).await.expect("canceled");
    is_refused(&server, &kept).await;
    operator.set_plan(&cleo, plan(PlanStatus::Active)).await.expect("active");
    owner.owner.change_role(&cleo, Role::Viewer).await.expect("changed");
    is_refused(&server, &kept).await;
    owner.owner.change_role(&cleo, Role::Editor).await.expect("changed");
    assert_eq!(put(&server, &kept, "x").await.0, StatusCode::CREATED, "the link works again");
    let of_member = link(&server, &token, "two.txt").await;
    owner.owner.remove_member(&cleo, None).await.expect("removed");
    is_refused(&server, &of_member).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_link_stores_files_only_in_the_workspace_of_its_creator() {
    let server = started().await;
    for (name, bytes) in [("owner", "ours"), ("other", "theirs, which is longer")] {
        let (_, key) = model_key(&server, name, None).await;
        let (status, body) = put(&server, &link(&server, &key, "same.txt").await, bytes).await;
        assert_eq!((status, &body["size"]), (StatusCode::CREATED, &json!(bytes.len())));
        let id = server.workspace(name).await.expect("a workspace").reader.record().id.to_string();
        assert_eq!(body["path"], format!("{id}/_/_/_/same.txt"));
    }
    assert_eq!((used_bytes(&server, "owner").await, used_bytes(&server, "other").await), (4, 23));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uses_of_an_upload_link_store_one_file() {
    let server = started().await;
    let (_, key) = model_key(&server, "owner", None).await;
    let url = link(&server, &key, "one.txt").await;
    let each = (0..8).map(|number| put(&server, &url, "x".repeat(number + 1)));
    let statuses: Vec<StatusCode> = join_all(each).await.into_iter().map(|(status, _)| status).collect();
    let stored = statuses.iter().filter(|status| **status == StatusCode::CREATED).count();
    assert_eq!(stored, 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status.as_u16(), 201 | 409 | 503)), "{statuses:?}");
    let owner = server.workspace("owner").await.expect("a workspace");
    let usage = owner.reader.storage_usage().await.expect("counted");
    assert_eq!((usage.files, usage.used_bytes), (1, usage.file_bytes), "the other uploads left nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_limit_of_an_upload_link_are_rejected() {
    let server = started().await;
    let (_, key) = model_key(&server, "owner", None).await;
    let made = tool(&server, &key, json!({"filename": "one.bin", "max_bytes": 300_000})).await.expect("a link");
    let url = made["url"].as_str().expect("a URL");
    let blocks = |count: usize| {
        let blocks = (0..count).map(|_| Ok::<_, std::io::Error>(vec![7u8; 100_000]));
        Body::from_bytes_stream(futures_util::stream::iter(blocks))
    };
    let (status, body) = put(&server, url, blocks(4)).await;
    assert_eq!((status, &body["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
    assert_eq!(used_bytes(&server, "owner").await, 0);
    let request = Request::builder().method(Method::PUT).uri(url.parse().expect("a URL"));
    let announced = server.call(request.header("content-length", "300001").body(Body::empty())).await;
    assert_eq!(announced.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let (status, body) = put(&server, url, blocks(3)).await;
    assert_eq!((status, &body["size"]), (StatusCode::CREATED, &json!(300_000)));
}
