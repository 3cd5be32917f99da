//! The stored form of the facts about an aggregate: JSON text, with an object for each plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::facts::{EdgeFact, Target};
use crate::model::graph::{DesiredEdge, EnrichmentFacts, PluginFacts};
use crate::model::json;
use crate::model::value::Object;
use crate::store::Result;
use crate::store::convert::{json_text, parse_json};

/// The stored facts of one plugin.
#[derive(Serialize, Deserialize)]
struct StoredFacts {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Arc<str>>,
    /// The edges that the plugin requests. Older programs stored these edges under the name `wishes`.
    #[serde(default, alias = "wishes", skip_serializing_if = "Vec::is_empty")]
    desired: Vec<StoredEdge>,
    #[serde(deserialize_with = "json::stored_object")]
    derived: Arc<Object>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    broken: Vec<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct StoredEdge {
    kind: Arc<str>,
    /// The kind of target: `id`, `label`, `field` or `page`. If the value is `field`, the member `field` contains the
    /// name of the field.
    by: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<Arc<str>>,
    to: Arc<str>,
    /// If `by` is `page`: the references after the first reference, which is in `to`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    or_to: Vec<Arc<str>>,
    weight: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Arc<str>>,
    event_id: Arc<str>,
}

/// Returns the stored form of facts.
pub(super) fn text_of(facts: Option<&EnrichmentFacts>) -> Result<String> {
    let stored = |plugin_facts: &PluginFacts| StoredFacts {
        labels: plugin_facts.labels.clone(),
        desired: plugin_facts.desired.iter().map(stored_edge).collect(),
        derived: plugin_facts.derived.clone(),
        broken: plugin_facts.broken.to_vec(),
    };
    let facts = facts.into_iter().flat_map(EnrichmentFacts::iter);
    let facts: BTreeMap<&Arc<str>, StoredFacts> =
        facts.map(|(name, plugin_facts)| (name, stored(plugin_facts))).collect();
    json_text(&facts)
}

/// Reads facts in their stored form.
pub(super) fn read(text: &str) -> Result<EnrichmentFacts> {
    let stored: BTreeMap<Arc<str>, StoredFacts> = parse_json(text)?;
    let plugin_facts = |stored: StoredFacts| PluginFacts {
        labels: stored.labels,
        desired: stored.desired.into_iter().map(read_desired).collect(),
        derived: stored.derived,
        broken: stored.broken.into(),
    };
    Ok(stored.into_iter().map(|(name, stored)| (name, plugin_facts(stored))).collect())
}

fn stored_edge(desired: &DesiredEdge) -> StoredEdge {
    let (by, field, to, or_to) = match &desired.edge.to {
        Target::Id(id) => ("id", None, id.clone(), Vec::new()),
        Target::Label(label) => ("label", None, label.clone(), Vec::new()),
        Target::Field(field, value) => ("field", Some(field.clone()), value.clone(), Vec::new()),
        Target::Page(references) => {
            let mut references = references.iter().cloned();
            ("page", None, references.next().unwrap_or_default(), references.collect())
        }
    };
    StoredEdge {
        kind: desired.edge.kind.clone(),
        by: by.into(),
        field,
        to,
        or_to,
        weight: desired.edge.weight,
        link: desired.edge.link.clone(),
        event_id: desired.event_id.clone(),
    }
}

fn read_desired(stored: StoredEdge) -> DesiredEdge {
    let to = match (&*stored.by, stored.field) {
        ("field", Some(field)) => Target::Field(field, stored.to),
        ("label", _) => Target::Label(stored.to),
        ("page", _) => Target::Page(std::iter::once(stored.to).chain(stored.or_to).collect()),
        _ => Target::Id(stored.to),
    };
    let edge = EdgeFact { kind: stored.kind, to, weight: stored.weight, link: stored.link };
    DesiredEdge { edge, event_id: stored.event_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_facts_are_read_back_unchanged() {
        let targets = [
            Target::Id("a".into()),
            Target::Label("A b".into()),
            Target::Field("number".into(), "34".into()),
            Target::Page(["/a/b.md".into(), "b.md".into()].into()),
        ];
        let desired = targets.map(|to| {
            let edge = EdgeFact { kind: "names".into(), to, weight: 0.5, link: Some("b.md#c".into()) };
            DesiredEdge { edge, event_id: "e-1".into() }
        });
        let plugin_facts =
            PluginFacts { desired: desired.into(), broken: ["b.md#c".into()].into(), ..PluginFacts::default() };
        let facts: EnrichmentFacts = [(Arc::from("linker"), plugin_facts)].into_iter().collect();
        assert_eq!(read(&text_of(Some(&facts)).expect("JSON")).expect("facts"), facts);
    }
}
