//! Numbers that neither a 64-bit integer nor a double represents: the log keeps them as they were written.

use foldwork_tests::server::Server;
use poem::http::{Method, StatusCode};
use poem::{Body, Request};

/// Sends a request as the owner. Returns the status and the text of the response.
async fn call(server: &Server, method: Method, path: &str, body: &str) -> (StatusCode, String) {
    let request = Request::builder()
        .method(method)
        .uri_str(format!("/api/v1{path}"))
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", server.key("owner").expect("a key")))
        .body(Body::from_string(body.to_owned()));
    let response = server.call(request).await;
    (response.status(), response.into_body().into_string().await.expect("a text"))
}

/// Returns an event whose payload and metadata have this number.
fn event(number: &str) -> String {
    format!(
        r#"{{"event_id": "e", "aggregate_type": "note", "event_type": "note.created", "payload": {{"id": {number}, "in": [{{"x": {number}}}]}}, "metadata": {{"m": {number}}}}}"#
    )
}

const NUMBERS: [&str; 5] = [
    "18446744073709551616",
    "-9223372036854775809",
    "100000000000000000000",
    "3.14159265358979323846264338327950288",
    "123456789012345678901234567890.5e-3",
];

#[tokio::test(flavor = "multi_thread")]
async fn long_numbers_are_returned_as_they_were_written() {
    for number in NUMBERS {
        let server = Server::start().await.expect("a server");
        call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
        let payload = format!(r#""payload":{{"id":{number},"in":[{{"x":{number}}}]}},"metadata":{{"m":{number}}}"#);
        let (status, appended) = call(&server, Method::POST, "/aggregates/a/events", &event(number)).await;
        assert_eq!(status, StatusCode::CREATED, "{appended}");
        assert!(appended.contains(&payload), "{appended}");
        // The first list is read from the store, and the second from memory.
        for path in ["/aggregates/a/events", "/events"] {
            let (_, list) = call(&server, Method::GET, path, "").await;
            assert!(list.contains(&payload), "{list}");
        }
        let several = format!(
            r#"{{"events": [{{"aggregate_id": "b", "aggregate_type": "note", "event_type": "note.created", "payload": {{}}}}, {{"aggregate_id": "c", {}]}}"#,
            &event(number)[1..].replace(r#""e""#, r#""f""#)
        );
        let (status, appended) = call(&server, Method::POST, "/events", &several).await;
        assert_eq!(status, StatusCode::CREATED, "{appended}");
        assert!(appended.contains(&payload), "{appended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn states_and_pipelines_have_the_nearest_double() {
    let server = Server::start().await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    call(&server, Method::POST, "/aggregates/a/events", &event("18446744073709551617")).await;
    let (_, state) = call(&server, Method::GET, "/aggregates/a", "").await;
    assert!(state.contains(r#""id":1.8446744073709552e+19,"in":[{"x":1.8446744073709552e+19}]"#), "{state}");
    for pipeline in [r#"[]"#, r#"[{"$project": {"payload": 1, "metadata": 1}}]"#, r#"[{"$fold": {}}]"#] {
        let (status, rows) =
            call(&server, Method::POST, "/aggregates/query", &format!(r#"{{"pipeline": {pipeline}}}"#)).await;
        assert_eq!(status, StatusCode::OK, "{rows}");
        assert!(rows.contains("1.8446744073709552e+19") && !rows.contains("18446744073709551617"), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_with_different_long_numbers_are_different() {
    let server = Server::start().await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    let append = async |number: &str| call(&server, Method::POST, "/aggregates/a/events", &event(number)).await.0;
    assert_eq!(append("18446744073709551616").await, StatusCode::CREATED);
    assert_eq!(append("18446744073709551616").await, StatusCode::OK);
    assert_eq!(append("1844674407370955161600e-2").await, StatusCode::OK);
    assert_eq!(append("18446744073709551617").await, StatusCode::CONFLICT);
    assert_eq!(append("1.8446744073709552e+19").await, StatusCode::CONFLICT);
}
