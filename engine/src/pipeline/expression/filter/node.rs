//! Compiled filters: predicates over a document, and over the values at the end of a path.

use std::sync::Arc;

use super::bits::Bits;
use super::comparison::{Comparison, MemberSet};
use super::schema::FilterSchema;
use super::types::TypeSet;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::query_path::QueryPath;
use crate::pipeline::value::regex::Regex;

/// A predicate over one document.
#[derive(Debug, Clone)]
pub enum FilterNode {
    And(Vec<FilterNode>),
    Or(Vec<FilterNode>),
    Nor(Vec<FilterNode>),
    Not(Box<FilterNode>),
    /// `$alwaysTrue`, `$alwaysFalse`, or an empty `$all`, which is always false.
    Constant(bool),
    Expr(Arc<Expr>),
    Schema(Arc<FilterSchema>),
    Field(QueryPath, Test),
}

/// A predicate over the values at the end of a path.
#[derive(Debug, Clone)]
pub enum Test {
    Compare(Comparison, Value),
    In(Arc<MemberSet>),
    Exists,
    Type(TypeSet),
    Regex(Arc<Regex>),
    Mod {
        divisor: i64,
        remainder: i64,
    },
    Size(i64),
    Bits(Bits),
    /// At least one element is an object or an array that satisfies the predicate.
    ElemMatchObject(Box<FilterNode>),
    /// At least one element satisfies all tests.
    ElemMatchValue(Vec<Element>),
}

/// A test of one array element, or the negation of a conjunction of tests.
#[derive(Debug, Clone)]
pub enum Element {
    Is(Test),
    Not(Vec<Element>),
}

impl FilterNode {
    /// Returns the rank of the condition in the evaluation order: 0 for cheap tests, 1 for more expensive tests, 2 for
    /// schemas and for expressions that cannot fail, and 3 for all other expressions. A compound condition has the
    /// highest rank of its parts.
    pub fn rank(&self) -> u8 {
        match self {
            FilterNode::And(nodes) | FilterNode::Or(nodes) | FilterNode::Nor(nodes) => {
                nodes.iter().map(FilterNode::rank).max().unwrap_or(0)
            }
            FilterNode::Not(node) => node.rank(),
            FilterNode::Constant(_) => 0,
            FilterNode::Field(_, Test::Regex(_) | Test::ElemMatchValue(_) | Test::ElemMatchObject(_)) => 1,
            FilterNode::Field(..) => 0,
            FilterNode::Schema(_) => 2,
            FilterNode::Expr(expr) if expr.never_fails() => 2,
            FilterNode::Expr(_) => 3,
        }
    }

    /// Visits every path that the condition reads; the empty path denotes the whole row. Returns `false` if the
    /// condition also reads something other than plain paths.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) -> bool {
        match self {
            FilterNode::And(nodes) | FilterNode::Or(nodes) | FilterNode::Nor(nodes) => {
                // The fold visits every path, even after a node that is not plain.
                nodes.iter().map(|node| node.visit_paths(visit)).fold(true, std::ops::BitAnd::bitand)
            }
            FilterNode::Not(node) => node.visit_paths(visit),
            FilterNode::Constant(_) => true,
            FilterNode::Expr(expr) => {
                expr.visit_paths(&mut |path| visit(&path.segments().join(".")));
                false
            }
            FilterNode::Schema(_) => {
                visit("");
                false
            }
            FilterNode::Field(path, _) => {
                visit(path.text());
                true
            }
        }
    }
}
