//! Comparison operators, and the sets of values for `$in`.

use rustc_hash::FxHashSet;

use crate::model::value::Value;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Gt,
    Gte,
    Lt,
    Lte,
}

/// The values in the operand of `$in` or `$nin`, without the patterns.
#[derive(Debug, Clone, Default)]
pub struct MemberSet {
    values: FxHashSet<Value>,
}

impl MemberSet {
    pub fn new(values: impl IntoIterator<Item = Value>) -> MemberSet {
        MemberSet { values: values.into_iter().collect() }
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }

    /// Returns whether the value is a member. A missing value counts as null.
    pub fn contains(&self, value: Option<&Value>) -> bool {
        self.values.contains(value.unwrap_or(&Value::Null))
    }
}
