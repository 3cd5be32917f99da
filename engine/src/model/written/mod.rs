//! Written forms of numbers. A written form is the original JSON text of an integer outside the range of signed 64-bit
//! integers, or of a number with more digits than a double represents. The value in an object is the nearest double. An
//! object of the log also keeps the written form.

mod decimal;
mod fields;
pub mod numbers;
mod scan;

use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::json;
use super::value::{Object, Value};
use decimal::Decimal;
pub use fields::{WrittenFields, replaced_at};
use numbers::{NumberPlaces, Numbers, WrittenNumber, inside};
pub use scan::{is_likely_in, numbers_of, numbers_of_fields};

/// Reads an object with the written forms of its numbers. Returns `None` if the text is not an object, or nests deeper
/// than stored texts may.
pub fn read(text: &str) -> Option<Object> {
    let object = match json::parse_stored(text.as_bytes()).ok()? {
        Value::Object(object) => std::sync::Arc::unwrap_or_clone(object),
        _ => return None,
    };
    Some(with_numbers_of(object, text))
}

/// Adds the written forms of the numbers in a text to the object that was parsed from the text. Every object of a
/// request or an import that may become the payload or the metadata of an event passes through this function.
pub fn with_numbers_of(object: Object, text: &str) -> Object {
    if is_likely_in(text.as_bytes()) { object.with_numbers(numbers_of(text)) } else { object }
}

/// Serializes an object with the written forms of its numbers.
pub(super) fn serialize<S: Serializer>(object: &Object, numbers: &Numbers, serializer: S) -> Result<S::Ok, S::Error> {
    let mut numbers = NumberPlaces::new(Some(numbers));
    let fields = object.iter().enumerate();
    serializer.collect_map(
        fields.map(|(place, (name, value))| (&**name, SpelledValue { value, number: numbers.next(place) })),
    )
}

/// A value that is serialized with the written forms of its numbers.
struct SpelledValue<'v> {
    value: &'v Value,
    number: Option<&'v WrittenNumber>,
}

impl Serialize for SpelledValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.number) {
            // The value may have been replaced after the number was read.
            (Value::Double(double), Some(WrittenNumber::Text(text))) if text.parse() == Ok(*double) => {
                match RawValue::from_string(text.to_string()) {
                    Ok(raw) => raw.serialize(serializer),
                    Err(_) => self.value.serialize(serializer),
                }
            }
            (Value::Array(items), number @ Some(WrittenNumber::Inside(_))) => {
                let mut numbers = NumberPlaces::inside(number);
                let spelled = |(place, value)| SpelledValue { value, number: numbers.next(place) };
                serializer.collect_seq(items.iter().enumerate().map(spelled))
            }
            (Value::Object(object), Some(WrittenNumber::Inside(numbers))) => {
                self::serialize(object, numbers, serializer)
            }
            _ => self.value.serialize(serializer),
        }
    }
}

/// Returns whether two objects are equal. Compares numbers by the exact values of their written forms. `1.50` equals
/// `1.5`. Two different integers that do not fit in 64 bits are different even if their nearest double is the same.
pub fn is_same(a: &Object, b: &Object) -> bool {
    a == b && ((a.numbers().is_none() && b.numbers().is_none()) || fields_are_same((a, a.numbers()), (b, b.numbers())))
}

fn fields_are_same(a: (&Object, Option<&Numbers>), b: (&Object, Option<&Numbers>)) -> bool {
    let (mut of_a, mut of_b) = (NumberPlaces::new(a.1), NumberPlaces::new(b.1));
    let mut fields = a.0.iter().zip(b.0.iter()).enumerate();
    fields.all(|(place, ((_, a), (_, b)))| are_same((a, of_a.next(place)), (b, of_b.next(place))))
}

/// Returns whether two equal values stay equal if their numbers are compared by the exact values of their written
/// forms.
fn are_same(a: (&Value, Option<&WrittenNumber>), b: (&Value, Option<&WrittenNumber>)) -> bool {
    if a.1.is_none() && b.1.is_none() {
        return true;
    }
    match (a.0, b.0) {
        (Value::Array(items_a), Value::Array(items_b)) => {
            let (mut of_a, mut of_b) = (NumberPlaces::inside(a.1), NumberPlaces::inside(b.1));
            let mut items = items_a.iter().zip(items_b.iter()).enumerate();
            items.all(|(place, (a, b))| are_same((a, of_a.next(place)), (b, of_b.next(place))))
        }
        (Value::Object(object_a), Value::Object(object_b)) => {
            fields_are_same((object_a, inside(a.1)), (object_b, inside(b.1)))
        }
        _ => decimal_of(a) == decimal_of(b),
    }
}

fn decimal_of((value, number): (&Value, Option<&WrittenNumber>)) -> Option<Decimal> {
    match (value, number) {
        (_, Some(WrittenNumber::Text(text))) => Some(Decimal::of(text)),
        (Value::Int(int), _) => Some(Decimal::of(&int.to_string())),
        (Value::Double(double), _) => Some(Decimal::of_double(*double)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Object {
        super::read(text).expect("an object")
    }

    #[test]
    fn only_integers_beyond_64_bits_and_numbers_with_too_many_digits_are_serialized_as_written() {
        let exact = [
            r#"{"id":18446744073709551616}"#,
            r#"{"id":9223372036854775808,"next":-9223372036854775809}"#,
            r#"{"id":100000000000000000000}"#,
            r#"{"a":[1,[12345678901234567890],{"b":{"c":[0.1000000000000000055]},"d":99999999999999999999}],"e":1}"#,
            r#"{"text":"18446744073709551616 \" {[","\"":18446744073709551616}"#,
            r#"{"long":3.14159265358979323846264338327950288,"small":1.2345678901234567890123e-7}"#,
        ];
        for text in exact {
            assert_eq!(json::text(&read(text)), text);
        }
        let shortened = [
            (r#"{ "id" : 18446744073709551616 , "b" : [ ] }"#, r#"{"id":18446744073709551616,"b":[]}"#),
            (
                r#"{"a":1,"b":9223372036854775808,"a":9223372036854775809}"#,
                r#"{"a":9223372036854775809,"b":9223372036854775808}"#,
            ),
            (r#"{"a":[18446744073709551616],"a":1}"#, r#"{"a":1}"#),
            (r#"{"\u0061":9223372036854775808,"a":2.5}"#, r#"{"a":2.5}"#),
            (r#"{"a":1.50000000000000000}"#, r#"{"a":1.5}"#),
            (
                r#"{"a":9223372036854775807,"b":-9223372036854775808}"#,
                r#"{"a":9223372036854775807,"b":-9223372036854775808}"#,
            ),
        ];
        for (text, expected) in shortened {
            assert_eq!(json::text(&read(text)), expected);
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_read_as_doubles_and_keep_their_written_text() {
        let object = read(r#"{"id":18446744073709551616,"in":[18446744073709551616]}"#);
        assert_eq!(object.get("id"), Some(&Value::Double(18_446_744_073_709_551_616.0)));
        assert_eq!(object.written_at(0).text(), Some("18446744073709551616"));
        assert_eq!(json::text(&object.rounded()), r#"{"id":1.8446744073709552e+19,"in":[1.8446744073709552e+19]}"#);
    }

    #[test]
    fn removing_a_field_discards_all_written_numbers_of_the_object() {
        let mut object = read(r#"{"a":18446744073709551616,"b":18446744073709551617}"#);
        object.insert("a", 1.5);
        object.insert("c", 2);
        assert_eq!(json::text(&object), r#"{"a":1.5,"b":18446744073709551617,"c":2}"#);
        object.remove("a");
        assert_eq!(json::text(&object), r#"{"b":1.8446744073709552e+19,"c":2}"#);
    }

    #[test]
    fn objects_are_compared_by_the_exact_values_of_their_written_numbers() {
        let same = [
            (r#"{"a":18446744073709551616}"#, r#"{"a":18446744073709551616}"#),
            (r#"{"a":18446744073709551616}"#, r#"{"a":18446744073709551616.0}"#),
            (r#"{"a":100000000000000000000}"#, r#"{"a":1e20}"#),
            (r#"{"a":1.5000000000000000000}"#, r#"{"a":1.5}"#),
            (r#"{"a":[{"b":0.10000000000000000550}]}"#, r#"{"a":[{"b":0.1000000000000000055}]}"#),
        ];
        for (a, b) in same {
            assert!(is_same(&read(a), &read(b)), "{a} {b}");
        }
        let different = [
            (r#"{"a":18446744073709551616}"#, r#"{"a":18446744073709551617}"#),
            (r#"{"a":18446744073709551616}"#, r#"{"a":1.8446744073709552e19}"#),
            (r#"{"a":[{"b":0.1000000000000000055}]}"#, r#"{"a":[{"b":0.1}]}"#),
            (r#"{"a":[{"b":-9223372036854775809}]}"#, r#"{"a":[{"b":-9223372036854775810}]}"#),
        ];
        for (a, b) in different {
            assert!(!is_same(&read(a), &read(b)), "{a} {b}");
            assert!(!is_same(&read(b), &read(a)), "{b} {a}");
        }
    }
}
