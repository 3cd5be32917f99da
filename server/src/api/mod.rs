//! The operations of the API: a file for each section of the specification.

mod activations;
mod agents;
mod aggregates;
mod articles;
pub mod document;
mod events;
mod files;
mod follow;
mod graph;
mod invitations;
mod keys;
mod licenses;
mod mailbox;
mod members;
mod operators;
mod parked;
mod plans;
mod plugins;
mod projects;
pub mod relay;
mod search;
mod system;
mod types;
pub mod uploads;
mod workspace;

use poem_openapi::{OpenApiService, Tags};

use crate::Config;
use crate::http::routes::{API, FUNCTIONS};

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
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), API);
    OpenApiService::new(operations, "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}

/// The service of the operations that are reached under another path than the rest, which apps on devices ask.
pub fn functions(config: &Config) -> OpenApiService<licenses::Api, ()> {
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), FUNCTIONS);
    OpenApiService::new(licenses::Api, "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}
