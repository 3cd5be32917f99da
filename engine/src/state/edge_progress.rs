//! The progress of updating the graph's edges after changes of the definitions or of the enabled plugins.
//!
//! Events change edges as the consumer follows the log. Definitions and the list of plugins change without an event.

use super::progress::Progress;

/// The progress of updating edges after changes of the definitions or of the enabled plugins.
#[derive(Default)]
pub struct EdgeProgress {
    /// The number of redefinitions that the edges include, as counted by
    /// [`Types::redefined`](super::types::Types::redefined).
    pub redefinitions: Progress,
    /// The number of aggregates whose edges have yet to be compared with the definitions and plugins.
    pub remaining: Progress,
}
