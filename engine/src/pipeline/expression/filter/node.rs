//! Compiled filters: predicates over a document, and over the values at the end of a path.

use std::sync::Arc;

use super::bits::Bits;
use super::comparison::{Comparison, Members};
use super::schema::Schema;
use super::types::TypeSet;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::query_path::Path;
use crate::pipeline::value::regex::Regex;

/// A predicate over one document.
#[derive(Debug, Clone)]
pub enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    /// `$alwaysTrue` and `$alwaysFalse`.
    Constant(bool),
    Expr(Arc<Expr>),
    Schema(Arc<Schema>),
    Field(Path, Test),
}

/// A predicate over the values at the end of a path.
#[derive(Debug, Clone)]
pub enum Test {
    Compare(Comparison, Value),
    In(Arc<Members>),
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
    ElemMatchObject(Box<Node>),
    /// At least one element satisfies all tests.
    ElemMatchValue(Vec<Element>),
}

/// A test of one array element, or the negation of several.
#[derive(Debug, Clone)]
pub enum Element {
    Is(Test),
    Not(Vec<Element>),
}

impl Node {
    /// Returns the rank of the condition in the evaluation order: 0 for cheap tests, 1 for more expensive tests, 2 for
    /// schemas and for expressions that cannot fail, and 3 for other expressions.
    pub fn turn(&self) -> u8 {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().map(Node::turn).max().unwrap_or(0),
            Node::Not(node) => node.turn(),
            Node::Constant(_) => 0,
            Node::Field(_, Test::Regex(_) | Test::ElemMatchValue(_) | Test::ElemMatchObject(_)) => 1,
            Node::Field(..) => 0,
            Node::Schema(_) => 2,
            Node::Expr(expr) if expr.never_fails() => 2,
            Node::Expr(_) => 3,
        }
    }

    /// Visits every path that the condition reads; the empty path denotes the whole row. Returns `false` if the
    /// condition also reads something other than plain paths.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                // The fold visits every path, even after a node that is not plain.
                nodes.iter().map(|node| node.visit_paths(visit)).fold(true, std::ops::BitAnd::bitand)
            }
            Node::Not(node) => node.visit_paths(visit),
            Node::Constant(_) => true,
            Node::Expr(expr) => {
                expr.visit_paths(&mut |path| visit(&path.segments().join(".")));
                false
            }
            Node::Schema(_) => {
                visit("");
                false
            }
            Node::Field(path, _) => {
                visit(path.text());
                true
            }
        }
    }
}
