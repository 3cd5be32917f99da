//! The syntax of ids and of type names, and the position of an event in the log as a part of the event's id.

use std::fmt;
use std::sync::Arc;

use uuid::{Builder, Uuid};

/// The maximum length of an id that a client chooses, in bytes.
pub const MAX_ID_LENGTH: usize = 128;

/// The form of ids, for messages about an invalid id.
pub const ID_FORM: &str = "a letter or digit, then up to 127 letters, digits, '.', '_', ':' and '-'";
/// The form of the names of types and traits, for messages about an invalid name.
pub const NAME_FORM: &str = "a lower-case letter, then up to 63 of the characters a-z, 0-9, '_' and '-'";

/// Returns whether a client may use `text` as an id: `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`.
pub fn is_valid_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= MAX_ID_LENGTH
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'))
}

/// Returns whether `text` is a valid name of an aggregate type or a trait: `[a-z][a-z0-9_-]{0,63}`.
pub fn is_valid_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}

/// The id of an aggregate. The id is also the name of the aggregate's stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateId(Arc<str>);

impl AggregateId {
    /// Returns the id with this text, or `None` if the text is not a valid id.
    pub fn parse(text: &str) -> Option<AggregateId> {
        is_valid_id(text).then(|| AggregateId(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text of the id. The result shares the memory of the id.
    pub fn text(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl From<Uuid> for AggregateId {
    fn from(id: Uuid) -> AggregateId {
        AggregateId(id.to_string().into())
    }
}

impl From<Arc<str>> for AggregateId {
    /// Creates an id from a text without checking the text. The text must be a valid id, such as an id from the log.
    fn from(text: Arc<str>) -> AggregateId {
        AggregateId(text)
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for AggregateId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The number of bits of an event id that contain the event's position in the workspace's log.
const POSITION_BITS: u32 = 40;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

/// Returns the id of a new event: a UUIDv7 whose last 40 bits are the event's position.
///
/// The position makes it possible to find an event by its id without an index of all ids.
pub fn event_id(now_ms: i64, position: u64, random: u64) -> Uuid {
    let mut tail = [0u8; 10];
    tail[..2].copy_from_slice(&(random as u16).to_be_bytes());
    let low = (random & !POSITION_MASK) | (position & POSITION_MASK);
    tail[2..].copy_from_slice(&low.to_be_bytes());
    Builder::from_unix_timestamp_millis(now_ms.max(0) as u64, &tail).into_uuid()
}

/// Returns the position in an id that [`event_id`] generated, or `None` for ids of another form. Clients can choose an
/// id of the same form, so the event at the position may have another id.
pub fn position_hint(event_id: &str) -> Option<u64> {
    let id = Uuid::try_parse(event_id).ok().filter(|id| id.get_version_num() == 7)?;
    let low = u64::from_be_bytes(id.as_bytes()[8..].try_into().ok()?);
    Some(low & POSITION_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_contains_its_position() {
        let id = event_id(1_700_000_000_000, 7_335, u64::MAX);
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(position_hint(&id.to_string()), Some(7_335));
        assert_eq!(position_hint("not-a-uuid"), None);
    }

    #[test]
    fn ids_are_limited_in_length_and_characters() {
        assert!(is_valid_id("rfc-0591"));
        assert!(is_valid_id("a:b.c_d-e"));
        assert!(!is_valid_id(""));
        assert!(!is_valid_id("-a"));
        assert!(!is_valid_id("a/b"));
        assert!(!is_valid_id(&"x".repeat(129)));
    }
}
