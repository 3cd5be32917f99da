//! Settings of the Model Context Protocol.

use serde::{Deserialize, Serialize};

/// Settings of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub message_bytes: usize,
    pub response_bytes: usize,
}

impl Default for Mcp {
    fn default() -> Mcp {
        Mcp {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            message_bytes: 512 << 10,
            response_bytes: 256 << 10,
        }
    }
}
