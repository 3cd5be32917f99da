//! Scripted agents: registers an agent in the workspace for each plugin with the hook `work`, so that the plugin can
//! get tasks.

use std::sync::Arc;

use crate::append::appender::Appender;
use crate::append::request::Append;
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::hook::{PluginAgent, PluginDescription};
use crate::model::agent::{ENABLED, NAME_KEY, PLUGIN, STATUS, SUBSCRIBED_TRAITS, name_key};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::AGENT;
use crate::model::event::NewEvent;
use crate::model::value::{Object, Value};
use crate::state::State;

/// Returns the id of a plugin's agent: the first of `agent-<plugin>`, `agent-<plugin>-2` and so on that is free or
/// already belongs to the plugin's agent. Clients may have used any of these ids for their own aggregates.
fn scripted_id(view: &View<'_>, plugin: &str) -> String {
    let ids = std::iter::once(format!("agent-{plugin}")).chain((2..).map(|number| format!("agent-{plugin}-{number}")));
    let mut ids = ids.filter(|id| view.aggregate(id).is_none_or(|known| works_by(&known, plugin)));
    ids.next().unwrap_or_default()
}

fn works_by(known: &Aggregate, plugin: &str) -> bool {
    &*known.aggregate_type == AGENT && known.state.get(PLUGIN).and_then(Value::as_str) == Some(plugin)
}

/// Creates or updates the agents of the plugins with the hook `work`. If the event of an agent is rejected, logs the
/// error and continues with the next agent, without the new or updated agent.
pub async fn register_scripted(state: &State, appender: &Appender) -> Result<()> {
    let plugins = &state.plugins;
    for plugin in plugins.indexes() {
        let about = plugins.about(plugin);
        let Some(profile) = &about.agent else { continue };
        let desired = payload(&about, profile);
        let name = about.name.clone();
        let size_bytes = 1_024 + desired.size_bytes();
        let decide = Box::new(move |view: &View<'_>| {
            let id = scripted_id(view, &name);
            let known = view.aggregate(&id);
            let is_current = |known: &Object| desired.iter().all(|(name, value)| known.get(name) == Some(value));
            let mut payload = desired.clone();
            let verb = match &known {
                // Only people enable or disable an agent, so an existing agent keeps its status.
                Some(known) if !known.deleted && is_current(&known.state) => return Ok(Vec::new()),
                Some(_) => "updated",
                None => {
                    payload.push(STATUS, ENABLED);
                    "created"
                }
            };
            Ok(vec![NewEvent {
                aggregate_id: id,
                aggregate_type: AGENT.into(),
                event_type: format!("{AGENT}.{verb}"),
                payload,
                restore: true,
                ..NewEvent::default()
            }])
        });
        let append = Append { size_bytes, ..Append::decided("system".into(), decide) };
        match appender.append(append).await {
            Err(error @ (Error::Invalid { .. } | Error::Conflict { .. } | Error::Forbidden { .. })) => {
                let (workspace, plugin) = (&*state.record.id, &*about.name);
                tracing::error!(%error, workspace, plugin, "the plugin's agent could not be created or updated");
            }
            appended => drop(appended?),
        }
    }
    Ok(())
}

fn payload(about: &PluginDescription, profile: &PluginAgent) -> Object {
    let traits: Vec<Value> = profile.traits.iter().map(|name| Value::from(Arc::clone(name))).collect();
    Object::from_iter([
        ("name", Value::from(about.name.clone())),
        ("description", profile.description.as_str().into()),
        (SUBSCRIBED_TRAITS, traits.into()),
        ("capabilities", profile.capabilities.clone().into()),
        (NAME_KEY, name_key(&about.name).into()),
        (PLUGIN, about.name.clone().into()),
    ])
}
