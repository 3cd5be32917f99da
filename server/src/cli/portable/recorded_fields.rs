//! The fields that the log sets when an event is appended: the actor, the time and the version. An export contains
//! these fields. An import into a store keeps the exported actor and time. The version of an imported event is the next
//! version of its stream, which must not exceed the exported version.

use std::borrow::Cow;

use anyhow::{Context, bail, ensure};
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::{NewEvent, OriginalRecord, StreamExpectation};
use foldwork_engine::model::json;
use foldwork_engine::model::value::Object;
use foldwork_engine::model::written::with_numbers_of;
use serde::Deserialize;

use crate::cli::event::PortableEvent;

/// The maximum length of the name of an actor in bytes.
const MAX_ACTOR: usize = 200;

/// The fields of an exported event that are not part of [`PortableEvent`].
#[derive(Deserialize)]
pub struct RecordedFields<'a> {
    #[serde(borrow, default)]
    actor: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    recorded_at: Option<Cow<'a, str>>,
    version: Option<u64>,
    /// Whether the export's folder of files contains the bytes that the event refers to.
    #[serde(default)]
    pub bytes: bool,
}

/// Returns the event to append for a line. An event of an export keeps its actor and its time, and is rejected if
/// another event of the stream already has the exported version.
pub fn new_event(event: PortableEvent<'_>, kept: RecordedFields<'_>) -> anyhow::Result<NewEvent> {
    let time = |name: &str, text: Cow<'_, str>| {
        parse_date(&text)
            .with_context(|| format!("{name}: expected a time like 2026-01-31T09:30:00.000Z, got '{text:.40}'"))
    };
    let recorded = match (kept.actor, kept.recorded_at) {
        (Some(actor), Some(at)) => {
            ensure!(
                !actor.is_empty() && actor.len() <= MAX_ACTOR && !actor.chars().any(char::is_control),
                "actor: expected 1 to {MAX_ACTOR} bytes without control characters"
            );
            Some(OriginalRecord { actor: actor.into(), at: time("recorded_at", at)? })
        }
        (None, None) => None,
        _ => bail!("`actor` and `recorded_at`: expected both or neither"),
    };
    let expected = match (&recorded, kept.version) {
        (Some(_), Some(version)) => StreamExpectation::Below(version),
        _ => StreamExpectation::Any,
    };
    Ok(NewEvent {
        aggregate_id: event.aggregate_id.into_owned(),
        aggregate_type: event.aggregate_type.into_owned(),
        event_type: event.event_type.into_owned(),
        project: event.project_id.map(Cow::into_owned),
        payload: object("payload", event.payload.get())?,
        metadata: event.metadata.map(|metadata| object("metadata", metadata.get())).transpose()?.unwrap_or_default(),
        event_id: event.event_id.map(Cow::into_owned),
        expected,
        occurred_at: event.occurred_at.map(|at| time("occurred_at", at)).transpose()?,
        restore: event.restore.unwrap_or_default(),
        renames_slug: true,
        recorded,
        ..NewEvent::default()
    })
}

fn object(name: &str, text: &str) -> anyhow::Result<Object> {
    let value = json::parse_stored(text.as_bytes()).with_context(|| name.to_owned())?;
    let object = value.as_object().cloned().with_context(|| format!("{name}: expected an object"))?;
    Ok(with_numbers_of(object, text))
}
