//! Checks that the sums of integer fields stay integers. A sum that does not fit in 64 bits would become a double, and
//! lose digits.

use super::aggregate::Aggregate;
use super::definition::{Definition, Field, FieldType, Fold};
use super::value::{Object, Value};
use super::violation::{Violation, Violations};

/// The first double above all 64-bit integers.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// Checks the sums to which an event adds. `before` is the aggregate before the event, and `after` is the state of the
/// aggregate with the event. Accepts a sum that was outside the range of integers before the event.
pub fn check(
    payload: &Object,
    before: Option<&Aggregate>,
    after: &Object,
    definition: &Definition,
) -> Result<(), Vec<Violation>> {
    let mut wrong = Violations::default();
    let is_sum = |field: &&Field| field.fold == Fold::Sum && field.field_type == FieldType::Integer;
    for field in payload.iter().filter_map(|(name, _)| definition.field(name)).filter(is_sum) {
        let Some(Value::Double(sum)) = after.get(&field.name) else { continue };
        let previous = before.and_then(|before| before.state.get(&field.name));
        let was_beyond = matches!(previous, Some(Value::Double(previous)) if previous.abs() >= BEYOND);
        if sum.abs() >= BEYOND && !was_beyond {
            let (least, most) = (i64::MIN, i64::MAX);
            let message = format!("the sum of the field would be outside the range of integers, {least} to {most}");
            wrong.add(format!("/payload/{}", field.name), message);
        }
    }
    wrong.finish(())
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::super::fold::StreamFold;
    use super::*;

    fn is_refused(before: i64, added: impl Into<Value>) -> bool {
        let sum = Field { fold: Fold::Sum, ..Field::new("n", FieldType::Integer) };
        let definition = Definition::new("thing", "", Vec::new(), vec![sum]);
        let before = Aggregate::sample("thing", "a", Object::from_iter([("n", before)]));
        let payload = Object::from_iter([("n", added.into())]);
        let event = Event { payload: payload.clone().into(), ..Event::sample("a", "thing.changed", 2) };
        let mut folding = StreamFold::from(before.clone());
        folding.fold(&event, &definition);
        check(&payload, Some(&before), &folding.into_aggregate().state, &definition).is_err()
    }

    #[test]
    fn a_sum_beyond_64_bits_is_refused() {
        assert!(is_refused(i64::MAX, 1) && is_refused(i64::MIN, -1) && is_refused(i64::MAX, 1e18));
        assert!(
            !is_refused(i64::MAX, 0)
                && !is_refused(i64::MAX, -1)
                && !is_refused(1, 2.0)
                && !is_refused(i64::MAX, -1e18)
        );
    }
}
