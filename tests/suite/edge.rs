//! Tests behavior that scenarios cannot cause or do not show: rate limits, the header that names the workspace of the
//! caller, the shutdown, and the time limit of pipelines.

use foldwork_server::Config;
use foldwork_tests::server::Server;
use poem::http::StatusCode;
use poem::{Body, Request, Response};

fn get(path: &str, key: Option<&str>) -> Request {
    let mut request = Request::builder().uri(path.parse().expect("a path"));
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    request.finish()
}

async fn text(response: Response) -> String {
    response.into_body().into_string().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_rate_limit_of_their_key_get_429_with_retry_after() {
    let mut config = Config::default();
    config.http.rate_limit_per_minute = 3;
    let server = Server::start_with(&config).await.expect("a server");
    for _ in 0..3 {
        let answer = server.call(get("/api/v1/projects", server.key("owner"))).await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
    let answer = server.call(get("/api/v1/projects", server.key("owner"))).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = answer.header("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds");
    assert!((1..=60).contains(&wait), "retry-after: {wait}");
    assert!(text(answer).await.contains("\"rate_limited\""));
    // Other keys have their own allowance.
    let answer = server.call(get("/api/v1/projects", server.key("reader"))).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_invalid_tokens_count_against_the_limit_of_their_address() {
    let mut config = Config::default();
    config.http.address_limit_per_minute = 3;
    let server = Server::start_with(&config).await.expect("a server");
    let ask = async |key: &str| server.call(get("/api/v1/projects", Some(key))).await.status();
    let owner = server.key("owner").expect("the owner").to_owned();
    let made_up = |digit: &str| format!("sk_{}", digit.repeat(64));
    assert_eq!(ask(&owner).await, StatusCode::OK);
    assert_eq!(ask(&made_up("a")).await, StatusCode::UNAUTHORIZED);
    // A successful request to a path that needs no key does not make a key count as valid.
    assert_eq!(server.call(get("/openapi.json", Some(&made_up("b")))).await.status(), StatusCode::OK);
    assert_eq!(ask(&made_up("b")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(server.call(get("/openapi.json", None)).await.status(), StatusCode::TOO_MANY_REQUESTS);
    // Health checks have no limit.
    for path in ["/healthz", "/readyz", "/healthz", "/readyz"] {
        assert_eq!(server.call(get(path, None)).await.status(), StatusCode::OK, "{path}");
    }
    // A valid key is limited by its own allowance only, not by its address.
    for _ in 0..5 {
        assert_eq!(ask(&owner).await, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_and_codes_are_limited_by_default_and_valid_tokens_are_not() {
    assert_eq!(Config::default().http.wrong_token_limit_per_minute, 300);
    let mut config = Config::default();
    config.http.wrong_token_limit_per_minute = 3;
    let server = Server::start_with(&config).await.expect("a server");
    let ask = async |key: &str| server.call(get("/api/v1/projects", Some(key))).await;
    let owner = server.key("owner").expect("the owner").to_owned();
    assert_eq!(ask(&owner).await.status(), StatusCode::OK);
    for digit in ["a", "b", "c", "d"] {
        assert_eq!(ask(&format!("sk_{}", digit.repeat(64))).await.status(), StatusCode::UNAUTHORIZED);
    }
    let limited = ask(&format!("sk_{}", "e".repeat(64))).await;
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.header("retry-after").is_some());
    // A guessed code is a wrong credential as well.
    let code = Request::builder().method(poem::http::Method::POST).uri_str("/api/v1/keys/sign-in-codes/exchange");
    let code = code.header("content-type", "application/json").body(Body::from_string(r#"{"code": "sic_0"}"#.into()));
    assert_eq!(server.call(code).await.status(), StatusCode::TOO_MANY_REQUESTS);
    // A token that is known to be valid and requests without a token are not affected.
    assert_eq!(ask(&owner).await.status(), StatusCode::OK);
    assert_eq!(server.call(get("/openapi.json", None)).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_names_the_workspace_of_its_caller() {
    let server = Server::start().await.expect("a server");
    let answer = server.call(get("/api/v1/workspace", server.key("owner"))).await;
    let named = answer.header("foldwork-workspace").expect("a header").to_owned();
    assert!(text(answer).await.contains(&format!("\"id\":\"{named}\"")));
    let answer = server.call(get("/api/v1/workspace", None)).await;
    assert_eq!((answer.status(), answer.header("foldwork-workspace")), (StatusCode::UNAUTHORIZED, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_is_not_ready_but_alive() {
    let server = Server::start().await.expect("a server");
    server.shutdown.begin();
    let answer = server.call(get("/readyz", None)).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(answer).await.contains("stopping"));
    assert_eq!(server.call(get("/healthz", None)).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_gets_a_response_when_the_server_stops() {
    let server = Server::start().await.expect("a server");
    let waiting = server.call(get("/api/v1/events?wait_ms=30000", server.key("owner")));
    let (answer, ()) = tokio::join!(waiting, async { server.shutdown.begin() });
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(text(answer).await, r#"{"data":[],"next_cursor":null,"position":0}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_ends_at_its_time_limit() {
    let server = Server::start().await.expect("a server");
    server.clock.advance_stopwatch_by(1_000_000);
    let pipeline = r#"{"pipeline": [{"$documents": [{}]}, {"$project": {"n": {"$range": [0, 100000]}}}, {"$unwind": "$n"}, {"$match": {"n": -1}}]}"#;
    let owner = format!("Bearer {}", server.key("owner").expect("the owner"));
    let request = Request::builder()
        .method(poem::http::Method::POST)
        .uri("/api/v1/aggregates/query".parse().expect("a path"))
        .header("authorization", owner)
        .content_type("application/json")
        .body(Body::from_string(pipeline.into()));
    let answer = server.call(request).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let body = text(answer).await;
    assert!(body.contains("\"code\":\"query_timeout\""), "{body}");
}
