//! Tests that the program ends within its time limit after SIGTERM, even while pipelines occupy its threads, and that
//! the readiness check announces the stop to load balancers beforehand.

use std::net::TcpStream;

use crate::process::{Program, foldwork, key, until};

/// The maximum time of a pipeline in this test, in milliseconds.
const PIPELINE_MS: &str = "600000";

fn start(variables: &[(&str, &str)]) -> (Program, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = foldwork(folder.path(), &["serve", "--database", "mem://", "--files", "mem://"]);
    command.env("FOLDWORK_BOOTSTRAP_KEY", key('7')).envs(variables.iter().copied());
    (Program::start(&mut command), folder)
}

#[test]
fn the_program_ends_in_time_while_pipelines_occupy_its_threads() {
    let (mut program, _folder) =
        start(&[("FOLDWORK_PIPELINE__TIMEOUT_MS", PIPELINE_MS), ("FOLDWORK_LOG__FILTER", "error")]);
    let bearer = format!("Bearer {}", key('7'));
    let headers = [("authorization", bearer.as_str())];
    let event = r#"{"aggregate_type": "article", "event_type": "article.created", "payload": {"title": "t"}}"#;
    assert_eq!(program.status("POST", "/api/v1/aggregates/a/events", &headers, event), 201);
    let add = |inner: &str| {
        format!(
            r#"{{"$reduce": {{"input": {{"$range": [0, 30000]}}, "initialValue": 0, "in": {{"$add": ["$$value", {inner}]}}}}}}"#
        )
    };
    let long = format!(r#"{{"pipeline": [{{"$limit": 1}}, {{"$project": {{"n": {}}}}}]}}"#, add(&add(&add("1"))));
    let before = program.processor_seconds();
    let query = || program.send("POST", "/api/v1/aggregates/query", &headers, &long);
    let waiting: Vec<TcpStream> = (0..4).map(|_| query()).collect();
    until("the start of the pipelines", || program.processor_seconds() >= before + 1.0);
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
    drop(waiting);
}

#[test]
fn a_stopping_program_is_not_ready_but_serves_requests_until_a_second_signal() {
    let (mut program, _folder) = start(&[("FOLDWORK_HTTP__STOP_DELAY_S", "600")]);
    assert_eq!(program.status("GET", "/readyz", &[], ""), 200);
    program.terminate();
    until("the announcement", || program.status("GET", "/readyz", &[], "") == 503);
    let unready = program.ask("GET", "/readyz", &[], "");
    assert!(unready.contains("\"reason\":\"stopping\""), "{unready}");
    let bearer = format!("Bearer {}", key('7'));
    assert_eq!(program.status("GET", "/api/v1/projects", &[("authorization", &bearer)], ""), 200);
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
}
