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
    pub rate_limit_per_minute: u32,
    pub address_limit_per_minute: u32,
    pub wrong_token_limit_per_minute: u32,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    /// The limit on the open event streams of a workspace, and the limit on the sockets of the workspace's agents.
    pub streams_per_workspace: usize,
    pub idle_timeout: TimeSpan,
    pub stop_delay: TimeSpan,
    pub stop_timeout: TimeSpan,
}
