//! The lines of a segment: events and type definitions, in the order of the log.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::model::json;
use crate::model::value::Value;
use crate::store::workspace::body;
use crate::store::workspace::definitions::PastDefinition;

/// The first bytes of the line of an event.
const EVENT_BEGIN: &[u8] = b"{\"aggregate_id\":";

/// A line of a segment.
#[derive(Debug)]
pub enum ArchiveLine {
    /// A definition of a type, which applies after the event at `position`.
    Definition {
        position: u64,
        declaration: Value,
        /// The time at which the definition was archived, in milliseconds since 1970.
        at: i64,
    },
    Event(Event),
}

/// The JSON of a line. A definition and an event have different fields.
#[derive(Default, Deserialize, Serialize)]
struct LineText<'t> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    definition: Option<&'t RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    aggregate_id: Option<Cow<'t, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    position: u64,
    #[serde(default)]
    at: i64,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    event: Option<&'t RawValue>,
}

/// Appends the line of a definition. Appends nothing if the stored definition is not JSON, because no restore could
/// read the line. Returns whether a line was appended.
pub fn write_definition(definition: &PastDefinition, at: i64, lines: &mut Vec<u8>) -> bool {
    let Ok(declaration) = serde_json::from_str::<&RawValue>(&definition.text) else { return false };
    let text = LineText { definition: Some(declaration), position: definition.position, at, ..LineText::default() };
    append(lines, |lines| {
        serde_json::to_writer(&mut *lines, &text)?;
        lines.write_all(b"\n")
    })
}

/// Appends the line of an event. Returns whether a line was appended.
pub fn write_event(event: &Event, lines: &mut Vec<u8>) -> bool {
    let Ok(body) = body::write(event) else { return false };
    // The body is JSON already. Only the fields around it are serialized.
    append(lines, |lines| {
        lines.write_all(EVENT_BEGIN)?;
        serde_json::to_writer(&mut *lines, event.aggregate_id.as_str())?;
        writeln!(lines, ",\"version\":{},\"position\":{},\"event\":{body}}}", event.version, event.position)
    })
}

/// Appends the line that `write` writes. Appends nothing if `write` fails. Returns whether a line was appended.
fn append(lines: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> bool {
    let begin = lines.len();
    let is_written = write(lines).is_ok();
    if !is_written {
        lines.truncate(begin);
    }
    is_written
}

/// Returns whether a line is an event, without parsing the line.
pub fn is_event(line: &[u8]) -> bool {
    line.starts_with(EVENT_BEGIN)
}

/// Reads a line. Returns an error message if the line is invalid.
pub fn read(line: &[u8]) -> Result<ArchiveLine, String> {
    let text: LineText<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match text {
        LineText { definition: Some(declaration), position, at, .. } => {
            let declaration = json::parse_stored(declaration.get().as_bytes());
            Ok(ArchiveLine::Definition { position, declaration: declaration.map_err(|error| error.to_string())?, at })
        }
        LineText { aggregate_id: Some(aggregate_id), version: Some(version), position, event: Some(body), .. } => {
            let event = body::read(body.get(), None, AggregateId::from(Arc::from(aggregate_id)), version, position);
            event.map(ArchiveLine::Event).map_err(|error| error.to_string())
        }
        _ => Err("expected a definition or an event".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Object;

    #[test]
    fn only_valid_events_and_definitions_are_written_and_read_back() {
        let mut lines = Vec::new();
        let payload = Object::from_iter([("z", Value::from("line\nbreak")), ("a", Value::Int(i64::MAX))]);
        let event = Event { payload: Arc::new(payload), recorded_at: 7, ..Event::sample("a/1", "note.created", 3) };
        let definition = PastDefinition {
            position: 2,
            type_name: "note".into(),
            text: r#"{"type_name":"note"}"#.into(),
            revision: 1,
        };
        assert!(write_definition(&definition, 9, &mut lines) && write_event(&event, &mut lines));
        let damaged = PastDefinition { text: "{".into(), ..definition };
        assert!(!write_definition(&damaged, 9, &mut lines));
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 2);
        assert!(!is_event(lines[0]) && is_event(lines[1]));
        assert!(matches!(read(lines[0]), Ok(ArchiveLine::Definition { position: 2, at: 9, .. })));
        let Ok(ArchiveLine::Event(found)) = read(lines[1]) else { panic!("the second line is not an event") };
        assert_eq!(found, event);
        assert!(read(b"{\"position\":1}").is_err() && read(b"[]").is_err());
    }
}
