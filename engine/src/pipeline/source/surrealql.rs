//! The condition over stored snapshots that a state scan asks for: SurrealQL text with bound values.
//!
//! Columns of the stored record are `aggregate_id`, `aggregate_type`, `project_id` and `deleted`. The folded fields are one
//! text, which the database cannot look into: conditions on them stay with the pipeline.

use super::scan::StateScan;
use super::streams::StreamFilter;
use crate::model::value::Value;
use crate::pipeline::expression::filter::{Comparison, Filter, Node, Test};
use crate::pipeline::value::query_path::Path;

/// A condition, to stand after `WHERE`.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeQuery {
    pub text: String,
    /// Names without `$`, and their values.
    pub bindings: Vec<(String, Value)>,
    /// Whether it lets through exactly the rows that the scan's filter lets through; otherwise more.
    pub exact: bool,
}

/// What a source says when asked to take a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It gives just the rows for which the condition holds.
    Exact,
    /// It gives all of them, and perhaps others.
    Inexact,
    No,
}

/// How far the stored snapshots can be asked for this part of a `$match`.
pub fn answer(conjunct: &Filter) -> Answer {
    let mut writer = Writer::default();
    match writer.node(conjunct.node()) {
        None => Answer::No,
        Some(_) if writer.inexact => Answer::Inexact,
        Some(_) => Answer::Exact,
    }
}

/// The condition for a scan; a slug among its projects is to be resolved before.
pub fn node_query(scan: &StateScan) -> NodeQuery {
    let mut writer = Writer::default();
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

/// Writes conditions and collects their values.
#[derive(Default)]
struct Writer {
    bindings: Vec<(String, Value)>,
    inexact: bool,
}

impl Writer {
    fn bind(&mut self, value: Value) -> String {
        let name = format!("p{}", self.bindings.len());
        let parameter = format!("${name}");
        self.bindings.push((name, value));
        parameter
    }

    /// A condition that lets through every row for which the predicate holds; `None` if there is none.
    fn node(&mut self, node: &Node) -> Option<String> {
        match node {
            Node::And(nodes) => {
                // What cannot be asked is left out: more rows come, none is lost.
                let known = nodes.len();
                let parts: Vec<String> = nodes.iter().filter_map(|node| self.node(node)).collect();
                self.inexact |= parts.len() < known;
                join(&parts, " AND ")
            }
            Node::Or(nodes) => {
                let parts = nodes.iter().map(|node| self.node(node)).collect::<Option<Vec<String>>>()?;
                join(&parts, " OR ")
            }
            Node::Field(path, test) => self.own(column(path)?, test),
            // The negation of a condition that lets more rows through would let fewer through.
            Node::Nor(_) | Node::Not(_) => None,
            Node::Constant(_) | Node::Expr(_) | Node::Schema(_) => None,
        }
    }

    /// A column that always holds a text (or, for the project, nothing).
    fn own(&mut self, column: &str, test: &Test) -> Option<String> {
        match test {
            Test::Compare(comparison, value @ Value::String(_)) => {
                let operator = operator(*comparison);
                // Nothing is below any text.
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

/// The column of a path; `None` for folded fields and for what is not stored.
fn column(path: &Path) -> Option<&'static str> {
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
    use crate::pipeline::expression::expr::Scope;
    use crate::pipeline::value::context::Context;

    fn ask(filter: &str) -> (Answer, Option<String>) {
        let spec = json::parse(filter.as_bytes()).expect("a test's JSON");
        let filter =
            Filter::parse(&spec, &Scope::root(&Context::new(0, 0, &|| 0, 1, i64::MAX))).expect("a test's filter");
        (answer(&filter), Writer::default().node(filter.node()))
    }

    #[test]
    fn columns_are_asked_and_folded_fields_are_not() {
        assert_eq!(ask(r#"{"_id": "x"}"#), (Answer::Exact, Some("aggregate_id = $p0".into())));
        let below = ask(r#"{"project_id": {"$lt": "x"}}"#);
        assert_eq!(below, (Answer::Inexact, Some("project_id < $p0".into())));
        let both = ask(r#"{"aggregate_type": "t", "a": 1}"#);
        assert_eq!(both, (Answer::Inexact, Some("aggregate_type = $p0".into())));
    }

    #[test]
    fn what_may_lose_rows_is_not_asked() {
        for filter in [r#"{"a": 1}"#, r#"{"_id": {"$ne": "x"}}"#, r#"{"_version": 1}"#, r#"{"_id": 1}"#] {
            assert_eq!(ask(filter), (Answer::No, None), "{filter}");
        }
        assert_eq!(ask(r#"{"$or": [{"_id": "x"}, {"b": 1}]}"#).0, Answer::No);
        assert_eq!(ask(r#"{"$or": [{"_id": "x"}, {"project_id": "p"}]}"#).0, Answer::Exact);
    }
}
