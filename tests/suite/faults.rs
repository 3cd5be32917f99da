//! Tests the faults that any operation may return: an exhausted rate limit, a panic, and a workspace that cannot be
//! opened.

use std::sync::Arc;

use foldwork_engine::AppendBatch;
use foldwork_engine::model::json::MAX_STORED_DEPTH;
use foldwork_engine::model::value::{Object, Value as State};
use foldwork_server::Config;
use foldwork_tests::events::first_event;
use foldwork_tests::expectation::all_well;
use foldwork_tests::server::Server;
use futures_util::stream;
use poem::http::{Method, StatusCode};
use poem::{Body, Request, Response};
use serde_json::Value;
use strum::VariantArray;

use crate::coverage::{Operation, operations};

const BODY: &str = r#"{"aggregate_type": "article", "event_type": "article.changed", "payload": {"title": "one"}}"#;

/// A failure that does not depend on the request.
#[derive(Clone, Copy, Debug, VariantArray)]
pub enum Fault {
    NoAllowance,
    Panic,
    ClosedWorkspace,
}

impl Fault {
    /// Returns the status of the responses during the fault.
    pub fn status(self) -> StatusCode {
        match self {
            Fault::NoAllowance => StatusCode::TOO_MANY_REQUESTS,
            Fault::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            Fault::ClosedWorkspace => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Fault::NoAllowance => "rate_limited",
            Fault::Panic => "internal",
            Fault::ClosedWorkspace => "unavailable",
        }
    }

    /// Causes the fault, and returns the responses to requests during the fault.
    async fn answers(self) -> anyhow::Result<Vec<(String, Response)>> {
        match self {
            Fault::NoAllowance => without_allowance().await,
            Fault::Panic => while_the_clock_is_broken().await,
            Fault::ClosedWorkspace => while_a_workspace_stays_closed().await,
        }
    }
}

async fn without_allowance() -> anyhow::Result<Vec<(String, Response)>> {
    let mut config = Config::default();
    config.http.rate_limit_per_minute = 1;
    let server = Server::start_with(&config).await?;
    let mut operations = operations().into_iter();
    let first = operations.next().expect("an operation");
    assert_ne!(server.call(request(&server, &first, Body::empty())).await.status(), StatusCode::TOO_MANY_REQUESTS);
    Ok(to_each(&server, operations).await)
}

/// Sends requests while every reading of the clock panics, and checks that the server works afterwards. The guard of
/// every operation reads the clock.
async fn while_the_clock_is_broken() -> anyhow::Result<Vec<(String, Response)>> {
    let server = Server::start().await?;
    server.clock.break_down();
    let answers = to_each(&server, operations()).await;
    server.clock.repair();
    let append = operation("append_event");
    let after = server.call(request(&server, &append, Body::from_string(BODY.into()))).await;
    assert_eq!(after.status(), StatusCode::CREATED, "the server keeps working after a panic");
    Ok(answers)
}

/// Sends a request to a workspace that cannot be loaded, because an event in its log exceeds the depth limit of stored
/// events.
async fn while_a_workspace_stays_closed() -> anyhow::Result<Vec<(String, Response)>> {
    let server = Server::start().await?;
    let (workspace, key) = server.engine.provision("broken", None).await?;
    let deep = (0..=MAX_STORED_DEPTH).fold(State::Null, |inner, _| vec![inner].into());
    let event = first_event("n", "article.changed", Object::from_iter([("deep", deep)]));
    let log = server.store.workspace(&workspace.id).await?;
    log.append(AppendBatch { events: &[Arc::new(event).into()], ..AppendBatch::default() }).await?;
    let append = operation("append_event");
    let answer = server.call(request_by(&key, &append, Body::from_string(BODY.into()))).await;
    Ok(vec![(append.id, answer)])
}

/// The body of the requests to all operations that take a body. The operation that exchanges a sign-in code uses the
/// code in the body as the credential.
const ANY_BODY: &str = r#"{"code": "sic_0"}"#;

/// The query string for `/uploads`. A link in the query string authenticates this operation instead of a header.
const QUERY: &str = "?link=a";

async fn to_each(server: &Server, operations: impl IntoIterator<Item = Operation>) -> Vec<(String, Response)> {
    let mut answers = Vec::new();
    for operation in operations {
        let body = if operation.has_body { Body::from_string(ANY_BODY.into()) } else { Body::empty() };
        let answer = server.call(request(server, &operation, body)).await;
        answers.push((operation.id, answer));
    }
    answers
}

fn operation(id: &str) -> Operation {
    operations().into_iter().find(|operation| operation.id == id).expect("an operation of this name")
}

fn request(server: &Server, operation: &Operation, body: Body) -> Request {
    request_by(server.key("owner").expect("the owner"), operation, body)
}

fn request_by(key: &str, operation: &Operation, body: Body) -> Request {
    let path: Vec<&str> =
        operation.path.split('/').map(|part| if part.starts_with('{') { "a" } else { part }).collect();
    let query = if operation.path.ends_with("/uploads") { QUERY } else { "" };
    Request::builder()
        .method(Method::from_bytes(operation.method.as_bytes()).expect("a method"))
        .uri(format!("{}{query}", path.join("/")).parse().expect("a path"))
        .header("authorization", format!("Bearer {key}"))
        .content_type("application/json")
        .body(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_to_faults_have_the_common_error_format_without_internals() {
    let mut failures = Vec::new();
    for fault in Fault::VARIANTS.iter().copied() {
        let answers = fault.answers().await.expect("a server");
        assert!(!answers.is_empty(), "no request hit {fault:?}");
        for (id, answer) in answers {
            let status = answer.status();
            let text = answer.into_body().into_string().await.expect("a text");
            let body: Value = serde_json::from_str(&text).unwrap_or_default();
            let named = body["error"].is_string() && body["request_id"].is_string();
            if status != fault.status() || body["code"] != fault.code() || !named || text.contains("clock") {
                failures.push(format!("{fault:?}: {id} answers {status} {text}"));
            }
        }
    }
    all_well(failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_for_rate_limits_and_closed_workspaces_have_retry_after() {
    for fault in [Fault::NoAllowance, Fault::ClosedWorkspace] {
        for (id, answer) in fault.answers().await.expect("a server") {
            let wait: Option<u64> = answer.header("retry-after").and_then(|wait| wait.parse().ok());
            assert!(
                wait.is_some_and(|wait| (1..=60).contains(&wait)),
                "{fault:?}: {id} answers {} {wait:?}",
                answer.status()
            );
        }
    }
}

/// The clock breaks after authentication, while the body is read, so that the writer of the log panics.
#[tokio::test(flavor = "multi_thread")]
async fn the_writer_of_a_log_survives_a_panic() {
    let server = Server::start().await.expect("a server");
    let append = operation("append_event");
    let whole = || Body::from_string(BODY.into());
    for round in 0..3 {
        let clock = server.clock.clone();
        let breaking = stream::once(async move {
            clock.break_down();
            std::io::Result::Ok(BODY)
        });
        let answer = server.call(request(&server, &append, Body::from_bytes_stream(breaking))).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR, "round {round}");
        server.clock.repair();
        assert_eq!(
            server.call(request(&server, &append, whole())).await.status(),
            StatusCode::CREATED,
            "round {round}"
        );
    }
    let position = server.workspace("owner").await.expect("the workspace").reader.position();
    assert_eq!(position, 3, "the log has other events than one per round");
}
