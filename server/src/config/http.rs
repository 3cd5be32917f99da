//! Settings of the HTTP server: its address and the limits on connections and requests.

use serde::{Deserialize, Serialize};

use super::network::Network;
use super::units::{DataSize, TimeSpan};

/// Settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub listen: String,
    pub public_url: String,
    pub trusted_proxies: Vec<Network>,
    pub body_limit: DataSize,
    pub bodies_in_flight: DataSize,
    pub body_timeout: TimeSpan,
    pub rate_limit_per_minute: u32,
    pub address_limit_per_minute: u32,
    pub wrong_token_limit_per_minute: u32,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    pub event_streams_per_workspace: usize,
    pub idle_timeout: TimeSpan,
    pub stop_delay: TimeSpan,
    pub stop_timeout: TimeSpan,
}
