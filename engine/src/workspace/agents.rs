//! Scripted agents: for each plugin that works there is an agent in the workspace, so that it can be given tasks.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::core::append::Append;
use crate::error::Result;
use crate::hook::{About, AgentProfile};
use crate::model::builtin::AGENT;
use crate::model::event::NewEvent;
use crate::model::value::{Object, Value};

/// The id of a plugin's agent.
pub fn scripted_id(plugin: &str) -> String {
    format!("agent-{plugin}")
}

/// Makes the agents of the plugins that work, and brings those that are there up to date.
pub async fn register_scripted(runtime: &Runtime) -> Result<()> {
    let plugins = &runtime.state.plugins;
    for plugin in plugins.indexes() {
        let about = plugins.about(plugin);
        let Some(profile) = &about.agent else { continue };
        let wanted = payload(about, profile);
        let id = scripted_id(&about.name);
        let append = Append {
            event_ids: Vec::new(),
            size_bytes: 1_024,
            actor: "system".into(),
            managed: true,
            decide: Box::new(move |view| {
                let known = view.aggregate(&id);
                let as_wanted = |known: &Object| wanted.iter().all(|(name, value)| known.get(name) == Some(value));
                let verb = match &known {
                    Some(known) if !known.deleted && as_wanted(&known.state) => return Ok(Vec::new()),
                    Some(_) => "updated",
                    None => "created",
                };
                Ok(vec![NewEvent {
                    aggregate_id: id.clone(),
                    aggregate_type: AGENT.into(),
                    event_type: format!("{AGENT}.{verb}"),
                    payload: wanted.clone(),
                    ..NewEvent::default()
                }])
            }),
        };
        runtime.appender.append(append).await?;
    }
    Ok(())
}

fn payload(about: &About, profile: &AgentProfile) -> Object {
    let traits: Vec<Value> = profile.traits.iter().map(|name| Value::from(Arc::clone(name))).collect();
    Object::from_iter([
        ("name", Value::from(about.name.clone())),
        ("description", profile.description.as_str().into()),
        ("subscribed_traits", traits.into()),
        ("capabilities", profile.capabilities.clone().into()),
        ("status", "active".into()),
        ("plugin", about.name.clone().into()),
    ])
}
