//! Settings of the Model Context Protocol.

use serde::{Deserialize, Serialize};

/// The hosts to which clients of the Model Context Protocol may send requests, and the origins of pages that may send
/// requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
}
