//! Selects the streams of a scan by ids, types and projects, and by a filter over the fields that all events of a
//! stream share.

use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::expression::filter::{Comparison, Filter, FilterNode, Test};

/// A selection of streams. A stream must satisfy every part that is present; an absent part does not restrict the
/// selection.
#[derive(Debug, Clone, Default)]
pub struct StreamFilter {
    pub aggregate_ids: Option<Vec<Arc<str>>>,
    pub aggregate_types: Option<Vec<Arc<str>>>,
    pub project_ids: Option<Vec<Arc<str>>>,
    /// A filter for conditions that the lists of ids, types and projects cannot express. The filter reads rows with the
    /// fields `aggregate_id`, `aggregate_type` and `project_id`.
    pub filter: Option<Arc<Filter>>,
}

/// The fields that are the same for all events of a stream.
const STREAM_FIELDS: [&str; 3] = ["aggregate_id", "aggregate_type", "project_id"];

impl StreamFilter {
    pub fn is_empty(&self) -> bool {
        let StreamFilter { aggregate_ids, aggregate_types, project_ids, filter } = self;
        aggregate_ids.is_none() && aggregate_types.is_none() && project_ids.is_none() && filter.is_none()
    }

    /// Adds a conjunct that restricts ids, types or projects to a set. Returns `false` for any other conjunct. `id` is
    /// the name of the field with the aggregate's id in the rows.
    pub fn take_set(&mut self, conjunct: &Filter, id: &str) -> bool {
        let FilterNode::And(nodes) = conjunct.node() else { return false };
        let [FilterNode::Field(path, test)] = nodes.as_slice() else { return false };
        let Some(values) = texts(test) else { return false };
        let set = match &**path.text() {
            name if name == id => &mut self.aggregate_ids,
            "aggregate_type" => &mut self.aggregate_types,
            "project_id" => &mut self.project_ids,
            _ => return false,
        };
        match set {
            Some(known) => known.retain(|value| values.binary_search(value).is_ok()),
            None => *set = Some(values),
        }
        true
    }

    /// Returns the description of the selection for `explain`.
    pub fn describe(&self) -> Value {
        let mut object = Object::new();
        let sets = [
            ("aggregate_ids", &self.aggregate_ids),
            ("aggregate_types", &self.aggregate_types),
            ("project_ids", &self.project_ids),
        ];
        for (name, set) in sets {
            if let Some(set) = set {
                object.push(name, set.iter().cloned().map(Value::from).collect::<Vec<_>>());
            }
        }
        if let Some(filter) = &self.filter {
            object.push("filter", filter.spec().clone());
        }
        object.into()
    }
}

/// Returns whether a conjunct reads only fields that are the same for all events of a stream. Returns `false` for
/// expressions and schemas.
pub fn is_of_stream(conjunct: &Filter) -> bool {
    let mut of_stream = true;
    let plain = conjunct.visit_paths(&mut |path| of_stream &= STREAM_FIELDS.contains(&path));
    plain && of_stream
}

/// Returns the strings that a test accepts, in sorted order. Returns `None` unless the test requires equality with a
/// string or membership in a set of strings.
fn texts(test: &Test) -> Option<Vec<Arc<str>>> {
    let mut texts: Vec<Arc<str>> = match test {
        Test::Compare(Comparison::Eq, value) => vec![value.shared_str()?],
        Test::In(members) => members.values().map(Value::shared_str).collect::<Option<_>>()?,
        _ => return None,
    };
    texts.sort();
    Some(texts)
}
