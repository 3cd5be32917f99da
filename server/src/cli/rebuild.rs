//! `foldwork rebuild`: rebuilds data that is derived from the log.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::client::ServerArguments;
use super::output::print_line;

/// The time limit for a rebuild. The limit is long, because the log may be long. If the client times out, the rebuild
/// continues on the server.
const TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

pub type Arguments = ServerArguments<RebuildTarget>;

#[derive(clap::Subcommand, Debug)]
pub enum RebuildTarget {
    /// Rebuilds the knowledge graph: the facts from plugins, and the edges that are derived from the facts.
    Graph,
}

/// Runs a subcommand of `foldwork rebuild`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.action {
        RebuildTarget::Graph => {
            let request = client.request(Method::POST, &["system", "rebuild-graph"]).timeout(TIMEOUT);
            let response: Value = client.call(request).await?.json()?;
            let count = |name: &str| response.get(name).and_then(Value::as_u64).unwrap_or_default();
            print_line(&format!(
                "rebuilt from {} events: {} nodes with facts, {} open edges, {} steps parked",
                count("events"),
                count("nodes"),
                count("edges"),
                count("parked"),
            ))
        }
    }
}
