//! Settings of the Model Context Protocol.

use serde::{Deserialize, Serialize};

/// Settings of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
}
