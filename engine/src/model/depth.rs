//! Limits on the nesting depth of stored values: payloads, metadata, folded states, and facts.

use std::sync::Arc;

use super::date::format_date;
use super::definition::Fold;
use super::json;
use super::value::{Object, Value};
use super::violation::Violations;

/// The maximum nesting depth of a payload, an event's metadata, a state, and the data that a plugin derives. The
/// outermost object counts as one level.
///
/// This limit is lower than the limit for requests ([`json::MAX_DEPTH`]). Rows, pages, exported events and patches add
/// a few levels around a stored value, and a client must be able to send back what it received.
pub const MAX_KEPT_DEPTH: usize = 160;
/// The maximum nesting depth of a value inside a task, such as the data of an artifact or the metadata. The lists,
/// parts and patches of the task add levels around this value.
pub const MAX_CONTENT_DEPTH: usize = MAX_KEPT_DEPTH - 20;

const _: () = assert!(MAX_KEPT_DEPTH < json::MAX_DEPTH && json::MAX_DEPTH < json::MAX_STORED_DEPTH);

impl Value {
    /// Returns whether the value has at most `levels` levels of nesting. A scalar has no levels, and an empty array has
    /// one level. The check does not visit levels that are deeper than `levels`.
    pub fn nests_within(&self, levels: usize) -> bool {
        match self {
            Value::Array(items) => {
                levels.checked_sub(1).is_some_and(|levels| items.iter().all(|item| item.nests_within(levels)))
            }
            Value::Object(object) => object.nests_within(levels),
            _ => true,
        }
    }

    /// Returns whether the value stays the same when it is written as JSON and read again.
    fn is_json(&self) -> bool {
        match self {
            Value::Array(items) => items.iter().all(Value::is_json),
            Value::Object(object) => object.iter().all(|(_, value)| value.is_json()),
            Value::Double(number) => number.is_finite(),
            Value::Decimal(_) | Value::Date(_) => false,
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::String(_) => true,
        }
    }

    fn into_json(self) -> Value {
        match self {
            Value::Array(items) => Arc::unwrap_or_clone(items).into_iter().map(Value::into_json).collect(),
            Value::Object(object) => Arc::unwrap_or_clone(object).into_json().into(),
            Value::Double(number) if !number.is_finite() => Value::Null,
            Value::Decimal(number) => number.to_string().into(),
            Value::Date(ms) => format_date(ms).into(),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => self,
        }
    }
}

impl Object {
    /// Returns whether the object nests at most `levels` levels. The object itself counts as one level.
    pub fn nests_within(&self, levels: usize) -> bool {
        levels.checked_sub(1).is_some_and(|levels| self.iter().all(|(_, value)| value.nests_within(levels)))
    }

    /// Converts the values in the object to the values that remain after writing and reading JSON: dates and decimals
    /// become strings, and NaN and infinities become null. The log stores events as JSON. Without the conversion,
    /// folding an event before it is written could result in a different state than folding the stored event.
    ///
    /// An object that is nested too deeply to be stored is returned unchanged.
    pub fn into_json(self) -> Object {
        if !self.nests_within(json::MAX_STORED_DEPTH) || self.iter().all(|(_, value)| value.is_json()) {
            return self;
        }
        self.into_iter().map(|(name, value)| (name, value.into_json())).collect()
    }
}

/// Checks the nesting depth of a payload field's value. If the fold collects values in a list, the list counts as one
/// more level around a value that is not an array.
pub fn check_field(value: &Value, fold: Fold, at: impl Into<String>, violations: &mut Violations) {
    let collects = matches!(fold, Fold::Append | Fold::Union);
    // The payload or state itself is one level. A list that collects single values adds another level.
    let surrounding = if collects && value.as_array().is_none() { 2 } else { 1 };
    check(value, MAX_KEPT_DEPTH - surrounding, at, violations);
}

/// Adds a violation if a value nests more than `levels` levels.
pub fn check(value: &Value, levels: usize, at: impl Into<String>, violations: &mut Violations) {
    if !value.nests_within(levels) {
        violations.add(at, too_deep(levels));
    }
}

/// Returns the error message for a value that nests more than `levels` levels.
pub fn too_deep(levels: usize) -> String {
    format!("nested more than {levels} levels deep")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, level| match level % 2 {
            0 => vec![inner].into(),
            _ => Object::from_iter([("x", inner)]).into(),
        })
    }

    #[test]
    fn depth_counts_levels_from_the_outermost_value() {
        for levels in [0, 1, 2, 7, 160] {
            assert!(nested(levels).nests_within(levels));
            assert!(levels == 0 || !nested(levels).nests_within(levels - 1));
        }
        assert!(Value::from(Vec::new()).nests_within(1) && !Value::from(Vec::new()).nests_within(0));
    }

    #[test]
    fn a_list_that_collects_single_values_counts_as_one_level_of_depth() {
        let refused = |levels, fold| {
            let mut violations = Violations::default();
            check_field(&nested(levels), fold, "/payload/f", &mut violations);
            violations.into_vec().pop().map(|violation| violation.message)
        };
        // The outermost value is a list if the number of levels is odd, and an object if the number is even.
        assert_eq!(refused(159, Fold::Last), None);
        assert_eq!(refused(160, Fold::Last).as_deref(), Some("nested more than 159 levels deep"));
        assert_eq!(refused(159, Fold::Append), None);
        assert_eq!(refused(158, Fold::Union), None);
        assert_eq!(refused(160, Fold::Union).as_deref(), Some("nested more than 158 levels deep"));
    }

    #[test]
    fn into_json_returns_the_same_values_as_writing_and_reading_json() {
        let list = Value::from(vec![Value::Date(0), Value::Double(f64::INFINITY), Value::Double(-0.0), Value::Int(1)]);
        let object = Object::from_iter([("a", list), ("b", Value::Null)]);
        let text = json::text(&Value::from(object.clone()));
        let read = json::parse(text.as_bytes()).expect("JSON");
        assert_eq!(format!("{:?}", Value::from(object.into_json())), format!("{read:?}"));
    }

    #[test]
    fn the_deepest_stored_value_fits_a_small_stack_and_deeper_values_are_rejected() {
        let work = || {
            let value = nested(json::MAX_STORED_DEPTH);
            let text = json::text(&value);
            let read = json::parse_stored(text.as_bytes()).expect("JSON");
            assert!(read == value && read.is_json() && !read.nests_within(json::MAX_STORED_DEPTH - 1));
            assert_eq!(read.size_bytes(), value.size_bytes());
            assert!(json::parse_stored(json::text(&nested(json::MAX_STORED_DEPTH + 1)).as_bytes()).is_err());
            assert!(json::parse(json::text(&nested(json::MAX_DEPTH + 1)).as_bytes()).is_err());
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread").join().expect("no overflow");
    }
}
