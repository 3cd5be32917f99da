//! Reads and checks facts, the result of the hook `enrich`.

use std::sync::Arc;

use foldwork_engine::model::facts::{EdgeFact, Facts, SLUG, Target};
use foldwork_engine::model::id::is_valid_name;
use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;

use super::{ResultFields, event, kind, list, shared};

const MAX_LABELS: usize = 50;
const MAX_EDGES: usize = 1_000;
const MAX_EVENTS: usize = 20;
const DERIVED_BYTES: usize = 64 << 10;
/// The maximum number of references to a page in one edge.
const MAX_REFERENCES: usize = 8;
/// The maximum length of a reference to a page and of the text of a link, in bytes.
const MAX_LINK_BYTES: usize = 512;
/// The fields that can name the target of an edge.
const TARGETS: [&str; 5] = ["to", "to_slug", "to_label", "to_field", "to_page"];

/// Reads `#{labels, edges, derived, events}`. Each field is optional. The value `()` means no facts.
pub(in crate::script) fn read(value: &Value, aggregate_type: &str) -> Result<Facts, String> {
    if value.is_null() {
        return Ok(Facts::default());
    }
    let fields = ResultFields::of("facts".into(), value, &["labels", "edges", "derived", "events"])?;
    let derived = fields.object("derived")?;
    let bytes = derived.size_bytes();
    if bytes > DERIVED_BYTES {
        return Err(format!("facts.derived has {bytes} bytes; at most {DERIVED_BYTES} are allowed"));
    }
    Ok(Facts {
        labels: fields.list("labels", MAX_LABELS, |path, item| shared(&path, item))?,
        edges: fields.list("edges", MAX_EDGES, edge)?,
        derived,
        events: fields.list("events", MAX_EVENTS, |path, item| event(path, item, Some(aggregate_type)))?,
    })
}

/// Reads an edge `#{kind, to | to_slug | to_label | to_field | to_page, weight, link}`.
fn edge(path: String, value: &Value) -> Result<EdgeFact, String> {
    let fields =
        ResultFields::of(path, value, &["kind", "to", "to_slug", "to_label", "to_field", "to_page", "weight", "link"])?;
    let kind_name = fields.needed_text("kind")?;
    if !is_valid_name(kind_name) {
        return Err(format!("{} is '{kind_name}', not [a-z][a-z0-9_-]{{0,63}}", fields.path("kind")));
    }
    let present: Vec<&str> = TARGETS.into_iter().filter(|name| fields.get(name).is_some()).collect();
    let &[name] = present.as_slice() else {
        let targets = TARGETS.join("`, `");
        return Err(format!("{} needs exactly one of `{targets}`, but has {}", fields.path, present.len()));
    };
    let target = fields.get(name).unwrap_or(&Value::Null);
    let path = fields.path(name);
    let to = match name {
        "to" => Target::Id(shared(&path, target)?),
        "to_slug" => Target::Field(SLUG.into(), shared(&path, target)?),
        "to_label" => Target::Label(shared(&path, target)?),
        "to_page" => page_target(&path, target)?,
        _ => field_target(path, target)?,
    };
    let finite = |weight: &Value| weight.as_f64().filter(|weight| weight.is_finite()).map(Some);
    let weight = fields.typed("weight", "a finite number", finite)?.unwrap_or(1.0);
    let link = fields.get("link").map(|link| short(&fields.path("link"), link)).transpose()?;
    Ok(EdgeFact { kind: kind_name.into(), to, weight, link })
}

/// Reads a reference to a page, or a list of references. In a list, the first reference that names a page counts.
fn page_target(path: &str, value: &Value) -> Result<Target, String> {
    let references = match value {
        Value::Array(_) => list(path, value, MAX_REFERENCES, |path, item| short(&path, item))?,
        reference => vec![short(path, reference)?],
    };
    if references.is_empty() { Err(format!("{path} is empty")) } else { Ok(Target::Page(references.into())) }
}

fn short(path: &str, value: &Value) -> Result<Arc<str>, String> {
    let text = shared(path, value)?;
    match text.len() {
        bytes if bytes > MAX_LINK_BYTES => {
            Err(format!("{path} has {bytes} bytes; at most {MAX_LINK_BYTES} are allowed"))
        }
        _ => Ok(text),
    }
}

/// Reads a target `#{field, value}`. A number is converted to its text.
fn field_target(path: String, value: &Value) -> Result<Target, String> {
    let fields = ResultFields::of(path, value, &["field", "value"])?;
    let field = fields.needed_text("field")?;
    let value = match fields.get("value") {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(number @ (Value::Int(_) | Value::Double(_))) => json::text(number).into(),
        Some(Value::String(_)) => return Err(format!("{} is empty", fields.path("value"))),
        Some(other) => return Err(format!("{} is {}, not a string or a number", fields.path("value"), kind(other))),
        None => return Err(format!("{} is missing", fields.path("value"))),
    };
    Ok(Target::Field(field.into(), value))
}

#[cfg(test)]
mod tests {
    use super::super::of_json;
    use super::*;

    fn refused(json: &str) -> String {
        read(&of_json(json), "article").expect_err("refused")
    }

    #[test]
    fn mistakes_are_reported_with_their_paths() {
        let edges = |edge: &str| refused(&format!(r#"{{"edges": [{{"kind": "a", "to": "b"}}, {edge}]}}"#));
        assert_eq!(
            edges(r#"{"kind": "a", "to": "b", "wieght": 1}"#),
            "facts.edges[1].wieght is unknown; did you mean weight?"
        );
        assert_eq!(
            edges(r#"{"kind": "a", "to": "b", "to_slug": "c"}"#),
            "facts.edges[1] needs exactly one of `to`, `to_slug`, `to_label`, `to_field`, `to_page`, but has 2"
        );
        assert_eq!(edges(r#"{"kind": "a", "to_page": []}"#), "facts.edges[1].to_page is empty");
        assert_eq!(
            edges(r#"{"kind": "a", "to_page": ["/b", 7]}"#),
            "facts.edges[1].to_page[1] is an integer, not a string"
        );
        let long = format!(r#"{{"kind": "a", "to_page": "/b", "link": "{}"}}"#, "x".repeat(513));
        assert_eq!(edges(&long), "facts.edges[1].link has 513 bytes; at most 512 are allowed");
        assert_eq!(edges(r#"{"kind": "A b", "to": "b"}"#), "facts.edges[1].kind is 'A b', not [a-z][a-z0-9_-]{0,63}");
        assert_eq!(edges(r#"{"kind": "a", "to": 7}"#), "facts.edges[1].to is an integer, not a string");
        assert_eq!(
            edges(r#"{"kind": "a", "to": "b", "weight": "1"}"#),
            "facts.edges[1].weight is a string, not a finite number"
        );
        assert_eq!(refused(r#"{"derived": []}"#), "facts.derived is an array, not a map");
        assert_eq!(
            refused(r#"{"events": [{"event_type": "note.created"}]}"#),
            "facts.events[0].event_type is 'note.created', but must begin with 'article.'"
        );
        assert_eq!(refused("[]"), "facts is an array, not a map");
        assert_eq!(refused(r#"{"labels": ["a", ""]}"#), "facts.labels[1] is empty");
        let many = vec![r#""x""#; 51].join(",");
        assert_eq!(refused(&format!(r#"{{"labels": [{many}]}}"#)), "facts.labels has 51 items; at most 50 are allowed");
    }

    #[test]
    fn a_number_that_identifies_a_target_is_converted_to_text() {
        let json = r#"{"edges": [{"kind": "a", "to_field": {"field": "number", "value": 1234}}]}"#;
        let facts = read(&of_json(json), "article").expect("facts");
        assert_eq!(facts.edges[0].to, Target::Field("number".into(), "1234".into()));
        assert_eq!(facts.edges[0].weight, 1.0);
    }
}
