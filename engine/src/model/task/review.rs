//! The review settings in `metadata.review` of a task: the allowed decisions, the lowest role that may decide, a schema
//! for edits, and the escalation of an overdue task. The creator of the task chooses these settings.

use super::act::Action;
use super::escalation::{self, EscalationStep};
use crate::model::access::Role;
use crate::model::hint;
use crate::model::json_schema::Schema;
use crate::model::value::{Object, Value};
use crate::model::violation::{Violation, Violations};

/// The maximum size of a schema in memory, in bytes. A schema is compiled for each use.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The review settings in `metadata.review` of a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Review<'a> {
    allowed: Option<&'a [Value]>,
    schema: Option<&'a Value>,
    escalate: Option<&'a Value>,
    required_role: Option<&'a Value>,
    is_required: bool,
}

/// The names of the review settings.
const SETTINGS: [&str; 4] = ["allowed_decisions", "arguments_schema", ESCALATE, "required_role"];
/// The name of the review setting that concerns only overdue tasks.
const ESCALATE: &str = "escalate";

impl<'a> Review<'a> {
    pub fn of(metadata: Option<&'a Value>) -> Review<'a> {
        let settings = metadata.and_then(|metadata| metadata.get("review")).and_then(Value::as_object);
        let part = |name: &str| settings?.given(name);
        Review {
            allowed: part("allowed_decisions").and_then(Value::as_array),
            schema: part("arguments_schema"),
            escalate: part(ESCALATE),
            required_role: part("required_role"),
            is_required: settings.is_some_and(|all| all.keys().any(|name| **name != *ESCALATE && part(name).is_some())),
        }
    }

    /// Returns whether the review allows an action. Actions that are not decisions are always allowed.
    pub fn allows(&self, action: Action) -> bool {
        // The name `ask` also allows `request_changes` and `answer`, which had this name in the past.
        let is_asking = matches!(action, Action::RequestChanges | Action::Answer);
        let names = |name: &Value| {
            name.as_str() == Some(action.name()) || (is_asking && name.as_str() == Some(Action::Ask.name()))
        };
        let named = |allowed: &[Value]| allowed.iter().any(names);
        !action.is_decision() || self.allowed.is_none_or(named)
    }

    /// Returns whether output needs a decision even if its author does not request a decision. This is the case if the
    /// task has any review setting except the escalation.
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// Returns the lowest role that may decide. An older task may name a role that does not exist. Such a role is
    /// ignored.
    pub fn required_role(&self) -> Option<Role> {
        self.required_role.and_then(Value::as_str).and_then(Role::parse)
    }

    /// Returns the escalation steps that apply while the task is overdue. Invalid settings have no steps.
    pub fn escalation(&self) -> Vec<EscalationStep> {
        self.escalate.and_then(|steps| escalation::read(steps).ok()).unwrap_or_default()
    }

    /// Compiles the schema for edited output. Returns `None` if the review has no schema.
    pub fn schema(&self) -> Result<Option<Schema>, Violation> {
        self.schema.map(compile).transpose()
    }
}

/// Returns whether metadata contains review settings.
pub fn is_in(metadata: &Object) -> bool {
    metadata.given("review").is_some()
}

/// Returns the violations in the review settings of a new task's metadata.
pub fn check(metadata: &Value) -> Vec<Violation> {
    const AT: &str = "/metadata/review";
    let mut violations = Violations::default();
    let Some(review) = metadata.get("review").filter(|review| !review.is_null()) else { return Vec::new() };
    let Some(settings) = review.as_object() else {
        violations.add(AT, format!("expected an object, found {}", review.type_name()));
        return violations.into_vec();
    };
    // Without this check, a misspelled setting would be ignored, and the intended restriction would not apply.
    hint::add_unknown(settings, &SETTINGS, AT, &mut violations);
    if let Some(allowed) = settings.given("allowed_decisions") {
        let is_decision = |name: &Value| name.as_str().and_then(Action::parse).is_some_and(Action::is_decision);
        if !allowed.as_array().is_some_and(|names| names.iter().all(is_decision)) {
            let message = "expected an array whose items are `approve`, `edit`, `reject`, `defer`, `ask`, \
                           `request_changes` or `answer`";
            violations.add(format!("{AT}/allowed_decisions"), message);
        }
    }
    if let Some(role) = settings.given("required_role") {
        let may_decide = |role: Role| role >= Role::Editor;
        if !role.as_str().and_then(Role::parse).is_some_and(may_decide) {
            violations.add(format!("{AT}/required_role"), "expected editor or owner");
        }
    }
    if let Some(Err(refused)) = settings.given("arguments_schema").map(compile) {
        violations.add(format!("{AT}/arguments_schema{}", refused.pointer), refused.message);
    }
    for refused in settings.given(ESCALATE).and_then(|steps| escalation::read(steps).err()).into_iter().flatten() {
        violations.add(format!("{AT}/{ESCALATE}{}", refused.pointer), refused.message);
    }
    violations.into_vec()
}

pub(super) fn compile(schema: &Value) -> Result<Schema, Violation> {
    if schema.size_bytes() > MAX_SCHEMA_BYTES {
        let message = format!("the schema is larger than {MAX_SCHEMA_BYTES} bytes");
        return Err(Violation { pointer: String::new(), message });
    }
    let explained = |violation: Violation| Violation {
        message: format!("the schema cannot be used: {}", violation.message),
        ..violation
    };
    Schema::compile(&plain(schema)).map_err(explained)
}

/// Converts a value to the JSON type of the schema validator.
pub(super) fn plain(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
