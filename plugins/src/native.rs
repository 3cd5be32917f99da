//! Plugins written in Rust, with their endpoints or protocol.

use std::sync::Arc;

use foldwork_engine::hook::Plugin;

use crate::mount::Endpoint;

/// A plugin written in Rust.
pub struct Native {
    pub plugin: Arc<dyn Plugin>,
    /// The endpoints of a plugin with the hook `mount`.
    pub endpoints: Vec<Endpoint>,
    /// The protocol of a plugin with the hook `mount`, if the plugin serves its own protocol.
    pub protocol: Option<Protocol>,
}

/// A protocol that cannot be expressed as endpoints with methods and paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Mcp,
}

impl Native {
    pub fn name(&self) -> &str {
        &self.plugin.about().name
    }
}
