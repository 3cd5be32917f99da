//! The values of an expression for a sequence of rows, stored by type.

use std::cmp::Ordering;

use crate::model::value::Value;

/// Values in the order of their rows. If the values are only integers, only dates or only doubles, each value takes 8
/// bytes.
#[derive(Debug, Clone)]
pub enum TypedValues {
    Ints(Vec<i64>),
    Dates(Vec<i64>),
    Doubles(Vec<f64>),
    /// Values of any type. `None` represents a missing value.
    Any(Vec<Option<Value>>),
}

impl Default for TypedValues {
    fn default() -> TypedValues {
        TypedValues::Ints(Vec::new())
    }
}

impl TypedValues {
    pub fn len(&self) -> usize {
        match self {
            TypedValues::Ints(values) | TypedValues::Dates(values) => values.len(),
            TypedValues::Doubles(values) => values.len(),
            TypedValues::Any(values) => values.len(),
        }
    }

    /// Returns the number of bytes that one value takes.
    pub fn value_bytes(&self) -> usize {
        match self {
            TypedValues::Ints(_) | TypedValues::Dates(_) => size_of::<i64>(),
            TypedValues::Doubles(_) => size_of::<f64>(),
            TypedValues::Any(_) => size_of::<Option<Value>>(),
        }
    }

    /// Returns the value at an index. Returns `None` if the value is missing or the index is out of range.
    pub fn value(&self, index: usize) -> Option<Value> {
        match self {
            TypedValues::Ints(values) => values.get(index).copied().map(Value::Int),
            TypedValues::Dates(values) => values.get(index).copied().map(Value::Date),
            TypedValues::Doubles(values) => values.get(index).copied().map(Value::Double),
            TypedValues::Any(values) => values.get(index).cloned().flatten(),
        }
    }

    /// Compares the values at two indexes in the order of a sort. A missing value counts as null.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            TypedValues::Ints(values) | TypedValues::Dates(values) => values[a].cmp(&values[b]),
            TypedValues::Doubles(values) => Value::Double(values[a]).cmp(&Value::Double(values[b])),
            TypedValues::Any(values) => {
                let value = |index: usize| values[index].as_ref().unwrap_or(&Value::Null);
                value(a).cmp(value(b))
            }
        }
    }

    /// Returns the values at `indexes`, in the order of `indexes`.
    pub fn at(&self, indexes: &[u32]) -> TypedValues {
        match self {
            TypedValues::Ints(values) => TypedValues::Ints(picked(values, indexes)),
            TypedValues::Dates(values) => TypedValues::Dates(picked(values, indexes)),
            TypedValues::Doubles(values) => TypedValues::Doubles(picked(values, indexes)),
            TypedValues::Any(values) => TypedValues::Any(picked(values, indexes)),
        }
    }

    /// Adds integers, as repeated calls of [`TypedValues::push`] would.
    pub fn extend_ints(&mut self, ints: impl Iterator<Item = i64>) {
        match self {
            TypedValues::Ints(values) => values.extend(ints),
            _ => ints.for_each(|number| self.push(Some(Value::Int(number)))),
        }
    }

    /// Adds a value. The first value determines the variant. A later value of another type converts all values to
    /// [`TypedValues::Any`].
    pub fn push(&mut self, value: Option<Value>) {
        let is_first = self.len() == 0;
        match (&mut *self, value) {
            (TypedValues::Ints(values), Some(Value::Int(number))) => values.push(number),
            (TypedValues::Dates(values), Some(Value::Date(ms))) => values.push(ms),
            (TypedValues::Doubles(values), Some(Value::Double(number))) => values.push(number),
            (TypedValues::Any(values), value) => values.push(value),
            (_, Some(Value::Date(ms))) if is_first => *self = TypedValues::Dates(vec![ms]),
            (_, Some(Value::Double(number))) if is_first => *self = TypedValues::Doubles(vec![number]),
            (_, value) => {
                let known = (0..self.len()).map(|index| self.value(index));
                *self = TypedValues::Any(known.chain(std::iter::once(value)).collect());
            }
        }
    }

    /// Returns whether any value is an array.
    pub fn has_arrays(&self) -> bool {
        matches!(self, TypedValues::Any(values) if values.iter().flatten().any(|value| value.as_array().is_some()))
    }
}

fn picked<T: Clone>(values: &[T], indexes: &[u32]) -> Vec<T> {
    indexes.iter().map(|index| values[*index as usize].clone()).collect()
}
