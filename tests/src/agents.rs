//! Agents without hooks. A test does the work of these agents.

use std::sync::Arc;

use foldwork_engine::Plugins;
use foldwork_engine::hook::{Candidates, OnError, Plugin, PluginAgent, PluginDescription, Subscription};
use foldwork_engine::model::value::Object;

struct Idle {
    about: PluginDescription,
}

impl Plugin for Idle {
    fn about(&self) -> &PluginDescription {
        &self.about
    }
}

/// Returns a plugin without hooks for each name. A workspace has an agent `agent-<name>` for each plugin.
pub fn agents(names: &[String]) -> anyhow::Result<Plugins> {
    let idle = names.iter().map(|name| -> Arc<dyn Plugin> { Arc::new(Idle { about: about(name) }) });
    Ok(Plugins::new(idle.collect(), 1)?)
}

fn about(name: &str) -> PluginDescription {
    PluginDescription {
        name: name.into(),
        version: "1.0.0".into(),
        description: "Waits for a test.".into(),
        agent: Some(PluginAgent {
            description: "Works as the test says.".into(),
            traits: Vec::new(),
            capabilities: Object::new(),
        }),
        hooks: Vec::new(),
        on: Subscription { events: Vec::new(), traits: Vec::new() },
        on_error: OnError::Park,
        settings: Object::new(),
        tool: None,
        candidates: Candidates::default(),
    }
}
