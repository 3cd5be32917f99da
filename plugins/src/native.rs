//! The list of plugins written in Rust, and what they mount.

use std::sync::Arc;

use foldwork_engine::hook::Plugin;

use crate::mount::Endpoint;
use crate::{feed, mcp};

/// A plugin written in Rust.
pub struct Native {
    pub plugin: Arc<dyn Plugin>,
    /// The endpoints of a plugin with the hook `mount`.
    pub endpoints: Vec<Endpoint>,
    /// The protocol of a plugin with the hook `mount` that serves its own protocol.
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

/// Returns the plugins written in Rust.
pub fn native() -> Vec<Native> {
    vec![feed::plugin(), mcp::plugin()]
}

/// Returns the endpoints of the enabled plugins, each with the name of its plugin.
pub fn endpoints(enabled: &[String]) -> impl Iterator<Item = (Arc<str>, Endpoint)> {
    let native = native().into_iter().filter(|native| enabled.iter().any(|name| name == native.name()));
    native.flat_map(|native| {
        let name = native.plugin.about().name.clone();
        native.endpoints.into_iter().map(move |endpoint| (name.clone(), endpoint))
    })
}

/// Returns whether one of the enabled plugins serves a protocol.
pub fn speaks(enabled: &[String], protocol: Protocol) -> bool {
    native().iter().any(|native| native.protocol == Some(protocol) && enabled.iter().any(|name| name == native.name()))
}

#[cfg(test)]
mod tests {
    use foldwork_engine::hook::Hook;

    use super::*;

    #[test]
    fn plugins_with_endpoints_declare_the_mount_hook() {
        for native in native() {
            let mounts = native.plugin.about().hooks.contains(&Hook::Mount);
            let answers = !native.endpoints.is_empty() || native.protocol.is_some();
            assert_eq!(mounts, answers, "{}", native.name());
            for endpoint in &native.endpoints {
                assert!(!endpoint.path.starts_with('/'), "{} {}", native.name(), endpoint.path);
            }
        }
    }

    #[test]
    fn disabled_plugins_mount_nothing() {
        assert_eq!(endpoints(&[]).count(), 0);
        assert!(!speaks(&["feed".to_owned()], Protocol::Mcp));
        assert!(speaks(&["mcp".to_owned()], Protocol::Mcp));
        assert_eq!(endpoints(&["feed".to_owned(), "linker".to_owned()]).count(), 1);
    }
}
