//! Tests the output of the program: the access log, the log in the JSON format, and the owner key.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::server::{Folder, Program, received, wait_for};

const SECRET: &str = "a-secret-in-a-query";

/// Waits until the access log has at least `count` lines, and returns the lines.
fn access_lines(folder: &Folder, count: usize) -> Vec<String> {
    let lines = || {
        let log = folder.log();
        log.lines().filter(|line| line.contains("foldwork::access")).map(str::to_owned).collect::<Vec<_>>()
    };
    wait_for("the access log", || Some(lines()).filter(|lines| lines.len() >= count))
}

fn in_memory<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut settings = vec![("FOLDWORK_STORE__URL", "mem://"), ("FOLDWORK_FILES__URL", "mem://")];
    settings.extend(more);
    settings
}

#[test]
fn each_request_has_one_log_line_without_secrets() {
    let program = Program::start(&in_memory(&[]));
    program.ask("POST", "/articles", r#"{"title": "One"}"#);
    program.ask("GET", &format!("/articles/unknown?cursor={SECRET}"), "");
    program.ask("PUT", &format!("/uploads?link={SECRET}"), "x");
    received(program.send("GET", "/healthz", ""));
    let lines = access_lines(&program.folder, 4);
    let log = program.folder.log();
    assert!(!log.contains(SECRET) && !log.contains(&program.key), "{log}");
    assert!(!log.contains('\u{1b}'), "the log in a file has colors: {log}");
    assert_eq!(lines.len(), 4, "{lines:#?}");
    let line = |part: &str| lines.iter().find(|line| line.contains(part)).expect(part);
    let created = line("operation=\"create_article\"");
    for part in [
        "INFO",
        "method=\"POST\"",
        "path=\"/api/v1/articles\"",
        "status=201",
        "bytes=",
        "duration_ms=",
        "client=127.0.0.1",
        "user=\"",
        "key=\"",
        "workspace=\"",
        "request_id=\"",
    ] {
        assert!(created.contains(part), "{part} is missing: {created}");
    }
    assert!(!created.contains("aborted") && !created.contains("bytes=0"), "{created}");
    let unknown = line("path=\"/api/v1/articles/unknown\"");
    assert!(unknown.contains("status=404") || unknown.contains("status=400"), "{unknown}");
    assert!(unknown.contains("code=\""), "{unknown}");
    let anonymous = line("path=\"/healthz\"");
    assert!(!anonymous.contains("user="), "{anonymous}");
}

#[test]
fn the_access_log_can_be_turned_off() {
    let mut program = Program::start(&in_memory(&[("FOLDWORK_LOG__FILTER", "info,foldwork::access=off")]));
    program.ask("GET", "/projects", "");
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
    let log = program.folder.log();
    assert!(log.contains("plugins loaded") && !log.contains("foldwork::access"), "{log}");
}

#[test]
fn the_json_log_has_only_objects_and_does_not_contain_the_owner_key() {
    let folder = Folder::new();
    let settings = in_memory(&[("FOLDWORK_LOG__FORMAT", "json")]);
    let mut process = folder.command(&settings).env_remove("FOLDWORK_BOOTSTRAP_KEY").spawn().expect("a program");
    let output = BufReader::new(process.stdout.take().expect("standard output"));
    let listening = || {
        let log = folder.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter_map(|line| line["fields"]["message"].as_str()?.strip_prefix("listening on ").map(str::to_owned))
            .next()
    };
    let url = wait_for("the start", listening);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    process.kill().expect("a running process");
    process.wait().expect("the end of the process");
    let printed: Vec<String> = output.lines().map_while(Result::ok).collect();
    assert_eq!(printed.len(), 1, "{printed:?}");
    let shown: Value = serde_json::from_str(&printed[0]).expect("JSON");
    let key = shown["owner_key"].as_str().expect("a key");
    assert!(key.starts_with("sk_") && shown["message"].as_str().is_some_and(|message| message.contains(key)));
    let log = folder.log();
    assert!(!log.contains(key), "{log}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[test]
fn a_failed_start_is_reported_in_the_format_of_the_log() {
    for (setting, value, part) in [
        ("FOLDWORK_HTTP__LISTEN", "nonsense", "nonsense"),
        ("FOLDWORK_HTTP__UNKNOWN", "1", "is not a setting"),
        ("FOLDWORK_LOG__FILTER", "a=b=c", "log.filter"),
    ] {
        for format in ["text", "json"] {
            let folder = Folder::new();
            let settings = in_memory(&[(setting, value), ("FOLDWORK_LOG__FORMAT", format)]);
            assert_eq!(folder.command(&settings).status().expect("a program").code(), Some(1), "{setting}");
            let log = folder.log();
            let last = log.lines().last().expect("a line");
            assert!(last.contains(part), "{log}");
            match format {
                "json" => {
                    let line: Value = serde_json::from_str(last).expect("JSON");
                    assert_eq!(
                        (&line["level"], line["fields"]["message"].is_string()),
                        (&"ERROR".into(), true),
                        "{line}"
                    );
                }
                _ => assert!(last.starts_with("error: "), "{last}"),
            }
        }
    }
}
