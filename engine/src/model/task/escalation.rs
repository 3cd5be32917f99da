//! Escalation of overdue tasks, as configured in `metadata.review.escalate`: steps that reassign a task or raise its
//! priority, each at a given time after the due date.

use crate::model::excerpt::excerpt;
use crate::model::facts::{Assignee, Priority};
use crate::model::hint;
use crate::model::value::{Object, Value};
use crate::model::violation::{Violation, Violations};

/// The maximum number of escalation steps of a task.
pub const MAX_STEPS: usize = 20;
/// The maximum time between the due date and a step, in seconds: ten years.
const MAX_AFTER_S: i64 = 10 * 366 * 86_400;
/// The keys allowed in an escalation step.
const KEYS: [&str; 3] = ["after", "to", "priority"];
/// The keys allowed in the assignee of an escalation step.
const ASSIGNEE_KEYS: [&str; 4] = ["assignee_type", "assignee_id", "agent_id", "user_id"];

/// A step of an escalation.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationStep {
    /// The time between the due date and the step, in milliseconds.
    pub after_ms: i64,
    pub to: Option<Assignee>,
    /// The new priority of the task, unless the task already has a higher priority.
    pub priority: Option<Priority>,
}

/// Reads the escalation steps of a task. The pointers of the violations are relative to the list of steps.
pub fn read(value: &Value) -> Result<Vec<EscalationStep>, Vec<Violation>> {
    let mut violations = Violations::default();
    let Some(items) = value.as_array().filter(|items| items.len() <= MAX_STEPS) else {
        violations.add("", format!("expected an array of at most {MAX_STEPS} steps"));
        return violations.finish(Vec::new());
    };
    let mut steps: Vec<EscalationStep> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("/{index}");
        let Some(object) = item.as_object() else {
            violations.add(at, format!("expected an object {{after, to, priority}}, found {}", item.type_name()));
            continue;
        };
        let Some(step) = step(object, &at, &mut violations) else { continue };
        if steps.last().is_some_and(|before| before.after_ms > step.after_ms) {
            violations.add(format!("{at}/after"), "expected at least the time of the previous step");
        }
        steps.push(step);
    }
    violations.finish(steps)
}

fn step(object: &Object, at: &str, violations: &mut Violations) -> Option<EscalationStep> {
    hint::add_unknown(object, &KEYS, at, violations);
    let after_ms = object.given("after").and_then(after_ms);
    if after_ms.is_none() {
        let message =
            "expected 1 second to 10 years after the due date, in seconds or as a duration such as 30m, 2h or PT2H";
        violations.add(format!("{at}/after"), message);
    }
    let to = match object.given("to").map(assignee) {
        None => None,
        Some(Some(to)) => Some(to),
        Some(None) => {
            let message = "expected agent:ID, user:ID, or an object with `agent_id`, `user_id`, \
                           or `assignee_type` and `assignee_id`";
            return violations.refuse(format!("{at}/to"), message);
        }
    };
    let priority = match object.given("priority").map(|name| (name, name.as_str().and_then(Priority::parse))) {
        None => None,
        Some((_, Some(priority))) => Some(priority),
        Some((name, None)) => {
            let message = format!("expected `low`, `normal`, `high` or `urgent`, found {}", excerpt(name));
            return violations.refuse(format!("{at}/priority"), message);
        }
    };
    if to.is_none() && priority.is_none() {
        violations.add(at, "expected at least one of `to` and `priority`");
    }
    Some(EscalationStep { after_ms: after_ms?, to, priority })
}

/// Converts a number of seconds, or a duration such as `2h`, to milliseconds. Returns `None` for other values, and for
/// less than one second or more than [`MAX_AFTER_S`] seconds.
fn after_ms(value: &Value) -> Option<i64> {
    let seconds = match value {
        Value::Int(seconds) => *seconds,
        Value::String(text) => seconds(text)?,
        _ => return None,
    };
    (1..=MAX_AFTER_S).contains(&seconds).then(|| seconds * 1_000)
}

/// Converts a duration to seconds. Accepts durations such as `90s`, `30m`, `2h` and `1d`, and ISO 8601 durations of
/// days, hours, minutes and seconds. Returns `None` for any other text.
fn seconds(text: &str) -> Option<i64> {
    let upper = text.trim().to_ascii_uppercase();
    let parts = match upper.strip_prefix('P') {
        None => upper.clone(),
        // Months and years are rejected because their lengths vary. An M means months before the T, and minutes after
        // the T.
        Some(iso) => match iso.split_once('T') {
            Some((days, rest)) if !days.contains('M') && !rest.is_empty() && !rest.contains('D') => {
                format!("{days}{rest}")
            }
            None if iso.ends_with('D') => iso.to_owned(),
            _ => return None,
        },
    };
    let (mut total, mut number) = (None, String::new());
    for letter in parts.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            'S' => 1,
            'M' => 60,
            'H' => 3_600,
            'D' => 86_400,
            _ => return None,
        };
        let part = std::mem::take(&mut number).parse::<i64>().ok()?.checked_mul(unit)?;
        total = Some(total.unwrap_or(0_i64).checked_add(part)?);
    }
    total.filter(|_| number.is_empty())
}

/// Parses an assignee: an object as in an `assign` request, or a string such as `user:ID`.
fn assignee(value: &Value) -> Option<Assignee> {
    if let Some(text) = value.as_str() {
        return Assignee::parse(text);
    }
    let object = value.as_object()?;
    if object.keys().any(|name| !ASSIGNEE_KEYS.contains(&&**name)) {
        return None;
    }
    match [object.text("agent_id"), object.text("user_id"), object.text("assignee_type"), object.text("assignee_id")] {
        [Some(id), None, None, None] => Assignee::of("agent", id),
        [None, Some(id), None, None] => Assignee::of("user", id),
        [None, None, Some(kind), Some(id)] => Assignee::of(kind, id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json::parse;

    fn parsed(text: &str) -> Value {
        parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn times_and_assignees_of_escalation_steps_parse_in_several_spellings() {
        let written = r#"[
            {"after": 60, "priority": "high"},
            {"after": "90s", "to": "agent:a"},
            {"after": "2m", "to": {"agent_id": "a"}, "priority": null},
            {"after": "1h", "to": {"user_id": "u"}},
            {"after": "PT2H30M", "to": {"assignee_type": "user", "assignee_id": "u", "agent_id": null}},
            {"after": "P1DT1S", "to": null, "priority": "urgent"}
        ]"#;
        let steps = read(&parsed(written)).expect("steps");
        let times: Vec<i64> = steps.iter().map(|step| step.after_ms / 1_000).collect();
        assert_eq!(times, [60, 90, 120, 3_600, 9_000, 86_401]);
        let to: Vec<Option<&Assignee>> = steps.iter().map(|step| step.to.as_ref()).collect();
        let (agent, user) = (Assignee::Agent("a".into()), Assignee::User("u".into()));
        assert_eq!(to, [None, Some(&agent), Some(&agent), Some(&user), Some(&user), None]);
        assert_eq!(steps[5].priority, Some(Priority::Urgent));
    }

    #[test]
    fn invalid_escalation_steps_are_reported_with_their_paths() {
        let places = |text: &str| -> Vec<String> {
            read(&parsed(text)).err().into_iter().flatten().map(|violation| violation.pointer).collect()
        };
        assert_eq!(places("{}"), [""]);
        assert_eq!(places(&format!("[{}]", vec![r#"{"after": 1, "priority": "low"}"#; 21].join(","))), [""]);
        assert_eq!(places("[1]"), ["/0"]);
        for after in
            ["0", "-5", "1.5", "\"\"", "\"5\"", "\"h\"", "\"P1M\"", "\"PT\"", "\"1w\"", "1e30", "9000000000000"]
        {
            assert_eq!(places(&format!(r#"[{{"after": {after}, "priority": "high"}}]"#)), ["/0/after"], "{after}");
        }
        for to in ["\"somebody\"", "\"group:a\"", "\"agent:\"", "{}", r#"{"agent_id": "a", "user_id": "u"}"#, "7"] {
            assert_eq!(places(&format!(r#"[{{"after": 1, "to": {to}}}]"#)), ["/0/to"], "{to}");
        }
        assert_eq!(places(r#"[{"after": 1, "priority": "highest"}]"#), ["/0/priority"]);
        assert_eq!(places(r#"[{"after": 1}, {"after": 1, "priority": "low", "by": 1}]"#), ["/0", "/1/by"]);
        assert_eq!(places(r#"[{"after": 2, "priority": "low"}, {"after": 1, "priority": "low"}]"#), ["/1/after"]);
        assert!(read(&parsed(r#"[{"after": 0, "priority": "high"}]"#)).is_err());
    }
}
