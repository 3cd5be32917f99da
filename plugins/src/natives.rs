//! The list of plugins written in Rust, and the endpoints and protocols that they serve.

use std::sync::Arc;

use crate::mount::Endpoint;
use crate::native::{Native, Protocol};
use crate::{feed, mcp};

/// Returns all plugins written in Rust.
pub fn natives() -> Vec<Native> {
    vec![feed::plugin(), mcp::plugin()]
}

/// Returns the endpoints of the enabled plugins, each with the name of its plugin.
pub fn endpoints(enabled: &[String]) -> impl Iterator<Item = (Arc<str>, Endpoint)> {
    let native = natives().into_iter().filter(|native| enabled.iter().any(|name| name == native.name()));
    native.flat_map(|native| {
        let name = native.plugin.about().name.clone();
        native.endpoints.into_iter().map(move |endpoint| (name.clone(), endpoint))
    })
}

/// Returns whether one of the enabled plugins serves a protocol.
pub fn serves_protocol(enabled: &[String], protocol: Protocol) -> bool {
    natives().iter().any(|native| native.protocol == Some(protocol) && enabled.iter().any(|name| name == native.name()))
}

#[cfg(test)]
mod tests {
    use foldwork_engine::hook::Hook;

    use super::*;

    #[test]
    fn exactly_the_plugins_with_endpoints_or_a_protocol_declare_the_mount_hook() {
        for native in natives() {
            let mounts = native.plugin.about().hooks.contains(&Hook::Mount);
            let answers = !native.endpoints.is_empty() || native.protocol.is_some();
            assert_eq!(mounts, answers, "the plugin {}", native.name());
        }
    }

    #[test]
    fn paths_of_endpoints_are_relative() {
        for native in natives() {
            for endpoint in &native.endpoints {
                assert!(!endpoint.path.starts_with('/'), "the plugin {}: {}", native.name(), endpoint.path);
            }
        }
    }

    #[test]
    fn only_enabled_plugins_mount_endpoints_and_protocols() {
        assert_eq!(endpoints(&[]).count(), 0);
        assert!(!serves_protocol(&["feed".to_owned()], Protocol::Mcp));
        assert!(serves_protocol(&["mcp".to_owned()], Protocol::Mcp));
        assert_eq!(endpoints(&["feed".to_owned(), "linker".to_owned()]).count(), 1);
    }
}
