//! The JSON-like values of events, states and pipelines, with ordered fields, exact integers, and dates.
//!
//! Cloning a value is always cheap, because clones share strings, arrays and objects. A write first copies the shared
//! part.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::decimal::{self, Decimal};
pub use super::object::{Object, Shape};

/// A JSON-like value. A missing field has no value: functions that look up a field return an `Option`.
#[derive(Debug, Clone, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    /// An integer that fits into 64 bits. JSON text represents it as a number without fraction or exponent.
    Int(i64),
    Double(f64),
    /// An exact decimal number. JSON text represents it as a string.
    Decimal(Decimal),
    /// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
    Date(i64),
    String(Arc<str>),
    Array(Arc<Vec<Value>>),
    Object(Arc<Object>),
}

/// Defines functions that each return the content of one variant. A function returns `None` for a value of another
/// variant.
macro_rules! contents {
    ($($(#[$doc:meta])+ $name:ident -> $type:ty, $variant:ident($content:ident) => $result:expr;)+) => {
        $($(#[$doc])+
        pub fn $name(&self) -> Option<$type> {
            match self {
                Value::$variant($content) => Some($result),
                _ => None,
            }
        })+
    };
}

impl Value {
    contents! {
        /// Returns the boolean if the value is a boolean.
        as_bool -> bool, Bool(flag) => *flag;
        /// Returns the items if the value is an array.
        as_array -> &[Value], Array(items) => items;
        /// Returns the object if the value is an object.
        as_object -> &Object, Object(object) => object;
        /// Returns the object if the value is an object. The result shares the memory of the value.
        shared_object -> Arc<Object>, Object(object) => object.clone();
        /// Returns the string if the value is a string.
        as_str -> &str, String(text) => text;
        /// Returns the string if the value is a string. The result shares the memory of the value.
        shared_str -> Arc<str>, String(text) => text.clone();
        /// Returns the integer if the value is an integer. Returns `None` for a double, even if the double has no
        /// fraction.
        as_int -> i64, Int(number) => *number;
        /// Returns the date in milliseconds since the epoch if the value is a date.
        as_date -> i64, Date(ms) => *ms;
    }

    /// Returns the number as the nearest double if the value is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Double(number) => Some(*number),
            Value::Decimal(number) => Some(decimal::to_double(*number)),
            _ => None,
        }
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Double(_) | Value::Decimal(_))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns a field of an object, or `None` if the field is missing or the value is not an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// Returns MongoDB's name of the value's type. The name of an integer is `int` if it fits into 32 bits, and
    /// otherwise `long`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(number) if i32::try_from(*number).is_ok() => "int",
            Value::Int(_) => "long",
            Value::Double(_) => "double",
            Value::Decimal(_) => "decimal",
            Value::Date(_) => "date",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// Returns the position of the value's type in the total order: null, numbers, string, object, array, boolean,
    /// date.
    pub fn type_rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Int(_) | Value::Double(_) | Value::Decimal(_) => 1,
            Value::String(_) => 2,
            Value::Object(_) => 3,
            Value::Array(_) => 4,
            Value::Bool(_) => 5,
            Value::Date(_) => 6,
        }
    }

    /// Returns the approximate size of the value in memory, in bytes. A part that occurs several times is counted each
    /// time, although the memory is shared.
    pub fn size_bytes(&self) -> usize {
        size_of::<Value>()
            + match self {
                Value::String(text) => text.len(),
                Value::Array(items) => items.iter().map(Value::size_bytes).sum(),
                Value::Object(object) => object.size_bytes(),
                _ => 0,
            }
    }

    /// Compares two values of any types in MongoDB's order of values (`mongodb.com/docs`,
    /// "bson-type-comparison-order").
    ///
    /// NaN is the lowest number, `-0.0` equals `0`, and numbers of different types are compared by their exact values.
    pub fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Double(a), Value::Double(b)) => compare_doubles(*a, *b),
            (Value::Int(a), Value::Double(b)) => compare_int_double(*a, *b),
            (Value::Double(a), Value::Int(b)) => compare_int_double(*b, *a).reverse(),
            (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
            (Value::Decimal(a), Value::Int(b)) => a.cmp(&Decimal::from(*b)),
            (Value::Int(a), Value::Decimal(b)) => Decimal::from(*a).cmp(b),
            (Value::Decimal(a), Value::Double(b)) => decimal::compare_double(*a, *b),
            (Value::Double(a), Value::Decimal(b)) => decimal::compare_double(*b, *a).reverse(),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Array(a), Value::Array(b)) => a.iter().cmp(b.iter()),
            (Value::Object(a), Value::Object(b)) => a.iter().map(field_key).cmp(b.iter().map(field_key)),
            _ => self.type_rank().cmp(&other.type_rank()),
        }
    }
}

/// Returns the sort key of a field. Fields are compared by the type of the value, then by name, then by value.
fn field_key<'v>((name, value): (&'v Arc<str>, &'v Value)) -> (u8, &'v str, &'v Value) {
    (value.type_rank(), name, value)
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_int_double(a: i64, b: f64) -> Ordering {
    if b.is_nan() {
        return Ordering::Greater;
    }
    // A double can represent 2^63 exactly, but not i64::MAX.
    if b >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if b < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let whole = b.trunc();
    a.cmp(&(whole as i64)).then_with(|| compare_doubles(0.0, b - whole))
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.compare(other)
    }
}

impl Hash for Value {
    /// Hashes a value so that equal values have equal hashes. Examples of equal values are `1`, `1.0` and the decimal
    /// `1.00`, or `0` and `-0.0`. All NaNs are equal as well.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.type_rank());
        match self {
            Value::Null => {}
            Value::Bool(flag) => flag.hash(state),
            Value::Int(number) => hash_number(*number as f64, Some(*number), state),
            Value::Double(number) => hash_number(*number, None, state),
            Value::Decimal(number) => hash_decimal(*number, state),
            Value::Date(time) => time.hash(state),
            Value::String(text) => text.hash(state),
            Value::Array(items) => items.iter().for_each(|item| item.hash(state)),
            Value::Object(object) => object.iter().for_each(|(name, value)| {
                name.hash(state);
                value.hash(state);
            }),
        }
    }
}

/// Hashes a number. An integer that a double represents exactly has the same hash as that double.
fn hash_number<H: Hasher>(double: f64, int: Option<i64>, state: &mut H) {
    match int {
        Some(int) if compare_int_double(int, double) != Ordering::Equal => int.hash(state),
        _ if double.is_nan() => state.write_u64(u64::MAX),
        _ if double == 0.0 => state.write_u64(0),
        _ => state.write_u64(double.to_bits()),
    }
}

/// Hashes a decimal. A decimal that an integer or a double represents exactly has the same hash as that number.
fn hash_decimal<H: Hasher>(number: Decimal, state: &mut H) {
    let double = decimal::to_double(number);
    match decimal::whole(number) {
        Some(int) => hash_number(int as f64, Some(int), state),
        None if decimal::compare_double(number, double).is_eq() => hash_number(double, None, state),
        None => number.normalize().mantissa().hash(state),
    }
}

/// Implements the conversion of each listed type to `Value`. The converted data becomes the content of the variant
/// after `=>`.
macro_rules! value_from {
    ($($type:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from(content: $type) -> Value {
                Value::$variant(content.into())
            }
        })+
    };
}

value_from! {
    Decimal => Decimal,
    bool => Bool,
    i64 => Int,
    f64 => Double,
    &str => String,
    String => String,
    Arc<str> => String,
    Vec<Value> => Array,
    Object => Object,
}

impl<T: Into<Value>> FromIterator<T> for Value {
    /// Converts a list, item by item.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Value {
        Value::from(items.into_iter().map(Into::into).collect::<Vec<Value>>())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
