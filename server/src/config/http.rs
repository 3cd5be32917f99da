//! Settings of the HTTP server: its address and the limits on connections and requests.

use serde::{Deserialize, Serialize};

use super::Network;

/// Settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    pub listen: String,
    pub public_url: String,
    pub trusted_proxies: Vec<Network>,
    pub body_limit_bytes: usize,
    pub bodies_in_flight_bytes: usize,
    pub body_timeout_s: u64,
    pub upload_least_bytes_per_s: u64,
    pub page_bytes: usize,
    pub rate_limit_per_minute: u32,
    pub address_limit_per_minute: u32,
    pub wrong_token_limit_per_minute: u32,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    pub event_streams_per_workspace: usize,
    pub stalled_reader_s: u64,
    pub idle_timeout_s: u64,
    pub stop_delay_s: u64,
    pub stop_timeout_s: u64,
}

impl Default for Http {
    fn default() -> Http {
        Http {
            listen: "127.0.0.1:8080".into(),
            public_url: String::new(),
            trusted_proxies: Vec::new(),
            body_limit_bytes: 1 << 20,
            bodies_in_flight_bytes: 256 << 20,
            body_timeout_s: 30,
            upload_least_bytes_per_s: 8 << 10,
            page_bytes: 4 << 20,
            rate_limit_per_minute: 0,
            address_limit_per_minute: 0,
            wrong_token_limit_per_minute: 300,
            max_connections: 10_000,
            max_connections_per_address: 0,
            event_streams_per_workspace: 1_000,
            stalled_reader_s: 60,
            idle_timeout_s: 75,
            stop_delay_s: 0,
            stop_timeout_s: 6,
        }
    }
}
