//! Converts results of plugins to plain values. Dry runs return these values, and test cases of plugins compare them.

use super::facts::{Artifact, Assignee, Assignment, EdgeFact, EventFact, Facts, Product, SLUG, Target};
use super::value::{Object, Value};

impl From<&Facts> for Value {
    fn from(facts: &Facts) -> Value {
        Object::from_iter([
            ("labels", facts.labels.iter().cloned().collect::<Value>()),
            ("edges", facts.edges.iter().collect()),
            ("derived", facts.derived.clone().into()),
            ("events", facts.events.iter().collect()),
        ])
        .into()
    }
}

impl From<&EdgeFact> for Value {
    fn from(edge: &EdgeFact) -> Value {
        // The result has the same form as in scripts, where `slug` is the only field with its own key, `to_slug`.
        let (name, to) = match &edge.to {
            Target::Id(id) => ("to", Value::from(id.clone())),
            Target::Label(label) => ("to_label", label.clone().into()),
            Target::Field(field, value) if &**field == SLUG => ("to_slug", value.clone().into()),
            Target::Field(field, value) => {
                ("to_field", Object::from_iter([("field", field.clone()), ("value", value.clone())]).into())
            }
            Target::Page(references) => ("to_page", references.iter().cloned().collect()),
        };
        let mut fields = Object::from_iter([("kind", Value::from(edge.kind.clone())), (name, to)]);
        fields.push("weight", edge.weight);
        fields.push_some("link", edge.link.clone());
        fields.into()
    }
}

impl From<&EventFact> for Value {
    fn from(event: &EventFact) -> Value {
        Object::from_iter([
            ("event_type", Value::from(event.event_type.as_str())),
            ("payload", event.payload.clone().into()),
        ])
        .into()
    }
}

impl From<&Assignment> for Value {
    fn from(assignment: &Assignment) -> Value {
        let (name, id) = match &assignment.assignee {
            Assignee::Agent(id) => ("agent_id", id),
            Assignee::User(id) => ("user_id", id),
        };
        Object::from_iter([
            (name, Value::from(id.clone())),
            ("title", assignment.title.clone().into()),
            ("priority", assignment.priority.name().into()),
            ("metadata", assignment.metadata.clone().into()),
            ("due_in_s", assignment.due_in_s.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)).into()),
        ])
        .into()
    }
}

impl From<&Artifact> for Value {
    fn from(artifact: &Artifact) -> Value {
        Object::from_iter([
            ("name", Value::from(artifact.name.as_str())),
            ("parts", artifact.parts.clone().into()),
            ("effect", artifact.effect.as_ref().map(Value::from).into()),
        ])
        .into()
    }
}

impl From<&Product> for Value {
    fn from(product: &Product) -> Value {
        Object::from_iter([
            ("artifacts", product.artifacts.iter().collect::<Value>()),
            ("message", product.message.clone().into()),
            ("review", product.review.into()),
            ("declines", product.declined.clone().into()),
        ])
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_serialized_under_the_name_of_its_kind() {
        let shown = |to: Target| {
            let value = Value::from(&EdgeFact { kind: "names".into(), to, weight: 0.5, link: None });
            serde_json::to_string(&value).expect("JSON")
        };
        assert_eq!(shown(Target::Id("a".into())), r#"{"kind":"names","to":"a","weight":0.5}"#);
        assert_eq!(shown(Target::Label("A b".into())), r#"{"kind":"names","to_label":"A b","weight":0.5}"#);
        assert_eq!(shown(Target::Field(SLUG.into(), "a-b".into())), r#"{"kind":"names","to_slug":"a-b","weight":0.5}"#);
        assert_eq!(
            shown(Target::Field("number".into(), "34".into())),
            r#"{"kind":"names","to_field":{"field":"number","value":"34"},"weight":0.5}"#
        );
        let to = Target::Page(["/a/b.md".into()].into());
        let edge = EdgeFact { kind: "names".into(), to, weight: 1.0, link: Some("b.md#c".into()) };
        assert_eq!(
            serde_json::to_string(&Value::from(&edge)).expect("JSON"),
            r#"{"kind":"names","to_page":["/a/b.md"],"weight":1.0,"link":"b.md#c"}"#
        );
    }
}
