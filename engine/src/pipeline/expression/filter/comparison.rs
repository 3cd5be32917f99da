//! What a value can be compared with: an operand, or a set of members.

use rustc_hash::FxHashSet;

use crate::model::value::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Gt,
    Gte,
    Lt,
    Lte,
}

/// The members of `$in`.
#[derive(Debug, Clone, Default)]
pub struct Members {
    values: FxHashSet<Value>,
}

impl Members {
    pub fn new(values: impl IntoIterator<Item = Value>) -> Members {
        Members { values: values.into_iter().collect() }
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }

    /// Whether the value is a member; a missing one is null.
    pub fn contains(&self, value: Option<&Value>) -> bool {
        self.values.contains(value.unwrap_or(&Value::Null))
    }
}
