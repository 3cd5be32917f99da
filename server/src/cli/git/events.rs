//! The events of an import, before they are sent.

use std::borrow::Cow;

use git2::Oid;
use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::history::Commit;
use crate::cli::event::PortableEvent;

/// The namespace of the ids of articles, events and import records. With another namespace, an import would give new
/// articles other ids than an earlier version of the program gave to the articles of the same files.
const GIT_NAMESPACE: Uuid = Uuid::from_u128(0x3b8e_52f1_c7d4_4a06_8f19_5d02_ae64_7c38);
/// The maximum size in bytes of an event as JSON, so that the event fits into a request body of 1 MiB.
const MAX_EVENT_BYTES: usize = (1 << 20) - (16 << 10);

/// The cause of an event: the changes of a commit, or a comparison of the project with the files of the source.
#[derive(Clone, Debug, Default)]
pub struct EventMoment {
    pub commit: Option<Commit>,
    /// The latest time of this commit and of all commits that were imported before it. A time in the future counts as
    /// the time of the import. `None` if no commit has a time, as in an import of a folder without a repository.
    pub at: Option<Timestamp>,
    /// Whether the event brings the project to the state of the files, instead of applying the changes of one commit.
    pub reconciled: bool,
}

/// The change of one article.
pub struct ArticleDiff<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub verb: &'static str,
    pub payload: Map<String, Value>,
    /// Whether the event adds the article to the import.
    pub is_new: bool,
    /// The git id of the file's content. `None` if the event deletes the article.
    pub blob: Option<Oid>,
    /// The time of the article's last event. If the time of the new event would be earlier, the new event gets this
    /// time.
    pub after: Option<Timestamp>,
}

/// An event to send. The sender adds the event's id.
#[derive(Debug)]
pub struct PreparedEvent {
    /// The event as JSON, without an id.
    pub json: String,
    pub aggregate_id: String,
    pub path: String,
    pub commit: String,
    /// Whether the event adds the article to the import.
    pub is_new: bool,
}

impl EventMoment {
    /// Returns the id of the commit, or the empty string.
    pub fn commit_id(&self) -> String {
        self.commit.as_ref().map(|commit| commit.id.to_string()).unwrap_or_default()
    }
}

impl ArticleDiff<'_> {
    /// Returns the time at which the event occurs.
    pub fn time(&self, moment: &EventMoment) -> Option<Timestamp> {
        moment.at.map(|at| self.after.map_or(at, |after| at.max(after)))
    }

    /// Returns the event, or the reason why the event cannot be sent.
    pub fn prepare(self, project: &str, moment: &EventMoment) -> anyhow::Result<Result<PreparedEvent, String>> {
        let occurred_at = self.time(moment).map(|time| Cow::Owned(time_text(time)));
        let mut metadata = json!({"source": "folder", "path": self.path});
        if let Some(commit) = &moment.commit {
            metadata = json!({
                "source": "git", "commit": commit.id.to_string(), "subject": commit.subject, "path": self.path,
                "commit_time": commit.time.map(time_text),
            });
        }
        if let Some(blob) = self.blob {
            metadata["blob"] = blob.to_string().into();
        }
        if moment.reconciled {
            metadata["reconciled"] = true.into();
        }
        let metadata: Box<RawValue> = to_raw_value(&metadata)?;
        let payload: Box<RawValue> = to_raw_value(&self.payload)?;
        let event = PortableEvent {
            event_id: None,
            aggregate_id: Cow::Borrowed(self.id),
            aggregate_type: Cow::Borrowed("article"),
            event_type: Cow::Owned(format!("article.{}", self.verb)),
            project_id: Some(Cow::Borrowed(project)),
            payload: &payload,
            metadata: Some(&metadata),
            occurred_at,
            restore: None,
        };
        let json = event.to_json()?;
        if json.len() > MAX_EVENT_BYTES {
            return Ok(Err(format!("its event has {} bytes; at most {MAX_EVENT_BYTES} are allowed", json.len())));
        }
        let (aggregate_id, path) = (self.id.to_owned(), self.path.to_owned());
        Ok(Ok(PreparedEvent { json, aggregate_id, path, commit: moment.commit_id(), is_new: self.is_new }))
    }
}

/// Returns an id that is derived from `parts`, so that repeated imports use the same ids.
pub fn name_id(parts: &[&str]) -> String {
    Uuid::new_v5(&GIT_NAMESPACE, parts.join("\0").as_bytes()).to_string()
}

/// Returns a time as RFC 3339 with milliseconds, which is the format of the server.
pub fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
