//! Checks that the sum in an integer or decimal field with `Fold::Sum` stays in the range of the field's type. A sum
//! outside the range would become a double and lose digits.

use super::aggregate::Aggregate;
use super::decimal::Decimal;
use super::definition::{Definition, FieldType, Fold};
use super::value::{Object, Value};
use super::violation::{Violation, Violations};

/// The first double above all 64-bit integers.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// Checks the sums that an event changes. `before` is the aggregate before the event, and `after` is the state of the
/// aggregate after the event. Accepts a sum that was outside the range of its type before the event.
pub fn check(
    payload: &Object,
    before: Option<&Aggregate>,
    after: &Object,
    definition: &Definition,
) -> Result<(), Vec<Violation>> {
    let mut wrong = Violations::default();
    for field in payload.iter().filter_map(|(name, _)| definition.field(name)).filter(|field| field.fold == Fold::Sum) {
        let is_beyond = |sum: &Value| match (field.field_type, sum) {
            (FieldType::Integer, Value::Double(sum)) => sum.abs() >= BEYOND,
            (FieldType::Decimal, sum) => matches!(sum, Value::Double(_)),
            _ => false,
        };
        let previous = before.and_then(|before| before.state.get(&field.name));
        if after.get(&field.name).is_some_and(is_beyond) && !previous.is_some_and(is_beyond) {
            let range = match field.field_type {
                FieldType::Decimal => format!("decimals, {} to {}", Decimal::MIN, Decimal::MAX),
                _ => format!("integers, {} to {}", i64::MIN, i64::MAX),
            };
            let message = format!("the sum of the field would be outside the range of {range}");
            wrong.add(format!("/payload/{}", field.name), message);
        }
    }
    wrong.finish(())
}

#[cfg(test)]
mod tests {
    use super::super::decimal;
    use super::super::definition::Field;
    use super::super::event::Event;
    use super::super::fold::StreamFold;
    use super::*;

    fn is_refused(field_type: FieldType, before: impl Into<Value>, added: impl Into<Value>) -> bool {
        let sum = Field { fold: Fold::Sum, ..Field::new("n", field_type) };
        let definition = Definition::new("thing", "", Vec::new(), vec![sum]);
        let (before, added): (Value, Value) = (before.into(), added.into());
        let before = Aggregate::sample("thing", "a", Object::from_iter([("n", before)]));
        let payload = Object::from_iter([("n", added)]);
        let event = Event { payload: payload.clone().into(), ..Event::sample("a", "thing.changed", 2) };
        let mut folding = StreamFold::from(before.clone());
        folding.fold(&event, &definition);
        check(&payload, Some(&before), &folding.into_aggregate().state, &definition).is_err()
    }

    #[test]
    fn a_sum_beyond_64_bits_is_rejected() {
        let is_refused = |before: i64, added: Value| is_refused(FieldType::Integer, before, added);
        assert!(is_refused(i64::MAX, Value::Int(1)) && is_refused(i64::MIN, Value::Int(-1)));
        assert!(is_refused(i64::MAX, Value::Double(1e18)));
        for added in [Value::Int(0), Value::Int(-1), Value::Double(-1e18)] {
            assert!(!is_refused(i64::MAX, added));
        }
        assert!(!is_refused(1, Value::Double(2.0)));
    }

    #[test]
    fn a_sum_with_too_many_digits_for_a_decimal_is_rejected() {
        let largest = Value::Decimal(decimal::parse("79228162514264337593543950335").expect("a decimal"));
        let is_refused = |before: &Value, added: &str| is_refused(FieldType::Decimal, before.clone(), added);
        assert!(is_refused(&largest, "1") && !is_refused(&largest, "0") && !is_refused(&largest, "-1"));
        // A sum that an earlier version of the program has rounded does not block the aggregate.
        assert!(!is_refused(&Value::Double(8e28), "1"));
    }
}
