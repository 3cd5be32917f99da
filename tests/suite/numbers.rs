//! Tests numbers that neither a 64-bit integer nor a double represents exactly: the log keeps their text.

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

/// Returns an event whose payload and metadata contain this number.
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
        // The first list is read from the store, the second from memory.
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
async fn states_and_pipelines_return_the_nearest_double_of_a_long_number() {
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
async fn decimals_inside_objects_and_lists_keep_their_digits() {
    let server = Server::start().await.expect("a server");
    let order = r#"{"type_name": "order", "fields": [
        {"name": "total", "type": "object", "fields": [{"name": "net", "type": "decimal", "max": 100}]},
        {"name": "rates", "type": "array", "items": {"type": "decimal"}}]}"#;
    let (status, defined) = call(&server, Method::POST, "/aggregates/define", order).await;
    assert_eq!(status, StatusCode::CREATED, "{defined}");
    let append = async |verb: &str, payload: &str| {
        let event = format!(r#"{{"aggregate_type": "order", "event_type": "order.{verb}", "payload": {payload}}}"#);
        call(&server, Method::POST, "/aggregates/a/events", &event).await
    };
    let first = r#"{"total": {"net": 12.345678901234567891}, "rates": [1, 0.1000000000000000055]}"#;
    let (status, appended) = append("created", first).await;
    assert_eq!(status, StatusCode::CREATED, "{appended}");
    let (status, refused) = append("changed", r#"{"total": {"net": 100.00000000000000001}}"#).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert!(refused.contains(r#""pointer":"/payload/total/net""#), "{refused}");
    let (status, appended) = append("changed", r#"{"total": {"net": 1.5}, "rates": []}"#).await;
    assert_eq!(status, StatusCode::CREATED, "{appended}");
    let state = r#""total":{"net":"12.345678901234567891"},"rates":["1","0.1000000000000000055"]"#;
    let (_, then) = call(&server, Method::GET, "/aggregates/a?version=1", "").await;
    assert!(then.contains(state), "{then}");
    for (pipeline, expected) in [
        (r#"[{"$fold": {"version": 1}}]"#, state),
        (r#"[{"$match": {"version": 1}}, {"$fold": {}}]"#, state),
        (
            r#"[{"$fold": {"version": 1}}, {"$project": {"_id": 0, "sum": {"$sum": "$rates"}}}]"#,
            r#"{"sum":"1.1000000000000000055"}"#,
        ),
    ] {
        let (status, rows) =
            call(&server, Method::POST, "/aggregates/query", &format!(r#"{{"pipeline": {pipeline}}}"#)).await;
        assert_eq!(status, StatusCode::OK, "{rows}");
        assert!(rows.contains(expected), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_effect_keeps_its_numbers_as_they_were_written() {
    let server = Server::start().await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    for number in NUMBERS {
        for (aggregate, act, body) in [("approved", "approve", "{}"), ("edited", "edit", r#"{"text": "brief"}"#)] {
            let id = format!("{aggregate}-{number}");
            let task = format!(
                r#"{{"title": "Note it", "source": {{"aggregate_id": "{id}"}}, "artifacts": [{{"name": "a", "text": "long", "effect":
                    {{"event_type": "note.created", "payload": {{"id": {number}, "text": "long", "in": [{{"x": {number}}}]}}}}}}]}}"#
            );
            let (status, created) = call(&server, Method::POST, "/mailbox", &task).await;
            assert_eq!(status, StatusCode::CREATED, "{created}");
            let created: serde_json::Value = serde_json::from_str(&created).expect("JSON");
            let task = format!("/mailbox/{}", created["id"].as_str().expect("an id"));
            let text = |text: &str| format!(r#""payload":{{"id":{number},"text":"{text}","in":[{{"x":{number}}}]}}"#);
            let (_, shown) = call(&server, Method::GET, &task, "").await;
            // The number occurs in the artifact and in the preview of the approval.
            assert_eq!(shown.matches(&text("long")).count(), 2, "{shown}");
            let (status, approved) = call(&server, Method::POST, &format!("{task}/{act}"), body).await;
            assert_eq!(status, StatusCode::OK, "{approved}");
            let expected = text(if act == "edit" { "brief" } else { "long" });
            assert!(approved.contains(&expected), "{approved}");
            let (_, list) = call(&server, Method::GET, &format!("/aggregates/{id}/events"), "").await;
            assert!(list.contains(&expected), "{list}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_keeps_its_numbers_as_they_were_written() {
    let server = Server::start().await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    for (data, edit) in [
        ("", r#"{"modifications": {"id": 18446744073709551617}}"#),
        (r#""data": {"id": 1},"#, r#"{"modifications": {"id": 18446744073709551617}}"#),
        (r#""data": {"id": 1},"#, r#"{"artifact": {"data": {"id": 18446744073709551617}}}"#),
        (r#""data": {"id": 1},"#, r#"{"content": {"id": 18446744073709551617}}"#),
        (r#""data": {"id": 1},"#, r#"{"artifacts": [{"parts": [{"data": {"id": 18446744073709551617}}]}]}"#),
    ] {
        let content = if data.is_empty() { r#""parts": [{"file": "a"}],"# } else { data };
        let task = format!(
            r#"{{"title": "Note it", "source": {{"aggregate_id": "n"}}, "artifacts": [{{"name": "a", {content}
                "effect": {{"event_type": "note.changed", "payload": {{"id": 1}}}}}}]}}"#
        );
        let (status, created) = call(&server, Method::POST, "/mailbox", &task).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let created: serde_json::Value = serde_json::from_str(&created).expect("JSON");
        let path = format!("/mailbox/{}/edit", created["id"].as_str().expect("an id"));
        let edit = edit.replacen('{', r#"{"accept_stale": true, "#, 1);
        let (status, edited) = call(&server, Method::POST, &path, &edit).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        assert!(edited.contains(r#""payload":{"id":18446744073709551617}"#), "{edit}: {edited}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_differs_only_in_a_long_number_is_not_a_repeat() {
    let server = Server::start().await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    let append = async |number: &str| call(&server, Method::POST, "/aggregates/a/events", &event(number)).await.0;
    assert_eq!(append("18446744073709551616").await, StatusCode::CREATED);
    assert_eq!(append("18446744073709551616").await, StatusCode::OK);
    assert_eq!(append("1844674407370955161600e-2").await, StatusCode::OK);
    assert_eq!(append("18446744073709551617").await, StatusCode::CONFLICT);
    assert_eq!(append("1.8446744073709552e+19").await, StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_tools_append_numbers_as_they_were_written() {
    let mut config = foldwork_server::Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    let server = Server::start_with(&config).await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    for number in NUMBERS {
        let payload = format!(r#""payload":{{"id":{number},"in":[{{"x":{number}}}]}},"metadata":{{"m":{number}}}"#);
        let arguments = format!(
            r#"{{"aggregate_id": "n", "project_id": null, "aggregate_type": "note", "event_type": "note.changed", {payload}}}"#
        );
        let response = message(&server, called("append_event", &arguments)).await;
        let (_, list) = call(&server, Method::GET, "/aggregates/n/events", "").await;
        assert!(list.contains(&payload), "{response} {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_tools_return_numbers_as_they_were_written() {
    let mut config = foldwork_server::Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    config.mailbox.own_deliveries = true;
    let server = Server::start_with(&config).await.expect("a server");
    call(&server, Method::POST, "/aggregates/define", r#"{"type_name": "note"}"#).await;
    for number in NUMBERS {
        let event = event(number).replace(r#""event_id": "e", "#, "");
        call(&server, Method::POST, &format!("/aggregates/read-{number}/events"), &event).await;
        let task = format!(
            r#"{{"title": "Note it", "source": {{"aggregate_id": "written-{number}"}}, "artifacts": [{{"name": "a", "text": "a", "effect":
                {{"event_type": "note.created", "payload": {{"id": {number}}}}}}}]}}"#
        );
        let (_, task) = call(&server, Method::POST, "/mailbox", &task).await;
        let task: serde_json::Value = serde_json::from_str(&task).expect("JSON");
        let task = task["id"].as_str().expect("an id");
        // The effect occurs in the artifact and in the preview of the approval.
        for (tool, arguments, times) in [
            ("list_events", format!(r#"{{"aggregate_id": "read-{number}"}}"#), 1),
            ("get_task", format!(r#"{{"task_id": "{task}"}}"#), 2),
            ("act_on_task", format!(r#"{{"task_id": "{task}", "action": "approve", "accept_stale": true}}"#), 1),
        ] {
            let response = message(&server, called(tool, &arguments)).await;
            let structured = format!(r#""payload":{{"id":{number}"#);
            assert_eq!(response.matches(&structured).count(), times, "{tool}: {response}");
            let text = structured.replace('"', r#"\""#);
            assert_eq!(response.matches(&text).count(), times, "{tool}: {response}");
        }
    }
}

/// Returns a message that calls a tool.
fn called(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "{tool}", "arguments": {arguments}}}}}"#
    )
}

/// Sends a message of the Model Context Protocol as the owner. Returns the text of the response.
async fn message(server: &Server, message: String) -> String {
    let mut request = crate::mcp::request(server.key("owner").expect("a key"), "", serde_json::Value::Null);
    request.set_body(message);
    server.call(request).await.into_body().into_string().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_makes_an_integer_sum_exceed_64_bits_is_rejected() {
    let server = Server::start().await.expect("a server");
    let account = r#"{"type_name": "account", "fields": [{"name": "cents", "type": "integer", "fold": "sum"}]}"#;
    call(&server, Method::POST, "/aggregates/define", account).await;
    let add = async |cents: &str| {
        let event = format!(
            r#"{{"aggregate_type": "account", "event_type": "account.changed", "payload": {{"cents": {cents}}}}}"#
        );
        call(&server, Method::POST, "/aggregates/a/events", &event).await
    };
    assert_eq!(add("9223372036854775807").await.0, StatusCode::CREATED);
    let (status, refused) = add("1").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert!(refused.contains(r#""pointer":"/payload/cents""#), "{refused}");
    let (_, state) = call(&server, Method::GET, "/aggregates/a", "").await;
    assert!(state.contains(r#""cents":9223372036854775807"#), "{state}");
    assert_eq!(add("-7").await.0, StatusCode::CREATED);
}
