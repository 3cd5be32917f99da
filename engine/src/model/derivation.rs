//! The derivation of an event: a mark in the metadata of an event that a plugin derived from another event.
//!
//! The mark describes the event, not its actor. The mark stays when another caller exports the event and appends it to
//! another log.

use std::sync::Arc;

use super::event::Event;
use super::value::{Object, Value};

/// The maximum length of a chain of events that plugins derive from each other.
pub const MAX_DEPTH: i64 = 8;

const SOURCE: &str = "source";
const PLUGIN: &str = "plugin";
const CAUSED_BY: &str = "caused_by";
const DEPTH: &str = "depth";

/// The origin of a derived event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derivation<'a> {
    pub plugin: &'a str,
    /// The id of the event from which the plugin derived this event.
    pub caused_by: &'a str,
    /// The length of the chain of derived events that ends with this event, from 1 to [`MAX_DEPTH`].
    pub depth: i64,
}

impl<'a> Derivation<'a> {
    /// Returns the derivation that the metadata of an event describes, or `None` if the description is incomplete or
    /// its depth is below 1. Clients can write any depth, so a depth above [`MAX_DEPTH`] is lowered to this maximum.
    pub fn of(metadata: &'a Object) -> Option<Derivation<'a>> {
        let depth = metadata.get(DEPTH).and_then(Value::as_int).filter(|depth| *depth >= 1)?;
        (metadata.text(SOURCE)? == PLUGIN).then_some(())?;
        let (plugin, caused_by) = (metadata.text(PLUGIN)?, metadata.text(CAUSED_BY)?);
        Some(Derivation { plugin, caused_by, depth: depth.min(MAX_DEPTH) })
    }

    /// Returns whether the same plugin derived both events from the same event.
    pub fn is_same_step(self, other: Derivation<'_>) -> bool {
        self.plugin == other.plugin && self.caused_by == other.caused_by
    }
}

/// Returns the length of the chain of derived events that ends with this event. Returns 0 if no plugin derived the
/// event.
pub fn depth_of(event: &Event) -> i64 {
    Derivation::of(&event.metadata).map_or(0, |derivation| derivation.depth)
}

/// Returns the metadata for an event that a plugin derives from `event`.
pub fn caused_by(event: &Event, plugin: &Arc<str>) -> Object {
    Object::from_iter([
        (SOURCE, Value::from(PLUGIN)),
        (PLUGIN, plugin.clone().into()),
        (CAUSED_BY, event.event_id.clone().into()),
        (DEPTH, (depth_of(event) + 1).into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<i64> {
        let metadata: Value = serde_json::from_str(text).expect("JSON");
        Derivation::of(metadata.as_object().expect("an object")).map(|derivation| derivation.depth)
    }

    #[test]
    fn only_complete_and_valid_plugin_metadata_marks_a_derived_event() {
        let mark =
            |depth: &str| format!(r#"{{"source": "plugin", "plugin": "p", "caused_by": "e", "depth": {depth}}}"#);
        assert_eq!(read(&mark("3")), Some(3));
        assert_eq!(read(&mark("9223372036854775807")), Some(MAX_DEPTH));
        for depth in ["0", "-5", "1.5", "\"3\"", "null"] {
            assert_eq!(read(&mark(depth)), None, "{depth}");
        }
        // A client's own metadata may also have a field `depth`.
        assert_eq!(read(r#"{"depth": 8}"#), None);
        assert_eq!(read(r#"{"source": "crawler", "plugin": "p", "caused_by": "e", "depth": 8}"#), None);
    }
}
