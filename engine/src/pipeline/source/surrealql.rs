//! Translates the filter of a state scan into a SurrealQL condition over stored snapshots, with bound values.
//!
//! The condition reads the columns `aggregate_id`, `aggregate_type`, `project_id` and `deleted` of a stored record. The
//! folded fields form one text that the database cannot read, so the pipeline evaluates conditions on folded fields
//! itself.

use super::scan::StateScan;
use super::streams::StreamFilter;
use crate::model::value::Value;
use crate::pipeline::expression::filter::{Comparison, Filter, FilterNode, Test};
use crate::pipeline::value::query_path::QueryPath;

/// A SurrealQL condition for use after `WHERE`, with the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeQuery {
    pub text: String,
    /// The names of the parameters without `$`, and their values.
    pub bindings: Vec<(String, Value)>,
    /// Whether the condition accepts exactly the rows that the scan selects. If `false`, the condition may accept more
    /// rows.
    pub exact: bool,
}

/// The precision with which a source can evaluate a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The source returns exactly the rows that satisfy the condition.
    Exact,
    /// The source returns all rows that satisfy the condition, and possibly others.
    Inexact,
    /// The source cannot evaluate the condition.
    None,
}

/// Returns the precision with which the database can evaluate a conjunct of a `$match` over stored snapshots.
pub fn support(conjunct: &Filter) -> Support {
    let mut writer = ConditionWriter::default();
    match writer.node(conjunct.node()) {
        None => Support::None,
        Some(_) if writer.inexact => Support::Inexact,
        Some(_) => Support::Exact,
    }
}

/// Returns the condition for a scan.
pub fn node_query(scan: &StateScan) -> NodeQuery {
    let mut writer = ConditionWriter::default();
    let mut parts = Vec::new();
    let StreamFilter { aggregate_ids, aggregate_types, project_ids, filter } = &scan.streams;
    let sets = [("aggregate_id", aggregate_ids), ("aggregate_type", aggregate_types), ("project_id", project_ids)];
    for (column, set) in sets {
        if let Some(set) = set {
            let values = Value::from(set.iter().cloned().map(Value::from).collect::<Vec<_>>());
            let parameter = writer.bind(values);
            parts.push(format!("{column} IN {parameter}"));
        }
    }
    if !scan.deleted {
        parts.push("deleted = false".into());
    }
    for filter in [filter, &scan.filter].into_iter().flatten() {
        for conjunct in filter.conjuncts() {
            match writer.node(conjunct.node()) {
                Some(text) => parts.push(text),
                None => writer.inexact = true,
            }
        }
    }
    let text = if parts.is_empty() { "true".into() } else { parts.join(" AND ") };
    NodeQuery { text, bindings: writer.bindings, exact: !writer.inexact }
}

/// A writer of conditions, which collects the values that the conditions bind.
#[derive(Default)]
struct ConditionWriter {
    bindings: Vec<(String, Value)>,
    inexact: bool,
}

impl ConditionWriter {
    fn bind(&mut self, value: Value) -> String {
        let name = format!("p{}", self.bindings.len());
        let parameter = format!("${name}");
        self.bindings.push((name, value));
        parameter
    }

    /// Returns a condition that accepts at least the rows that satisfy the predicate, or `None` if the predicate cannot
    /// be translated.
    fn node(&mut self, node: &FilterNode) -> Option<String> {
        match node {
            FilterNode::And(nodes) => {
                // A conjunct that cannot be translated is left out: the condition then accepts more rows, but never
                // fewer.
                let known = nodes.len();
                let parts: Vec<String> = nodes.iter().filter_map(|node| self.node(node)).collect();
                self.inexact |= parts.len() < known;
                join(&parts, " AND ")
            }
            FilterNode::Or(nodes) => {
                let parts = nodes.iter().map(|node| self.node(node)).collect::<Option<Vec<String>>>()?;
                join(&parts, " OR ")
            }
            FilterNode::Field(path, test) => self.own(column(path)?, test),
            // The negation of a condition that accepts too many rows would accept too few.
            FilterNode::Nor(_) | FilterNode::Not(_) => None,
            FilterNode::Constant(_) | FilterNode::Expr(_) | FilterNode::Schema(_) => None,
        }
    }

    /// Writes a test of a string column. Returns `None` for a test that cannot be translated. Marks comparisons of
    /// `project_id` other than equality as inexact: an empty project sorts below any string, so these comparisons may
    /// accept more rows than the filter.
    fn own(&mut self, column: &str, test: &Test) -> Option<String> {
        match test {
            Test::Compare(comparison, value @ Value::String(_)) => {
                let operator = operator(*comparison);
                // An empty project sorts below any string, so these comparisons may accept more rows than the filter.
                self.inexact |= column == "project_id" && *comparison != Comparison::Eq;
                let parameter = self.bind(value.clone());
                Some(format!("{column} {operator} {parameter}"))
            }
            Test::In(members) if members.values().all(|value| value.as_str().is_some()) => {
                let mut values: Vec<Value> = members.values().cloned().collect();
                values.sort();
                let parameter = self.bind(values.into());
                Some(format!("{column} IN {parameter}"))
            }
            Test::Compare(..)
            | Test::In(_)
            | Test::Exists
            | Test::Type(_)
            | Test::Regex(_)
            | Test::Mod { .. }
            | Test::Size(_)
            | Test::Bits(_)
            | Test::ElemMatchObject(_)
            | Test::ElemMatchValue(_) => None,
        }
    }
}

/// Returns the column of a path, or `None` if the translation does not support the path. For example, the translation
/// does not support paths of folded fields.
fn column(path: &QueryPath) -> Option<&'static str> {
    match &**path.text() {
        "_id" => Some("aggregate_id"),
        "aggregate_type" => Some("aggregate_type"),
        "project_id" => Some("project_id"),
        _ => None,
    }
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "=",
        Comparison::Gt => ">",
        Comparison::Gte => ">=",
        Comparison::Lt => "<",
        Comparison::Lte => "<=",
    }
}

fn join(parts: &[String], with: &str) -> Option<String> {
    match parts {
        [] => None,
        [only] => Some(only.clone()),
        many => Some(format!("({})", many.join(with))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;
    use crate::pipeline::expression::expr::ParseScope;
    use crate::pipeline::value::context::Context;

    fn ask(filter: &str) -> (Support, Option<String>) {
        let spec = json::parse(filter.as_bytes()).expect("a test's JSON");
        let filter =
            Filter::parse(&spec, &ParseScope::root(&Context::new(0, 0, &|| 0, 1, i64::MAX))).expect("a test's filter");
        (support(&filter), ConditionWriter::default().node(filter.node()))
    }

    #[test]
    fn filters_on_columns_are_translated_but_filters_on_folded_fields_are_not() {
        assert_eq!(ask(r#"{"_id": "x"}"#), (Support::Exact, Some("aggregate_id = $p0".into())));
        let below = ask(r#"{"project_id": {"$lt": "x"}}"#);
        assert_eq!(below, (Support::Inexact, Some("project_id < $p0".into())));
        let both = ask(r#"{"aggregate_type": "t", "a": 1}"#);
        assert_eq!(both, (Support::Inexact, Some("aggregate_type = $p0".into())));
    }

    #[test]
    fn filters_that_could_lose_rows_are_not_translated() {
        for filter in [r#"{"a": 1}"#, r#"{"_id": {"$ne": "x"}}"#, r#"{"_version": 1}"#, r#"{"_id": 1}"#] {
            assert_eq!(ask(filter), (Support::None, None), "{filter}");
        }
        assert_eq!(ask(r#"{"$or": [{"_id": "x"}, {"b": 1}]}"#).0, Support::None);
        assert_eq!(ask(r#"{"$or": [{"_id": "x"}, {"project_id": "p"}]}"#).0, Support::Exact);
    }
}
