//! The query language of `$match`: compiled once, asked for each row.

mod bits;
mod comparison;
mod eval;
mod field;
mod node;
mod operand;
mod parse;
mod pattern;
mod schema;
mod schema_parse;
mod types;
mod word;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use comparison::{Comparison, Members};
pub use node::{Node, Test};
pub use word::words;

use super::expr::{Env, Scope};
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// A compiled `$match`.
#[derive(Debug, Clone)]
pub struct Filter {
    node: Node,
    spec: Value,
}

impl Filter {
    /// Compiles a `$match` specification; variables of the scope may stand in `$expr`.
    pub fn parse(spec: &Value, scope: &Scope) -> Result<Filter> {
        Ok(Filter { node: parse::document(spec, scope)?, spec: spec.clone() })
    }

    /// The filter that all of `filters` make together.
    pub fn all<'f>(filters: impl IntoIterator<Item = &'f Filter>) -> Filter {
        let filters: Vec<&Filter> = filters.into_iter().filter(|filter| !filter.is_empty()).collect();
        match filters.as_slice() {
            [] => Filter { node: Node::And(Vec::new()), spec: Object::new().into() },
            [only] => (*only).clone(),
            _ => {
                let specs: Vec<Value> = filters.iter().map(|filter| filter.spec.clone()).collect();
                let nodes = filters.iter().map(|filter| filter.node.clone()).collect();
                Filter {
                    node: Node::And(vec![Node::And(nodes)]),
                    spec: Object::from_iter([("$and", Value::from(specs))]).into(),
                }
            }
        }
    }

    /// The parts that must all hold; each is a filter of its own.
    pub fn conjuncts(&self) -> Vec<Filter> {
        let mut parts = Vec::new();
        split(&self.spec, &self.node, &mut parts);
        parts
    }

    /// Whether every row satisfies the filter.
    pub fn is_empty(&self) -> bool {
        matches!(&self.node, Node::And(nodes) if nodes.is_empty())
    }

    /// Whether the row satisfies the filter; variables are those of `env`, the row is its root.
    pub fn matches(&self, env: &Env) -> Result<bool> {
        eval::matches(&self.node, env.root, env)
    }

    /// Whether a row satisfies a filter that uses no variables of an outer pipeline.
    pub fn matches_row(&self, row: &Value, query: &Context) -> Result<bool> {
        self.matches(&Env::new(query, row))
    }

    /// Shows every path that is read; the empty path is the whole row. `false`: not all of it are plain paths.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) -> bool {
        self.node.visit_paths(visit)
    }

    /// Whether nothing but plain paths is read: no expression, no variable, no whole row.
    pub fn is_plain(&self) -> bool {
        self.visit_paths(&mut |_| {})
    }

    /// When the filter is asked among those that must all hold: first what is quickly told, then what takes longer, then
    /// expressions, and at the end those that some rows fail in or that are left to chance.
    pub fn turn(&self) -> u8 {
        self.node.turn()
    }

    /// Whether asking may fail for some row, or is left to chance.
    pub fn may_fail(&self) -> bool {
        self.turn() > 2
    }

    /// The top-level fields that are read; `None` where it may be any.
    pub fn fields(&self) -> Option<BTreeSet<Arc<str>>> {
        let mut fields = BTreeSet::new();
        let mut whole = !self.is_plain();
        self.visit_paths(&mut |path| {
            let first = path.split('.').next().unwrap_or(path);
            whole |= first.is_empty();
            fields.insert(Arc::from(first));
        });
        (!whole).then_some(fields)
    }

    /// The specification as it was written.
    pub fn spec(&self) -> &Value {
        &self.spec
    }

    pub fn node(&self) -> &Node {
        &self.node
    }
}

/// Takes a document apart together with its node, which holds one node for each field written.
fn split(spec: &Value, node: &Node, parts: &mut Vec<Filter>) {
    let (Node::And(nodes), Value::Object(object)) = (node, spec) else { return };
    let written = object.iter().filter(|(name, _)| &***name != "$comment");
    for ((name, value), node) in written.zip(nodes) {
        match (&**name, node, value) {
            ("$and", Node::And(nodes), Value::Array(items)) => {
                items.iter().zip(nodes).for_each(|(item, node)| split(item, node, parts));
            }
            _ => {
                let spec = Object::from_iter([(name.clone(), value.clone())]).into();
                parts.push(Filter { node: Node::And(vec![node.clone()]), spec });
            }
        }
    }
}
