//! Measures the overhead of a tool call in comparison with the same operation of the API. Both run in one process
//! without sockets.
//!
//! `--rounds N` sets the number of calls of each kind.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foldwork_server::Config;
use foldwork_tests::server::Server;
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};

/// The number of calls of each kind before the measurement.
const WARM_UP_ROUNDS: usize = 50;

fn rounds() -> anyhow::Result<usize> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--rounds").skip(1);
    arguments.next().map_or(Ok(1_000), |rounds| rounds.parse().context("--rounds takes a number"))
}

fn request(key: &str, method: Method, path: &str, body: Option<&Value>) -> Request {
    // Accepts event streams only for the protocol, because a list of events of the API would become an endless stream.
    let accept = if path == "/mcp" { "application/json, text/event-stream" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri_str(path)
        .header("host", "localhost")
        .header("accept", accept)
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {key}"));
    request.body(body.map_or_else(Body::empty, |body| Body::from_string(body.to_string())))
}

/// Returns the median time from a request to its complete response.
async fn measured(server: &Server, rounds: usize, made: impl Fn() -> Request) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(rounds);
    for round in 0..WARM_UP_ROUNDS + rounds {
        let request = made();
        let began = Instant::now();
        let response = server.call(request).await;
        let is_well = response.status().is_success();
        let text = response.into_body().into_string().await?;
        let took = began.elapsed();
        ensure!(is_well && !text.contains("\"isError\":true"), "{text}");
        if round >= WARM_UP_ROUNDS {
            times.push(took);
        }
    }
    times.sort_unstable();
    times.get(rounds / 2).copied().context("--rounds must be at least 1")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let rounds = rounds()?;
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    let server = Server::start_with(&config).await?;
    let key = server.key("owner").context("the server has no key of the owner")?;
    for number in 0..200 {
        let event = json!({
            "aggregate_type": "article",
            "event_type": "article.created",
            "payload": {"title": format!("Article {number}"), "slug": format!("article-{number}"), "body": "x".repeat(2_000)},
        });
        let path = format!("/api/v1/aggregates/a-{number}/events");
        server.call(request(key, Method::POST, &path, Some(&event))).await;
    }
    let pipeline = json!([{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$group": {"_id": "$status", "n": {"$sum": 1}}}]);
    let compared = [
        ("get_aggregate", json!({"aggregate_id": "a-7"}), Method::GET, "/api/v1/aggregates/a-7", None),
        (
            "query",
            json!({"pipeline": pipeline}),
            Method::POST,
            "/api/v1/aggregates/query",
            Some(json!({"pipeline": pipeline})),
        ),
        (
            "search",
            json!({"query": "article 7"}),
            Method::POST,
            "/api/v1/aggregates/search",
            Some(json!({"query": "article 7"})),
        ),
        ("list_events", json!({"limit": 50}), Method::GET, "/api/v1/events?limit=50", None),
    ];
    println!("{:<16}{:>12}{:>12}{:>12}", "tool", "API", "MCP", "more");
    for (tool, arguments, method, path, body) in compared {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let api = measured(&server, rounds, || request(key, method.clone(), path, body.as_ref())).await?;
        let mcp = measured(&server, rounds, || request(key, Method::POST, "/mcp", Some(&call))).await?;
        let shown = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
        println!("{tool:<16}{:>12}{:>12}{:>12}", shown(api), shown(mcp), shown(mcp.saturating_sub(api)));
    }
    Ok(())
}
