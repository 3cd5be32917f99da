//! How far the edges of the graph match the current definitions and the enabled plugins.
//!
//! Events change edges as the consumer follows the log. Definitions and the list of plugins change without an event.

use super::progress::Progress;

/// The state of bringing edges in line with definitions and plugins.
#[derive(Default)]
pub struct Settled {
    /// The number of redefinitions that the edges include, as counted by
    /// [`Types::redefined`](super::types::Types::redefined).
    pub redefinitions: Progress,
    /// The number of aggregates whose edges have yet to be compared with the definitions and plugins.
    pub remaining: Progress,
}
