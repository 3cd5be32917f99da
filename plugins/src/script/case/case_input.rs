//! The input of a hook in a case. Parts that the case does not specify get defaults.

use std::sync::Arc;

use foldwork_engine::error::Error;
use foldwork_engine::hook::{EnrichInput, Plugin, PluginDescription, RouteInput, ToolInput, WorkInput};
use foldwork_engine::model::aggregate::{Aggregate, no_facts};
use foldwork_engine::model::builtin;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::event::{EVENT_FIELDS, Event};
use foldwork_engine::model::id::AggregateId;
use foldwork_engine::model::value::{Object, Value};

use super::Case;
use crate::suggestion::nearest;

/// The default of `occurred_at` in a case's event: 2024-05-01T12:00:00Z, in milliseconds since the epoch.
const NOW_MS: i64 = 1_714_564_800_000;

/// The complete input of a case.
pub(super) struct CaseInput {
    event: Event,
    aggregate: Aggregate,
    definition: Definition,
    agents: Vec<Value>,
    task: Value,
    messages: Vec<Value>,
    /// The aggregate as a pipeline row, for the hook `work`.
    row: Value,
    related: Vec<Value>,
    arguments: Object,
    rows: Vec<Value>,
}

impl CaseInput {
    pub(super) fn of(case: Case, about: &PluginDescription) -> Result<CaseInput, String> {
        let event_fields = case.event.unwrap_or_default();
        let event = event(&event_fields)?;
        let definition = definition(&event.aggregate_type, case.traits, about)?;
        let state = Arc::new(case.state.unwrap_or_else(|| (*event.payload).clone()));
        let aggregate = Aggregate {
            id: event.aggregate_id.clone(),
            aggregate_type: event.aggregate_type.clone(),
            project_id: event.project_id.clone(),
            version: event.version,
            position: event.position,
            first_position: 1,
            created_at: event.occurred_at,
            last_event_at: event.occurred_at,
            deleted: event.verb() == "deleted",
            state,
            facts: if case.facts.is_empty() { no_facts() } else { Arc::new(case.facts) },
        };
        let agents = case.agents.into_iter().enumerate().map(|(index, agent)| {
            let id = format!("agent-{}", index + 1);
            let name = agent.get("id").cloned().unwrap_or_else(|| id.as_str().into());
            over(
                agent,
                [
                    ("id", id.into()),
                    ("name", name),
                    ("traits", Vec::new().into()),
                    ("capabilities", Object::new().into()),
                    ("status", "active".into()),
                    ("open_tasks", Value::Int(0)),
                ],
            )
        });
        let agents = agents.filter(|agent| {
            let subscribed = agent.as_object().and_then(|agent| agent.get("traits"));
            about.candidates.admit(subscribed, &definition.traits)
        });
        let related = case.related.into_iter().enumerate().map(|(index, node)| {
            over(
                node,
                [
                    ("id", format!("node-{}", index + 1).into()),
                    ("aggregate_type", "article".into()),
                    ("label", Value::Null),
                    ("slug", Value::Null),
                    ("linked", Value::Bool(false)),
                ],
            )
        });
        let messages =
            case.messages.into_iter().map(|message| over(message, [("role", "user".into()), ("text", "".into())]));
        let task = over(
            case.task.unwrap_or_default(),
            [
                ("_id", "task-1".into()),
                ("title", "Task".into()),
                ("status", "in_progress".into()),
                ("priority", "normal".into()),
                ("metadata", Object::new().into()),
            ],
        );
        Ok(CaseInput {
            row: WorkInput::row(&aggregate, &definition),
            agents: agents.collect(),
            related: related.collect(),
            messages: messages.collect(),
            arguments: match &about.tool {
                Some(tool) => tool.completed(case.arguments),
                None => case.arguments,
            },
            rows: case.rows.into_iter().map(Value::from).collect(),
            task,
            event,
            aggregate,
            definition,
        })
    }

    pub(super) fn enrich(&self, about: &PluginDescription) -> Result<EnrichInput<'_>, String> {
        self.admitted(about)?;
        Ok(EnrichInput { event: &self.event, aggregate: &self.aggregate, definition: &self.definition })
    }

    pub(super) fn route(&self, about: &PluginDescription) -> Result<RouteInput<'_>, String> {
        self.admitted(about)?;
        let CaseInput { event, aggregate, definition, agents, .. } = self;
        Ok(RouteInput { event, aggregate, definition, agents })
    }

    pub(super) fn work(&self) -> WorkInput<'_> {
        let CaseInput { task, messages, row, related, .. } = self;
        WorkInput { task, messages, aggregate: Some(row), related, now_ms: self.event.occurred_at }
    }

    pub(super) fn tool(&self) -> ToolInput<'_> {
        ToolInput { arguments: &self.arguments, rows: &self.rows, now_ms: self.event.occurred_at }
    }

    /// Returns the reason why the arguments are rejected before the tool is called, or `None` if the arguments are
    /// valid.
    pub(super) fn refused_arguments(&self, script: &impl Plugin) -> Option<String> {
        let violations = script.check_arguments(&self.arguments);
        (!violations.is_empty()).then(|| Error::from(violations).to_string())
    }

    /// Rejects a case whose event never causes a call of the plugin, because such a case tests nothing.
    fn admitted(&self, about: &PluginDescription) -> Result<(), String> {
        let (event_type, traits) = (&self.event.event_type, &self.definition.traits);
        if about.on.admits(event_type, traits) {
            return Ok(());
        }
        let traits = traits.join(", ");
        Err(format!("the plugin is not called for {event_type} of a type with the traits [{traits}]"))
    }
}

fn event(fields: &Object) -> Result<Event, String> {
    if let Some(unknown) = fields.keys().find(|name| !EVENT_FIELDS.contains(&&***name)) {
        let hint = nearest(unknown, EVENT_FIELDS).map(|hint| format!("; did you mean {hint}?")).unwrap_or_default();
        return Err(format!("event.{unknown} is unknown{hint}"));
    }
    let text = |name: &str, default: &str| -> Result<Arc<str>, String> {
        match fields.get(name) {
            None => Ok(default.into()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("event.{name} is not a string")),
        }
    };
    let object = |name: &str| match fields.get(name) {
        None => Ok(Arc::default()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(format!("event.{name} is not a table")),
    };
    let number = |name: &str| match fields.get(name) {
        None => Ok(1),
        Some(Value::Int(number)) if *number > 0 => Ok(*number as u64),
        Some(_) => Err(format!("event.{name} is not a positive integer")),
    };
    let time = |name: &str, default: i64| match fields.get(name) {
        None => Ok(default),
        Some(Value::String(text)) => parse_date(text).ok_or_else(|| format!("event.{name} is not an RFC 3339 time")),
        Some(_) => Err(format!("event.{name} is not a string with an RFC 3339 time")),
    };
    let named = fields.get("aggregate_type").and_then(Value::as_str).unwrap_or("article");
    let event_type = text("event_type", &format!("{named}.created"))?;
    let aggregate_type = text("aggregate_type", event_type.split('.').next().unwrap_or_default())?;
    let aggregate_id = text("aggregate_id", &format!("{aggregate_type}-1"))?;
    let occurred_at = time("occurred_at", NOW_MS)?;
    Ok(Event {
        event_id: text("event_id", "event-1")?,
        aggregate_id: AggregateId::parse(&aggregate_id).ok_or("event.aggregate_id is not a valid id")?,
        aggregate_type,
        event_type,
        project_id: fields.get("project_id").and_then(Value::as_str).map(Arc::from),
        version: number("version")?,
        position: number("position")?,
        payload: object("payload")?,
        metadata: object("metadata")?,
        actor: text("actor", "system")?,
        occurred_at,
        recorded_at: time("recorded_at", occurred_at)?,
        sent: Default::default(),
    })
}

/// Returns a type with the traits of the case. If the case specifies no traits, returns the built-in type with this
/// name. If no built-in type has this name, returns a type with the traits of the plugin's subscription.
fn definition(name: &str, traits: Option<Vec<String>>, about: &PluginDescription) -> Result<Definition, String> {
    let own = builtin::definitions().into_iter().find(|definition| *definition.type_name == *name);
    match (own, traits) {
        (Some(own), None) => Ok(own),
        (_, Some(traits)) => {
            let traits = traits.iter().map(|name| name.as_str().into()).collect();
            Ok(Definition::new(name, name, traits, Vec::new()))
        }
        (None, None) => Ok(Definition::new(name, name, about.on.traits.clone(), Vec::new())),
    }
}

/// Adds default values for the missing fields of an object.
fn over<const N: usize>(mut object: Object, defaults: [(&str, Value); N]) -> Value {
    for (name, value) in defaults {
        if !object.contains(name) {
            object.push(name, value);
        }
    }
    object.into()
}
