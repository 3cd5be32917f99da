//! Tests the metrics of a running program, and the files that name metrics: alert rules, dashboard and documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foldwork_engine::metric::{ENGINE, MetricKind, PULSE_SECONDS};
use foldwork_server::metric::SERVER;
use foldwork_server::telemetry::PROCESS;
use serde_json::Value;

use crate::server::{Program, wait_for};

/// The labels that Prometheus adds to every scraped series.
const SCRAPED: [&str; 2] = ["instance", "job"];

fn document(name: &str) -> String {
    let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    let path = PathBuf::from(crate_folder).join("../docs").join(name);
    std::fs::read_to_string(path).expect(name)
}

/// Returns the name and the query of each alert rule.
fn rules() -> Vec<(String, String)> {
    let rules: Value = serde_saphyr::from_str(&document("monitoring/alerts.yml")).expect("YAML");
    let groups = rules["groups"].as_array().expect("groups").iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().expect("rules"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    rules.map(|rule| (text(&rule["alert"]), text(&rule["expr"]))).collect()
}

/// Returns the title and the query of each panel of the dashboard.
fn panels() -> Vec<(String, String)> {
    fn collect(value: &Value, title: &str, found: &mut Vec<(String, String)>) {
        let title = value["title"].as_str().unwrap_or(title);
        if let Some(query) = value["expr"].as_str() {
            found.push((title.to_owned(), query.to_owned()));
        }
        let fields = value.as_object().into_iter().flat_map(|object| object.values());
        fields.chain(value.as_array().into_iter().flatten()).for_each(|inner| collect(inner, title, found));
    }
    let dashboard: Value = serde_json::from_str(&document("monitoring/grafana.json")).expect("JSON");
    let mut found = Vec::new();
    collect(&dashboard, "", &mut found);
    found
}

/// Returns the metrics that a query names, each with the labels of its selectors.
fn named(query: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut named = Vec::new();
    let mut rest = query;
    while let Some(begin) = rest.find(|character: char| character.is_ascii_alphabetic()) {
        rest = &rest[begin..];
        let (name, after) = rest.split_at(rest.find(|character| !is_name(character)).unwrap_or(rest.len()));
        rest = after;
        if name.starts_with("foldwork_") || name.starts_with("process_") {
            let selector = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')).map(|(inner, _)| inner);
            let labels = selector.into_iter().flat_map(|selector| selector.split(','));
            let labels = labels.filter_map(|matcher| matcher.split(['=', '!']).next());
            named.push((name.to_owned(), labels.map(|label| label.trim().to_owned()).collect()));
        }
    }
    named
}

#[test]
fn metrics_and_label_names_are_found_in_queries() {
    let query = r#"sum by (reason) (rate(foldwork_a_total{status="503", reason!~"x"}[5m])) / process_b > 1"#;
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>();
    let expected =
        vec![("foldwork_a_total".to_owned(), labels(&["status", "reason"])), ("process_b".to_owned(), Vec::new())];
    assert_eq!(named(query), expected);
}

/// The metrics of an exposition, with the type, the description and the labels of each metric.
#[derive(Default)]
struct Families {
    types: BTreeMap<String, String>,
    helps: BTreeMap<String, String>,
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Families {
    fn of(exposition: &str) -> Families {
        let mut families = Families::default();
        for line in exposition.lines() {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
                families.types.insert(name.to_owned(), kind.to_owned());
            } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
                families.helps.insert(name.to_owned(), help.to_owned());
            } else if let Some((series, _)) = line.rsplit_once(' ') {
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(label, _)| label);
                families.labels.entry(name.to_owned()).or_default().extend(labels.map(str::to_owned));
            }
        }
        families
    }

    /// Returns a message for each unknown metric or label in a query, or one message if the query names no metric.
    fn wrong(&self, title: &str, query: &str) -> Vec<String> {
        let named = named(query);
        if named.is_empty() {
            return vec![format!("{title}: the query names no metric: {query}")];
        }
        let mut wrong = Vec::new();
        for (name, labels) in named {
            match self.labels.get(&name) {
                None => wrong.push(format!("{title}: there is no metric {name}")),
                Some(known) => wrong.extend(
                    labels
                        .iter()
                        .filter(|label| !known.contains(*label) && !SCRAPED.contains(&label.as_str()))
                        .map(|label| format!("{title}: {name} has no label {label}, only {known:?}")),
                ),
            }
        }
        wrong
    }
}

/// Starts a program with every part that has metrics, and returns the program after each part has done some work.
fn watched() -> Program {
    let program = Program::start(&[("FOLDWORK_METRICS__LISTEN", "127.0.0.1:0"), ("FOLDWORK_LOG__FILTER", "warn")]);
    let article = r#"{"title": "One", "body": "See [Two](two.md)."}"#;
    for (method, path, body, status) in [
        ("POST", "/articles", article, "201"),
        ("POST", "/aggregates/query", r#"{"pipeline": [{"$count": "n"}]}"#, "200"),
        ("POST", "/mailbox", r#"{"title": "Read One"}"#, "201"),
    ] {
        let response = program.ask(method, path, body);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {response}");
    }
    let workspace = program.ask("GET", "/workspace", "");
    let id = workspace.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a workspace");
    let stored = program.ask("PUT", &format!("/files/{id}/_/_/_/five.txt"), "bytes");
    assert!(stored.starts_with("HTTP/1.1 201"), "{stored}");
    program
}

/// Lines that the metrics of the program returned by [`watched`] must contain.
const VALUES: [&str; 6] = [
    "foldwork_store_healthy 1",
    "foldwork_tasks_open{status=\"pending\"} 1",
    "foldwork_file_bytes 5",
    "foldwork_pipeline_duration_seconds_count{result=\"ok\"} 1",
    "foldwork_consumer_lag_events{consumer=\"graph\"} 0",
    "foldwork_http_requests_total{method=\"POST\",route=\"/api/v1/articles\",status=\"201\"} 1",
];

#[test]
fn a_single_server_exposes_its_metrics_and_every_query_uses_an_exposed_metric() {
    let program = watched();
    let kind = |kind| match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
    };
    let recorded = ENGINE.iter().chain(SERVER).map(|metric| (metric.name, kind(metric.kind), metric.help));
    // The program is the only server of its store, so the program reads nothing from other servers.
    let recorded = recorded.filter(|(name, ..)| *name != PULSE_SECONDS.name);
    let expected: Vec<(&str, &str, &str)> = recorded.chain(PROCESS).collect();
    // Waits, because gauges and the metrics of plugins are updated some seconds after the requests.
    let families = wait_for("the exposition of every metric", || {
        let exposition = program.scrape();
        let (head, body) = exposition.split_once("\r\n\r\n").expect("a head");
        assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
        if VALUES.iter().any(|value| !body.lines().any(|line| line == *value)) {
            return None;
        }
        let families = Families::of(body);
        expected.iter().all(|(name, ..)| families.types.contains_key(*name)).then_some(families)
    });
    let found: Vec<(&str, &str, &str)> =
        families.types.iter().map(|(name, kind)| (&**name, &**kind, &*families.helps[name])).collect();
    let mut sorted = expected.clone();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    let (rules, panels) = (rules(), panels());
    assert!(rules.len() >= 10 && panels.len() >= 10, "{} rules, {} queries", rules.len(), panels.len());
    let wrong: Vec<String> =
        rules.iter().chain(&panels).flat_map(|(title, query)| families.wrong(title, query)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_from_client_requests_create_no_metric_series() {
    let program = watched();
    let unknown = format!("/{}", "x".repeat(5_000));
    let odd = |number: usize| {
        for (method, path) in [
            ("GET", format!("/nothing-{number}")),
            ("GET", format!("/articles/a-{number}?q=a-{number}")),
            ("GET", format!("/aggregates/a-{number}/events")),
            ("GET", format!("/plugins/a-{number}")),
            ("GET", unknown.clone()),
        ] {
            program.ask(method, &path, "");
        }
        program.ask(&format!("ODD{number}"), "/projects", "");
        let kind = format!("kind{number}");
        let event = format!(r#"{{"aggregate_type": "{kind}", "event_type": "{kind}.created", "payload": {{}}}}"#);
        program.ask("POST", "/aggregates/a/events", &event);
        program.ask("POST", "/aggregates/query", &format!(r#"{{"pipeline": [{{"${kind}": 1}}]}}"#));
    };
    let series = || {
        let exposition = program.scrape();
        let lines = exposition.lines().filter(|line| line.starts_with("foldwork_http") || line.contains("kind"));
        lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect::<BTreeSet<String>>()
    };
    odd(0);
    let before = series();
    (1..20).for_each(odd);
    assert_eq!(series(), before);
}

#[test]
fn the_documentation_describes_exactly_the_existing_metrics_and_every_alert() {
    let text = document("monitoring.md");
    let label = |name: &&str| format!("`{name}`");
    let recorded = ENGINE.iter().chain(SERVER).map(|metric| {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(label).collect();
        (metric.name, kind, labels.join(", "), metric.help)
    });
    let process = PROCESS.into_iter().map(|(name, kind, help)| (name, kind, String::new(), help));
    let expected: Vec<String> = recorded
        .chain(process)
        .map(|(name, kind, labels, help)| {
            format!("| `{name}` | {kind} | {labels}{}| {help} |", if labels.is_empty() { "" } else { " " })
        })
        .collect();
    let missing: Vec<&str> =
        expected.iter().map(String::as_str).filter(|row| !text.lines().any(|line| line == *row)).collect();
    assert!(missing.is_empty(), "docs/monitoring.md lacks these rows:\n{}", missing.join("\n"));
    let rows = text.lines().filter(|line| line.starts_with("| `foldwork_") || line.starts_with("| `process_"));
    let stale: Vec<&str> = rows.filter(|line| !expected.iter().any(|row| row == line)).collect();
    assert!(stale.is_empty(), "docs/monitoring.md has rows for metrics that do not exist:\n{}", stale.join("\n"));
    for (alert, _) in rules() {
        assert!(text.contains(&format!("`{alert}`")), "docs/monitoring.md does not explain {alert}");
    }
}
