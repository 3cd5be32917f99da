//! Plugins that are written in Rust: the one list of them, and what they mount.

use std::sync::Arc;

use foldwork_engine::hook::Plugin;

use crate::feed;
use crate::mount::Endpoint;

/// A plugin that is written in Rust.
pub struct Native {
    pub plugin: Arc<dyn Plugin>,
    /// With the hook `mount`: what it answers.
    pub endpoints: Vec<Endpoint>,
}

impl Native {
    pub fn name(&self) -> &str {
        &self.plugin.about().name
    }
}

/// The plugins that are written in Rust: one line each.
pub fn native() -> Vec<Native> {
    vec![feed::plugin()]
}

/// What the enabled plugins mount, by their names.
pub fn endpoints(enabled: &[String]) -> impl Iterator<Item = (Arc<str>, Endpoint)> {
    let native = native().into_iter().filter(|native| enabled.iter().any(|name| name == native.name()));
    native.flat_map(|native| {
        let name = native.plugin.about().name.clone();
        native.endpoints.into_iter().map(move |endpoint| (name.clone(), endpoint))
    })
}

#[cfg(test)]
mod tests {
    use foldwork_engine::hook::Hook;

    use super::*;

    #[test]
    fn who_has_endpoints_says_so() {
        for native in native() {
            let mounts = native.plugin.about().hooks.contains(&Hook::Mount);
            assert_eq!(mounts, !native.endpoints.is_empty(), "{}", native.name());
            for endpoint in &native.endpoints {
                assert!(!endpoint.path.starts_with('/'), "{} {}", native.name(), endpoint.path);
            }
        }
    }

    #[test]
    fn what_is_not_enabled_mounts_nothing() {
        assert_eq!(endpoints(&[]).count(), 0);
        assert_eq!(endpoints(&["feed".to_owned(), "linker".to_owned()]).count(), 1);
    }
}
