//! Finds a name that one object of a JSON text has twice. A parser would keep one of the two values and drop the other.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::MAX_DEPTH;
use super::violation::{ValueLocation, Violation};

/// The number of levels that are searched. The envelope around a value of the maximum depth adds a few levels.
const MAX_LEVELS: usize = MAX_DEPTH + 16;
/// The maximum number of names of an object that are kept in a list and compared one by one. All further names of the
/// object are kept in a set.
const FEW: usize = 16;
/// The maximum length of the pointer to a repeated name, in bytes, without the `…` that marks a cut.
const MAX_POINTER_BYTES: usize = 1_024;

/// Returns the violation for the first name that an object of the text has twice. Returns `None` if no name is
/// repeated. The search ends where the text is not JSON or nests more than [`MAX_LEVELS`] levels deep, and does not
/// compare later names. The parsers of values reject such a text, but a parser of raw JSON accepts any depth.
pub fn repeated_name(text: &[u8]) -> Option<Violation> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    // `Names` counts the levels.
    reader.disable_recursion_limit();
    let found = RefCell::new(None);
    let names = Names { place: &ValueLocation::At(""), levels_left: MAX_LEVELS, found: &found };
    // The search ends with an error if a name is repeated or the text is not JSON.
    names.deserialize(&mut reader).err()?;
    let pointer = found.take()?;
    Some(Violation { pointer, message: "the name is given twice in one object".to_owned() })
}

/// Compares the names in every object inside a value.
#[derive(Clone, Copy)]
struct Names<'s> {
    place: &'s ValueLocation<'s>,
    levels_left: usize,
    /// The JSON pointer of the repeated name.
    found: &'s RefCell<Option<String>>,
}

impl<'s> Names<'s> {
    fn inside<'i, E: serde::de::Error>(self, place: &'i ValueLocation<'i>) -> Result<Names<'i>, E>
    where
        's: 'i,
    {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Names { place, levels_left, found: self.found }),
            None => Err(E::custom("nested too deeply")),
        }
    }
}

/// Defines visitor functions that accept scalars. Scalars contain no names, so these functions check nothing.
macro_rules! accept {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        })+
    };
}

impl<'de> DeserializeSeed<'de> for Names<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    accept!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let place = ValueLocation::Item(self.place, index);
            if items.next_element_seed(self.inside(&place)?)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut few: Vec<Cow<'de, str>> = Vec::new();
        let mut many: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Name(name)) = fields.next_key()? {
            let place = ValueLocation::Field(self.place, &name);
            if few.contains(&name) || many.contains(&name) {
                fields.next_value::<IgnoredAny>()?;
                self.found.replace(Some(cut(place.to_string())));
                return Err(A::Error::custom("a name is repeated"));
            }
            fields.next_value_seed(self.inside(&place)?)?;
            if few.len() < FEW {
                few.push(name);
            } else {
                many.insert(name);
            }
        }
        Ok(())
    }
}

/// Cuts a pointer, because the names in the pointer can be very long.
fn cut(mut pointer: String) -> String {
    if pointer.len() > MAX_POINTER_BYTES {
        pointer.truncate(pointer.floor_char_boundary(MAX_POINTER_BYTES));
        pointer.push('…');
    }
    pointer
}

/// A name. The name is borrowed from the text, unless the name contains an escape.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Option<String> {
        repeated_name(text.as_bytes()).map(|violation| violation.pointer)
    }

    #[test]
    fn a_repeated_name_is_found_at_any_depth() {
        assert_eq!(pointer(r#"{"a": 1, "a": 2}"#).as_deref(), Some("/a"));
        assert_eq!(pointer(r#"{"a": 1, "\u0061": {"deep": [1]}}"#).as_deref(), Some("/a"));
        assert_eq!(pointer(r#"{"a": [{"x": 1}, {"x/y": 1, "x/y": 2}]}"#).as_deref(), Some("/a/1/x~1y"));
        assert_eq!(pointer(r#"{"a": {"a": {"b": 1.5, "c": null, "b": true}}}"#).as_deref(), Some("/a/a/b"));
        assert_eq!(pointer(r#"[{"a": 1}, {"a": -1}, "a", "a"]"#), None);
        assert_eq!(pointer(r#"{"a": {"a": {"a": 1}}}"#), None);
    }

    #[test]
    fn a_repeated_name_is_found_among_many_names() {
        let fields: Vec<String> = (0..100).map(|index| format!("\"n{index}\": 1")).collect();
        assert_eq!(pointer(&format!("{{{}}}", fields.join(","))), None);
        assert_eq!(pointer(&format!("{{{}, \"n99\": 1}}", fields.join(","))).as_deref(), Some("/n99"));
        assert_eq!(pointer(&format!("{{{}, \"n3\": 1}}", fields.join(","))).as_deref(), Some("/n3"));
    }

    #[test]
    fn malformed_json_is_not_reported_as_a_repeated_name() {
        assert_eq!(pointer(r#"{"a": 1, "a"#), None);
        assert_eq!(pointer(r#"{"a": }"#), None);
        assert_eq!(pointer(&"[".repeat(100_000)), None);
        assert_eq!(pointer(&"{\"a\":".repeat(100_000)), None);
    }
}
