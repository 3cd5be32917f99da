//! Plugins written in Rust, with their endpoints or protocol.

use std::sync::Arc;

use foldwork_engine::hook::{Candidates, Hook, OnError, Plugin, PluginDescription, Subscription};
use foldwork_engine::model::value::Object;

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
    /// Returns the name of the plugin.
    pub fn name(&self) -> &str {
        &self.plugin.about().name
    }
}

/// A plugin that has no hook besides `mount`.
struct MountOnlyPlugin(PluginDescription);

impl Plugin for MountOnlyPlugin {
    fn about(&self) -> &PluginDescription {
        &self.0
    }
}

/// Returns a plugin that has no hook besides `mount`.
pub fn mounted(name: &str, description: &str) -> Arc<dyn Plugin> {
    let about = PluginDescription {
        name: name.into(),
        version: "1.0.0".into(),
        description: description.into(),
        hooks: vec![Hook::Mount],
        on: Subscription::default(),
        on_error: OnError::default(),
        settings: Object::new(),
        agent: None,
        tool: None,
        candidates: Candidates::default(),
    };
    Arc::new(MountOnlyPlugin(about))
}
