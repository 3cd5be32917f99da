//! The HTTP API: one file per section of the specification. Wire types are declared in this module only.

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

/// The sections of the OpenAPI document.
#[derive(Tags)]
pub enum Section {
    /// The workspace and its projects.
    Workspace,
    /// API keys of the workspace, and sign-in codes.
    Keys,
    /// Members of the workspace, their invitations and their plans.
    Members,
    /// Apps on devices: whether a device may work, and until when.
    License,
    /// Aggregate types, events, folded states and pipelines.
    Aggregates,
    /// Articles: drafts and published revisions.
    Articles,
    /// Agents: their registration, presence and feeds.
    Agents,
    /// Tasks for people and agents. Agents do the work, and a person decides on the result.
    Mailbox,
    /// Files. The bytes are stored next to the log, and the history is stored in the log.
    Files,
    /// Plugins, their parked steps, and the consumers of the log.
    Plugins,
}

/// The handlers of every operation under [`crate::API`].
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

/// Returns the service that handles these operations and describes them in the document.
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

/// Returns the service for the operations under [`crate::FUNCTIONS`], which apps on devices call.
pub fn functions(config: &Config) -> OpenApiService<licenses::Api, ()> {
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), crate::FUNCTIONS);
    OpenApiService::new(licenses::Api, "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}

/// Returns the version that an `If-Match` header expects.
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

/// Returns the entity tag of a version.
fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns whether an `If-None-Match` header names this tag, so that the client has this version already.
pub fn is_known(if_none_match: Option<&str>, tag: &str) -> bool {
    if_none_match.is_some_and(|known| {
        known.split(',').map(|known| known.trim().trim_start_matches("W/")).any(|known| known == tag || known == "*")
    })
}
