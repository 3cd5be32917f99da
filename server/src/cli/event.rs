//! The event format of import and export, which is one JSON object per line, and the ids of events without an
//! `event_id`.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::{Context, bail, ensure};
use foldwork_engine::model::duplicate_names::repeated_name;
use foldwork_engine::model::violation::Violation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The namespace of ids for lines without an `event_id`. With another namespace, repeated imports would append the
/// events of these lines a second time.
const LINE_NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_0c3a_5b7e_4d21_9a48_e2c6_71b0_93f5);

/// An event to append. The payload and the metadata are kept as JSON text.
#[derive(Debug, Deserialize, Serialize)]
pub struct PortableEvent<'a> {
    #[serde(borrow)]
    pub aggregate_id: Cow<'a, str>,
    #[serde(borrow)]
    pub aggregate_type: Cow<'a, str>,
    #[serde(borrow)]
    pub event_type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub payload: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Cow<'a, str>>,
    /// Whether the event restores a deleted aggregate. Export sets this flag on the first event of an aggregate after
    /// its deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<bool>,
}

/// The generator of ids for events without an id. An id is derived from the event and the event's number in its stream,
/// so every import of a file assigns the same ids, and equal lines have different ids.
#[derive(Debug, Default)]
pub struct LineIds {
    /// Maps a digest of each stream's id to the number of the stream's events so far. The digest takes less memory than
    /// the id.
    ordinals: HashMap<u128, u64>,
}

impl<'a> PortableEvent<'a> {
    /// Parses an event from one line of JSON.
    pub fn parse(line: &'a str) -> anyhow::Result<Self> {
        if let Some(Violation { pointer, message }) = repeated_name(line.as_bytes()) {
            bail!("{pointer}: {message}");
        }
        let event: Self = serde_json::from_str(line)?;
        ensure!(!event.aggregate_id.is_empty(), "`aggregate_id` is empty");
        ensure!(event.payload.get().starts_with('{'), "`payload` is not an object");
        ensure!(event.metadata.is_none_or(|metadata| metadata.get().starts_with('{')), "`metadata` is not an object");
        Ok(event)
    }

    /// Returns the event as one line of JSON, without a line break.
    pub fn to_json(&self) -> anyhow::Result<String> {
        serde_json::to_string(self).context("the event cannot be written as JSON")
    }

    /// Returns the event as JSON for a request that appends the event. The request accepts any version of the
    /// aggregate, because an import repeats the events of another log.
    pub fn to_request(&self) -> anyhow::Result<String> {
        let mut json = self.to_json()?;
        // The JSON is an object with fields, so it ends with a brace after a value.
        json.truncate(json.len().saturating_sub(1));
        json.push_str(r#","expected_version":"any"}"#);
        Ok(json)
    }

    /// Returns the SHA-256, in hexadecimal, of the event's JSON with sorted fields and without white space.
    fn digest(&self) -> anyhow::Result<String> {
        let mut canonical = serde_json::to_value(self)?;
        canonical.sort_all_objects();
        let mut hasher = Sha256::new();
        serde_json::to_writer(&mut hasher, &canonical)?;
        Ok(format!("{:x}", hasher.finalize()))
    }
}

impl LineIds {
    /// Counts the event in its stream, and assigns an id to an event without an id.
    pub fn assign(&mut self, event: &mut PortableEvent<'_>) -> anyhow::Result<()> {
        let ordinal = self.next_ordinal(&event.aggregate_id);
        if event.event_id.is_none() {
            let name = format!("{}\0{ordinal}\0{}", event.aggregate_id, event.digest()?);
            event.event_id = Some(Cow::Owned(Uuid::new_v5(&LINE_NAMESPACE, name.as_bytes()).to_string()));
        }
        Ok(())
    }

    fn next_ordinal(&mut self, aggregate_id: &str) -> u64 {
        let mut digest = [0; 16];
        digest.iter_mut().zip(Sha256::digest(aggregate_id)).for_each(|(place, byte)| *place = byte);
        let ordinal = self.ordinals.entry(u128::from_be_bytes(digest)).or_default();
        *ordinal += 1;
        *ordinal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"aggregate_id":"a","aggregate_type":"article","event_type":"article.updated","project_id":"p","payload":{"n":1.0,"b":12345678901234567890123},"metadata":{},"occurred_at":"2024-01-02T03:04:05Z"}"#;

    fn id_of(ids: &mut LineIds, line: &str) -> String {
        let mut event = PortableEvent::parse(line).expect("valid line");
        ids.assign(&mut event).expect("valid line");
        event.event_id.expect("assigned").into_owned()
    }

    #[test]
    fn an_event_is_written_unchanged_and_sent_with_the_expected_version_any() {
        let event = PortableEvent::parse(LINE).expect("valid line");
        assert_eq!(event.to_json().expect("valid event"), LINE);
        let sent: serde_json::Value =
            serde_json::from_str(&event.to_request().expect("valid event")).expect("a JSON object");
        assert_eq!((&sent["expected_version"], &sent["aggregate_id"]), (&"any".into(), &"a".into()));
    }

    #[test]
    fn equal_lines_get_different_ids_and_every_run_assigns_the_same_ids() {
        let mut first = LineIds::default();
        let mut second = LineIds::default();
        let ids = [id_of(&mut first, LINE), id_of(&mut first, LINE)];
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids, [id_of(&mut second, LINE), id_of(&mut second, LINE)]);
        assert_eq!(ids[0], "b0719b6a-7d9a-5f55-8262-c3a0f24b78c5");
    }

    #[test]
    fn the_order_of_fields_and_white_space_do_not_change_an_id() {
        let one = r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":{"a":1,"b":{"c":2,"d":3}}}"#;
        let other = r#"{ "event_type": "t.x", "payload": {"b": {"d":3, "c":2}, "a":1}, "aggregate_type":"t","aggregate_id":"a" }"#;
        assert_eq!(id_of(&mut LineIds::default(), one), id_of(&mut LineIds::default(), other));
    }

    #[test]
    fn an_id_in_the_line_is_kept() {
        let line = r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":{},"event_id":"mine"}"#;
        assert_eq!(id_of(&mut LineIds::default(), line), "mine");
    }

    #[test]
    fn a_line_that_is_not_a_valid_event_is_rejected() {
        for line in [
            "",
            "[]",
            "{}",
            r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x"}"#,
            r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":[]}"#,
            r#"{"aggregate_id":"","aggregate_type":"t","event_type":"t.x","payload":{}}"#,
            r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":{},"metadata":1}"#,
            r#"{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":{"n":{"a":1,"a":2}}}"#,
        ] {
            assert!(PortableEvent::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_excessively_nested_payload_is_rejected() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        let line = format!(r#"{{"aggregate_id":"a","aggregate_type":"t","event_type":"t.x","payload":{deep}}}"#);
        let outcome = PortableEvent::parse(&line).and_then(|mut event| LineIds::default().assign(&mut event));
        assert!(outcome.is_err());
    }
}
