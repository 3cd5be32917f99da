//! Settings of the WebSockets over which agents receive messages.

use serde::{Deserialize, Serialize};

/// The limits on the WebSockets of agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Realtime {
    pub sockets_per_workspace: usize,
    pub channels_per_socket: usize,
    pub joins_per_second: u32,
    pub messages_per_second: u32,
    pub frame_bytes: usize,
    pub queue_messages: usize,
    pub queue_bytes: usize,
    pub idle_timeout_s: u64,
}

impl Default for Realtime {
    fn default() -> Realtime {
        Realtime {
            sockets_per_workspace: 1_000,
            channels_per_socket: 100,
            joins_per_second: 20,
            messages_per_second: 1_000,
            frame_bytes: 512 << 10,
            queue_messages: 1_000,
            queue_bytes: 4 << 20,
            idle_timeout_s: 60,
        }
    }
}
