//! Plugins that are written in Rust: the one list of them, and what they mount.

use std::sync::Arc;

use foldwork_engine::hook::Plugin;

use crate::mount::Endpoint;
use crate::{feed, mcp};

/// A plugin that is written in Rust.
pub struct Native {
    pub plugin: Arc<dyn Plugin>,
    /// With the hook `mount`: what it answers.
    pub endpoints: Vec<Endpoint>,
    /// With the hook `mount`: the protocol of its own that it speaks.
    pub protocol: Option<Protocol>,
}

/// A protocol that is no matter of methods and paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Mcp,
}

impl Native {
    pub fn name(&self) -> &str {
        &self.plugin.about().name
    }
}

/// The plugins that are written in Rust: one line each.
pub fn native() -> Vec<Native> {
    vec![feed::plugin(), mcp::plugin()]
}

/// What the enabled plugins mount, by their names.
pub fn endpoints(enabled: &[String]) -> impl Iterator<Item = (Arc<str>, Endpoint)> {
    let native = native().into_iter().filter(|native| enabled.iter().any(|name| name == native.name()));
    native.flat_map(|native| {
        let name = native.plugin.about().name.clone();
        native.endpoints.into_iter().map(move |endpoint| (name.clone(), endpoint))
    })
}

/// Whether one of the enabled plugins speaks a protocol.
pub fn speaks(enabled: &[String], protocol: Protocol) -> bool {
    native().iter().any(|native| native.protocol == Some(protocol) && enabled.iter().any(|name| name == native.name()))
}

#[cfg(test)]
mod tests {
    use foldwork_engine::hook::Hook;

    use super::*;

    #[test]
    fn who_has_endpoints_says_so() {
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
    fn what_is_not_enabled_mounts_nothing() {
        assert_eq!(endpoints(&[]).count(), 0);
        assert!(!speaks(&["feed".to_owned()], Protocol::Mcp));
        assert!(speaks(&["mcp".to_owned()], Protocol::Mcp));
        assert_eq!(endpoints(&["feed".to_owned(), "linker".to_owned()]).count(), 1);
    }
}
