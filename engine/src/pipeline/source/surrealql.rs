//! The condition over stored snapshots that a state scan asks for: SurrealQL text with bound values.
//!
//! Stored are `aggregate_id`, `aggregate_type`, `project_id`, `deleted` and the folded fields in `state`.

use std::fmt::Write;

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
            Node::Field(path, test) => match column(path) {
                Some(Column::Own(name)) => self.own(name, test),
                Some(Column::State(name)) => self.state(name, test),
                None => None,
            },
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

    /// A folded field, which may hold anything: an array is looked into by MongoDB, so arrays must pass.
    fn state(&mut self, name: &str, test: &Test) -> Option<String> {
        self.inexact = true;
        let mut text = String::new();
        match test {
            Test::Compare(Comparison::Eq | Comparison::Gte | Comparison::Lte, Value::Null) => {
                let parameter = self.bind(Value::Null);
                write!(text, "(state.{name} = NONE OR state.{name} = {parameter} OR state.{name} CONTAINS {parameter})")
            }
            Test::Compare(comparison, value) if is_scalar(value) => {
                let parameter = self.bind(value.clone());
                match comparison {
                    Comparison::Eq => write!(text, "(state.{name} = {parameter} OR state.{name} CONTAINS {parameter})"),
                    Comparison::Gt | Comparison::Gte | Comparison::Lt | Comparison::Lte => {
                        // Every array, and every object, stands at or above the empty array.
                        let operator = operator(*comparison);
                        write!(text, "(state.{name} {operator} {parameter} OR state.{name} >= [])")
                    }
                }
            }
            Test::In(members) if members.values().all(is_scalar) => {
                let mut values: Vec<Value> = members.values().cloned().collect();
                values.sort();
                let parameter = self.bind(values.into());
                write!(text, "(state.{name} IN {parameter} OR state.{name} CONTAINSANY {parameter})")
            }
            Test::Exists => write!(text, "state.{name} != NONE"),
            Test::Compare(..)
            | Test::In(_)
            | Test::Type(_)
            | Test::Regex(_)
            | Test::Mod { .. }
            | Test::Size(_)
            | Test::Bits(_)
            | Test::ElemMatchObject(_)
            | Test::ElemMatchValue(_) => return None,
        }
        .ok()?;
        Some(text)
    }
}

enum Column<'p> {
    Own(&'static str),
    State(&'p str),
}

/// Where a path is stored; `None` for paths into values, for system fields and for names that need quoting.
fn column(path: &Path) -> Option<Column<'_>> {
    match &**path.text() {
        "_id" => Some(Column::Own("aggregate_id")),
        "aggregate_type" => Some(Column::Own("aggregate_type")),
        "project_id" => Some(Column::Own("project_id")),
        name if is_identifier(name) => Some(Column::State(name)),
        _ => None,
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether both sides agree on what equals the value. Dates do not: a snapshot holds them as text.
fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::String(_) => true,
        Value::Double(number) => number.is_finite(),
        Value::Null | Value::Date(_) | Value::Array(_) | Value::Object(_) => false,
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

    fn ask(filter: &str) -> (Answer, Option<String>) {
        let spec = json::parse(filter.as_bytes()).expect("a test's JSON");
        let filter = Filter::parse(&spec, &Scope::root()).expect("a test's filter");
        (answer(&filter), Writer::default().node(filter.node()))
    }

    #[test]
    fn columns_are_exact_and_fields_are_not() {
        assert_eq!(ask(r#"{"_id": "x"}"#), (Answer::Exact, Some("aggregate_id = $p0".into())));
        assert_eq!(ask(r#"{"a": 1}"#), (Answer::Inexact, Some("(state.a = $p0 OR state.a CONTAINS $p0)".into())));
        assert_eq!(ask(r#"{"a": {"$lt": 1}}"#), (Answer::Inexact, Some("(state.a < $p0 OR state.a >= [])".into())));
    }

    #[test]
    fn what_may_lose_rows_is_not_asked() {
        for filter in [r#"{"a": {"$ne": 1}}"#, r#"{"a.b": 1}"#, r#"{"a b": 1}"#, r#"{"_version": 1}"#, r#"{"a": [1]}"#]
        {
            assert_eq!(ask(filter), (Answer::No, None), "{filter}");
        }
        assert_eq!(ask(r#"{"$or": [{"a": 1}, {"b": {"$size": 1}}]}"#).0, Answer::No);
        assert_eq!(ask(r#"{"$or": [{"a": 1}, {"b": 2}]}"#).0, Answer::Inexact);
    }
}
