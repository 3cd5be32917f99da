//! The operations of the API, in one module per resource.

mod activations;
mod agents;
mod aggregates;
mod articles;
mod backups;
pub mod document;
mod durability;
mod events;
mod files;
mod follow;
mod graph;
mod history;
mod invitations;
mod keys;
mod licenses;
mod long_poll;
mod mailbox;
mod members;
mod operators;
mod parked;
mod plans;
mod plugins;
mod projects;
pub mod query;
pub mod relay;
mod search;
mod section;
pub mod system;
mod types;
pub mod uploads;
mod workspace;
mod workspaces;

use poem_openapi::{OpenApi, OpenApiService};

use self::document::nullable::NullableFields;
use crate::config::Config;
use crate::http::routes::{API, FUNCTIONS};

/// Returns the service that handles the operations under [`API`] and describes these operations in the OpenAPI
/// document.
pub fn service(config: &Config) -> OpenApiService<impl OpenApi + use<>, ()> {
    let operations = (
        workspace::Api,
        projects::Api,
        (keys::Api, members::Api, invitations::Api, plans::Api, activations::Api, workspaces::Api, backups::Api),
        types::Api,
        aggregates::Api,
        graph::Api,
        search::Api,
        operators::Api,
        (events::Api, history::Api),
        articles::Api,
        (agents::Api, relay::Api),
        mailbox::OPERATIONS,
        (files::Api, uploads::Api),
        plugins::Api,
        parked::Api,
        system::Api,
    );
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), API);
    OpenApiService::new(NullableFields(operations), "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}

/// Returns the service for the operations under [`FUNCTIONS`], which apps on devices call.
pub fn functions(config: &Config) -> OpenApiService<impl OpenApi + use<>, ()> {
    let server = format!("{}{}", config.http.public_url.trim_end_matches('/'), FUNCTIONS);
    OpenApiService::new(NullableFields(licenses::Api), "Foldwork", env!("CARGO_PKG_VERSION")).server(server)
}
