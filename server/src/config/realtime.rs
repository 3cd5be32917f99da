//! Settings of the WebSockets over which agents receive messages.

use serde::{Deserialize, Serialize};

use super::units::TimeSpan;

/// The limits on the WebSockets of agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Realtime {
    pub sockets_per_workspace: usize,
    pub idle_timeout: TimeSpan,
}
