//! The query language of `$match`: a filter is compiled once and evaluated for each row.

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

pub use comparison::{Comparison, MemberSet};
pub use node::{FilterNode, Test};
pub use word::words;

use super::expr::{Env, ParseScope};
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// A compiled `$match`.
#[derive(Debug, Clone)]
pub struct Filter {
    node: FilterNode,
    spec: Value,
}

impl Filter {
    /// Compiles a `$match` specification. `$expr` may use the variables of the scope.
    pub fn parse(spec: &Value, scope: &ParseScope) -> Result<Filter> {
        Ok(Filter { node: parse::document(spec, scope)?, spec: spec.clone() })
    }

    /// Returns the conjunction of `filters`.
    pub fn all<'f>(filters: impl IntoIterator<Item = &'f Filter>) -> Filter {
        let filters: Vec<&Filter> = filters.into_iter().filter(|filter| !filter.is_empty()).collect();
        match filters.as_slice() {
            [] => Filter { node: FilterNode::And(Vec::new()), spec: Object::new().into() },
            [only] => (*only).clone(),
            _ => {
                let specs: Vec<Value> = filters.iter().map(|filter| filter.spec.clone()).collect();
                let nodes = filters.iter().map(|filter| filter.node.clone()).collect();
                Filter {
                    node: FilterNode::And(vec![FilterNode::And(nodes)]),
                    spec: Object::from_iter([("$and", Value::from(specs))]).into(),
                }
            }
        }
    }

    /// Splits the filter into its conjuncts: the conditions that must all hold, each as a separate filter.
    pub fn conjuncts(&self) -> Vec<Filter> {
        let mut parts = Vec::new();
        split(&self.spec, &self.node, &mut parts);
        parts
    }

    /// Returns whether the filter has no conditions. Every row satisfies such a filter.
    pub fn is_empty(&self) -> bool {
        matches!(&self.node, FilterNode::And(nodes) if nodes.is_empty())
    }

    /// Returns whether the root of `env` satisfies the filter, with the variables of `env`.
    pub fn matches(&self, env: &Env) -> Result<bool> {
        eval::matches(&self.node, env.root, env)
    }

    /// Returns whether a row satisfies a filter that uses no variables of an outer pipeline. The query is not charged
    /// for intermediate values.
    pub fn matches_row(&self, row: &Value, query: &Context) -> Result<bool> {
        query.uncharged(|| self.matches(&Env::new(query, row)))
    }

    /// Visits every path that the filter reads; the empty path denotes the whole row. Returns `false` if the filter
    /// also reads something other than plain paths.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) -> bool {
        self.node.visit_paths(visit)
    }

    /// Returns whether the filter reads only plain paths: no expressions, no variables, and not the whole row.
    pub fn is_plain(&self) -> bool {
        self.visit_paths(&mut |_| {})
    }

    /// Returns the filter's rank in the evaluation order of conjuncts: first cheap tests, then more expensive tests,
    /// then schemas and expressions, and last the filters that may fail or use random numbers.
    pub fn rank(&self) -> u8 {
        self.node.rank()
    }

    /// Returns whether the filter may fail for some row or uses random numbers.
    pub fn may_fail(&self) -> bool {
        self.rank() > 2
    }

    /// Returns the top-level fields that the filter reads, or `None` if the filter reads anything other than plain
    /// paths.
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

    /// Returns the filter as the specification of a `$match`.
    pub fn spec(&self) -> &Value {
        &self.spec
    }

    pub fn node(&self) -> &FilterNode {
        &self.node
    }
}

/// Adds the conjuncts of a query document to `parts`. `node` is the compiled document, with one child for each field
/// except comments.
fn split(spec: &Value, node: &FilterNode, parts: &mut Vec<Filter>) {
    let (FilterNode::And(nodes), Value::Object(object)) = (node, spec) else { return };
    let fields = object.iter().filter(|(name, _)| &***name != "$comment");
    for ((name, value), node) in fields.zip(nodes) {
        match (&**name, node, value) {
            ("$and", FilterNode::And(nodes), Value::Array(items)) => {
                items.iter().zip(nodes).for_each(|(item, node)| split(item, node, parts));
            }
            _ => {
                let spec = Object::from_iter([(name.clone(), value.clone())]).into();
                parts.push(Filter { node: FilterNode::And(vec![node.clone()]), spec });
            }
        }
    }
}
