//! Evaluates a compiled filter on one document.

use super::bits::Bits;
use super::comparison::Comparison;
use super::node::{Element, FilterNode, Test};
use crate::model::decimal;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::expression::quantifier::{all, any};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{measure, measure_all};
use crate::pipeline::value::number::whole_double;
use crate::pipeline::value::query_path::Leaf;

/// Returns whether `document`, which is the row or an array element of the row, satisfies the predicate.
pub fn matches(node: &FilterNode, document: &Value, env: &Env) -> Result<bool> {
    match node {
        FilterNode::And(nodes) => all(nodes, |node| matches(node, document, env)),
        FilterNode::Or(nodes) => any(nodes, |node| matches(node, document, env)),
        FilterNode::Nor(nodes) => Ok(!any(nodes, |node| matches(node, document, env))?),
        FilterNode::Not(node) => Ok(!matches(node, document, env)?),
        FilterNode::Constant(answer) => Ok(*answer),
        FilterNode::Expr(expr) => Ok(Expr::truthy(expr.eval(env)?.as_ref())),
        FilterNode::Schema(schema) => schema.matches(document, env),
        FilterNode::Field(path, test) => path.any(document, test.leaf(), &mut |value| test.matches(value, env)),
    }
}

impl Test {
    /// Returns which values are tested if the path ends at an array: the items and the array, or only the array.
    pub fn leaf(&self) -> Leaf {
        match self {
            Test::Compare(..)
            | Test::In(_)
            | Test::Exists
            | Test::Type(_)
            | Test::Regex(_)
            | Test::Mod { .. }
            | Test::Bits(_) => Leaf::Expanded,
            Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Leaf::Whole,
        }
    }

    /// Returns whether one value satisfies the test. `None` represents a missing value.
    pub fn matches(&self, value: Option<&Value>, env: &Env) -> Result<bool> {
        match (self, value) {
            (Test::Compare(comparison, operand), value) => {
                // The work of a comparison is bounded by the size of the operand.
                if value.is_some_and(|value| value.type_rank() == operand.type_rank()) {
                    measure(operand, env.query)?;
                }
                Ok(comparison.holds(value, operand))
            }
            (Test::In(members), value) => {
                measure_all(value, env.query)?;
                Ok(members.contains(value))
            }
            (Test::Exists, value) => Ok(value.is_some()),
            (Test::Type(types), Some(value)) => Ok(types.contains(value)),
            (Test::Regex(regex), Some(Value::String(text))) => regex.is_match(text, env.query),
            (Test::Mod { divisor, remainder }, Some(value)) => {
                // A divisor of -1 overflows for the lowest integer, where the remainder is 0.
                Ok(truncated(value).is_some_and(|number| number.checked_rem(*divisor).unwrap_or(0) == *remainder))
            }
            (Test::Size(size), Some(Value::Array(items))) => Ok(i64::try_from(items.len()) == Ok(*size)),
            (Test::Bits(bits), Some(value)) => Ok(Bits::matches(bits, value)),
            (Test::ElemMatchObject(node), Some(Value::Array(items))) => any(items.iter(), |item| {
                env.query.tick()?;
                Ok(matches!(item, Value::Object(_) | Value::Array(_)) && matches(node, item, env)?)
            }),
            (Test::ElemMatchValue(tests), Some(Value::Array(items))) => any(items.iter(), |item| {
                env.query.tick()?;
                passes(tests, item, env)
            }),
            (
                Test::Type(_)
                | Test::Regex(_)
                | Test::Mod { .. }
                | Test::Size(_)
                | Test::Bits(_)
                | Test::ElemMatchObject(_)
                | Test::ElemMatchValue(_),
                _,
            ) => Ok(false),
        }
    }
}

/// Returns whether an element passes all tests.
fn passes(tests: &[Element], item: &Value, env: &Env) -> Result<bool> {
    all(tests, |test| match test {
        Element::Is(test) => test.matches(Some(item), env),
        Element::Not(tests) => Ok(!passes(tests, item, env)?),
    })
}

/// Returns the number without its fraction, or `None` if the value is not a number or the result does not fit into 64
/// bits.
fn truncated(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => whole_double(number.trunc()),
        Value::Decimal(number) => decimal::whole(number.trunc()),
        Value::Null | Value::Bool(_) | Value::Date(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Comparison {
    /// Returns whether the comparison holds between `value` and `operand`. Numbers of all types are compared with each
    /// other. Other values of different types never match. A missing value counts as null.
    pub fn holds(self, value: Option<&Value>, operand: &Value) -> bool {
        let value = value.unwrap_or(&Value::Null);
        if value.type_rank() != operand.type_rank() {
            return false;
        }
        if is_nan(value) || is_nan(operand) {
            // NaN equals itself and is neither greater nor less than any number.
            let both = is_nan(value) && is_nan(operand);
            return both && matches!(self, Comparison::Eq | Comparison::Gte | Comparison::Lte);
        }
        let order = value.compare(operand);
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Gt => order.is_gt(),
            Comparison::Gte => order.is_ge(),
            Comparison::Lt => order.is_lt(),
            Comparison::Lte => order.is_le(),
        }
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Double(number) if number.is_nan())
}
