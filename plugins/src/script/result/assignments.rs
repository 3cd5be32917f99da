//! Reads and checks assignments, the result of the hook `route`.

use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::facts::{Assignee, Assignment, Priority};
use foldwork_engine::model::value::Value;

use super::{ResultFields, kind, list};
use crate::suggestion::hint;

/// The maximum number of assignments for an event. The number is limited because each task is appended separately, and
/// later events wait for these appends.
const MAX_ASSIGNMENTS: usize = 1_000;
/// The maximum length of a task's title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// The maximum size of a task's metadata, in bytes. The size is limited because lists of tasks contain the metadata.
const METADATA_BYTES: usize = 64 << 10;
/// The maximum time until a task is due, in seconds: ten years of 366 days.
const LATEST_DUE_S: i64 = 10 * 366 * 24 * 60 * 60;

/// Reads an array of `#{agent_id | user_id, title, priority, metadata, due_in_s}`. The value `()` assigns no tasks.
pub(in crate::script) fn read(value: &Value) -> Result<Vec<Assignment>, String> {
    match value.is_null() {
        true => Ok(Vec::new()),
        false => list("assignments", value, MAX_ASSIGNMENTS, assignment),
    }
}

fn assignment(path: String, value: &Value) -> Result<Assignment, String> {
    let fields = ResultFields::of(path, value, &["agent_id", "user_id", "title", "priority", "metadata", "due_in_s"])?;
    let assignee = match (fields.text("agent_id")?, fields.text("user_id")?) {
        (Some(id), None) if !id.is_empty() => Assignee::Agent(id.into()),
        (None, Some(id)) if !id.is_empty() => Assignee::User(id.into()),
        (Some(_), None) => return Err(format!("{} is empty", fields.path("agent_id"))),
        (None, Some(_)) => return Err(format!("{} is empty", fields.path("user_id"))),
        _ => return Err(format!("{} needs exactly one of `agent_id` and `user_id`", fields.path)),
    };
    let title = fields.text("title")?.map(str::to_owned);
    if title.as_ref().is_some_and(|title| title.chars().nth(MAX_TITLE_CHARS).is_some()) {
        return Err(format!("{} is longer than {MAX_TITLE_CHARS} characters", fields.path("title")));
    }
    let due_in_s = match fields.get("due_in_s") {
        None => None,
        Some(Value::Int(seconds @ 0..=LATEST_DUE_S)) => Some(*seconds as u64),
        Some(other) => {
            let found = other.as_int().map_or_else(|| kind(other).to_owned(), |seconds| seconds.to_string());
            return Err(format!("{} is {found}, not an integer from 0 to {LATEST_DUE_S}", fields.path("due_in_s")));
        }
    };
    let priority = fields.text("priority")?.map_or(Ok(Priority::default()), |name| priority(&fields, name))?;
    let metadata = fields.object("metadata")?;
    let bytes = metadata.size_bytes();
    if bytes > METADATA_BYTES {
        return Err(format!("{} has {bytes} bytes; at most {METADATA_BYTES} are allowed", fields.path("metadata")));
    }
    Ok(Assignment { assignee, title, priority, metadata, due_in_s })
}

fn priority(fields: &ResultFields<'_>, name: &str) -> Result<Priority, String> {
    Priority::parse(name)
        .ok_or_else(|| format!("{} is '{name}'; {}", fields.path("priority"), hint(name, &names::<Priority>(), "")))
}

#[cfg(test)]
mod tests {
    use super::super::of_json;
    use super::*;

    #[test]
    fn mistakes_are_reported_with_their_paths() {
        let refused = |json: &str| read(&of_json(json)).expect_err("refused");
        assert_eq!(refused("[{}]"), "assignments[0] needs exactly one of `agent_id` and `user_id`");
        assert_eq!(
            refused(r#"[{"agent_id": "a", "user_id": "b"}]"#),
            "assignments[0] needs exactly one of `agent_id` and `user_id`"
        );
        assert_eq!(
            refused(r#"[{"agent_id": "a", "priority": "hihg"}]"#),
            "assignments[0].priority is 'hihg'; did you mean high?"
        );
        assert_eq!(
            refused(r#"[{"agent_id": "a", "due_in_s": -1}]"#),
            "assignments[0].due_in_s is -1, not an integer from 0 to 316224000"
        );
        assert_eq!(
            refused(r#"[{"agent_id": "a", "due_in_s": "1"}]"#),
            "assignments[0].due_in_s is a string, not an integer from 0 to 316224000"
        );
        assert_eq!(refused("{}"), "assignments is a map, not an array");
        let many = vec![r#"{"agent_id": "a"}"#; MAX_ASSIGNMENTS + 1].join(",");
        assert_eq!(refused(&format!("[{many}]")), "assignments has 1001 items; at most 1000 are allowed");
        let long = refused(&format!(r#"[{{"agent_id": "a", "title": "{}"}}]"#, "x".repeat(201)));
        assert_eq!(long, "assignments[0].title is longer than 200 characters");
        let large = refused(&format!(r#"[{{"agent_id": "a", "metadata": {{"m": "{}"}}}}]"#, "x".repeat(65_536)));
        assert!(large.starts_with("assignments[0].metadata has ") && large.ends_with("; at most 65536 are allowed"));
    }
}
