//! The API: a file per section of the specification. Wire types are declared here and nowhere else.

mod activations;
mod agents;
mod aggregates;
mod articles;
pub mod body;
pub mod document;
pub mod error;
mod events;
mod files;
mod follow;
mod graph;
pub mod idempotent;
mod invitations;
pub mod json;
mod keys;
mod licenses;
mod mailbox;
mod members;
mod operators;
pub mod page;
mod parked;
mod plans;
mod plugin_wire;
mod plugins;
mod projects;
mod raw_body;
pub mod relay;
mod search;
mod system;
mod types;
pub mod uploads;
mod wire;
mod words;
mod workspace;

use foldwork_engine::Error;
use foldwork_engine::model::event::Expected;
use poem_openapi::{OpenApiService, Tags};

use crate::Config;

/// The sections of the document.
#[derive(Tags)]
pub enum Section {
    /// The workspace and its projects.
    Workspace,
    /// Keys that open the workspace.
    Keys,
    /// Who is in the workspace, and their plans.
    Members,
    /// Apps on devices, and what they are told.
    License,
    /// Aggregate types, events, folded states and pipelines.
    Aggregates,
    /// Articles: drafts and what is published.
    Articles,
    /// Agents, whether they are there, and what they are told.
    Agents,
    /// Tasks for people and agents: work goes out, comes back, and a person decides.
    Mailbox,
    /// Files: their bytes are stored beside the log, and their history in it.
    Files,
    /// Plugins, the steps of theirs that failed, and what follows the log.
    Plugins,
}

/// Every operation.
pub type Operations = (
    workspace::Api,
    projects::Api,
    (keys::Api, members::Api, invitations::Api, plans::Api, activations::Api),
    types::Api,
    aggregates::Api,
    graph::Api,
    search::Api,
    operators::Api,
    events::Api,
    articles::Api,
    (agents::Api, relay::Api),
    mailbox::Operations,
    (files::Api, uploads::Api),
    plugins::Api,
    parked::Api,
    system::Api,
);

/// The service that serves the operations and describes them.
pub fn service(config: &Config) -> OpenApiService<Operations, ()> {
    let operations = (
        workspace::Api,
        projects::Api,
        (keys::Api, members::Api, invitations::Api, plans::Api, activations::Api),
        types::Api,
        aggregates::Api,
        graph::Api,
        search::Api,
        operators::Api,
        events::Api,
        articles::Api,
        (agents::Api, relay::Api),
        mailbox::OPERATIONS,
        (files::Api, uploads::Api),
        plugins::Api,
        parked::Api,
        system::Api,
    );
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), crate::API);
    OpenApiService::new(operations, "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}

/// The service of the operations that are reached under another path than the rest, which apps on devices ask.
pub fn functions(config: &Config) -> OpenApiService<licenses::Api, ()> {
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), crate::FUNCTIONS);
    OpenApiService::new(licenses::Api, "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}

/// The version that an `If-Match` header expects.
fn expected(if_match: Option<&str>) -> Result<Expected, Error> {
    let Some(value) = if_match.map(str::trim) else { return Ok(Expected::Any) };
    match value {
        "*" => Ok(Expected::Exists),
        quoted => {
            let version = quoted.trim_start_matches("W/").trim_matches('"').parse();
            version.map(Expected::Version).map_err(|_| Error::invalid("If-Match must be a version in quotes, or *"))
        }
    }
}

/// The entity tag of a version.
fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Whether the client has this version already.
pub fn is_known(if_none_match: Option<&str>, tag: &str) -> bool {
    if_none_match.is_some_and(|known| {
        known.split(',').map(|known| known.trim().trim_start_matches("W/")).any(|known| known == tag || known == "*")
    })
}
