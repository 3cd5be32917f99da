//! Converts the changes of a history to events. The ids of the events are the same in every import.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use git2::{Oid, Repository};
use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::article::{self, BadLine};
use super::history::{Act, Change, History};
use crate::cli::batch::Origin;
use crate::cli::event::Event;

/// The namespace of the ids of articles and events. With another namespace, repeated imports would create a second copy
/// of every article.
const GIT_NAMESPACE: Uuid = Uuid::from_u128(0x3b8e_52f1_c7d4_4a06_8f19_5d02_ae64_7c38);
/// The earliest time that the server accepts: 0000-01-01T00:00:00Z.
const YEAR_0000: Timestamp = Timestamp::constant(-62_167_219_200, 0);
/// The maximum size in bytes of a file that is imported as an article.
const MAX_FILE_BYTES: usize = 512 * 1024;

/// A converter of the changes of a history to events, in order.
pub struct Writer<'a> {
    repository: &'a Repository,
    history: &'a History,
    project: &'a str,
    /// The digests of the latest field values of each existing article, by the article's index in the history.
    known: HashMap<usize, Digests>,
    /// The invalid lines of front matter that were reported, with their paths. Each line is reported once, even if its
    /// file changes often.
    warned: HashSet<(String, BadLine)>,
}

type Digests = BTreeMap<String, [u8; 32]>;

impl<'a> Writer<'a> {
    /// Creates a writer that starts at the beginning of a history.
    pub fn new(repository: &'a Repository, history: &'a History, project: &'a str) -> Self {
        Self { repository, history, project, known: HashMap::new(), warned: HashSet::new() }
    }

    /// Passes the event of a change to `put`. A change that does not affect the article produces no event.
    pub fn write(
        &mut self,
        change: &Change,
        note: &dyn Fn(&str),
        put: impl FnOnce(&Event<'_>, Origin) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (Some(commit), Some(birth)) =
            (self.history.commits.get(change.commit), self.history.articles.get(change.article))
        else {
            return Ok(());
        };
        let Some((event_type, payload)) = self.payload(change, note)? else { return Ok(()) };
        let id = commit.id.to_string();
        let aggregate_id = self.aggregate_id(&birth.path, birth.commit);
        let metadata = json!({"source": "git", "commit": id, "subject": commit.subject, "path": change.path});
        let metadata: Box<RawValue> = to_raw_value(&metadata)?;
        let payload: Box<RawValue> = to_raw_value(&payload)?;
        let event = Event {
            event_id: Some(Cow::Owned(name_id(&[&aggregate_id, &id]))),
            aggregate_id: Cow::Owned(aggregate_id),
            aggregate_type: Cow::Borrowed("article"),
            event_type: Cow::Borrowed(event_type),
            project_id: Some(Cow::Borrowed(self.project)),
            payload: &payload,
            metadata: Some(&metadata),
            occurred_at: time_text(commit.seconds).map(Cow::Owned),
            restore: None,
        };
        put(&event, Origin::Commit { id, path: change.path.clone() })
    }

    /// Returns the event type and payload for a change, or `None` if the file cannot be an article.
    fn payload(
        &mut self,
        change: &Change,
        note: &dyn Fn(&str),
    ) -> anyhow::Result<Option<(&'static str, Map<String, Value>)>> {
        let (blob, slug) = match &change.act {
            Act::Remove => {
                let was_known = self.known.remove(&change.article).is_some();
                return Ok(was_known.then(|| ("article.deleted", Map::new())));
            }
            Act::Write { blob, slug } => (*blob, slug),
        };
        let text = match self.text(blob)? {
            Ok(text) => text,
            Err(reason) => {
                let commit = self.history.commits.get(change.commit).map(|commit| commit.id.to_string());
                let commit = commit.unwrap_or_default();
                note(&format!("warning: {} at commit {commit:.10} is skipped: {reason}", change.path));
                return Ok(None);
            }
        };
        let mut bad = Vec::new();
        let fields = article::fields(&change.path, slug, &text, &mut bad);
        for bad in bad {
            let (path, line, reason) = (&change.path, bad.line, bad.reason);
            if self.warned.insert((path.clone(), bad)) {
                note(&format!("warning: {path}:{line}: the line of front matter is skipped: {reason}"));
            }
        }
        let digests = digests(&fields);
        Ok(Some(match self.known.insert(change.article, digests.clone()) {
            None => ("article.created", fields),
            Some(before) => ("article.updated", difference(fields, &before, &digests)),
        }))
    }

    /// Returns the text of a blob, or the reason why the blob cannot be an article.
    fn text(&self, blob: Oid) -> anyhow::Result<Result<String, &'static str>> {
        let (size_bytes, _) = self.repository.odb()?.read_header(blob)?;
        if size_bytes > MAX_FILE_BYTES {
            return Ok(Err("it is larger than 512 KiB"));
        }
        let blob = self.repository.find_blob(blob)?;
        Ok(match std::str::from_utf8(blob.content()) {
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err("it is not UTF-8 text"),
        })
    }

    /// Returns the id of the article for a file. The id depends on the path and the commit of the file's creation.
    fn aggregate_id(&self, first_path: &str, first_commit: Oid) -> String {
        let root = self.history.commits.first().map(|commit| commit.id.to_string()).unwrap_or_default();
        name_id(&[&root, first_path, &first_commit.to_string()])
    }
}

fn name_id(parts: &[&str]) -> String {
    Uuid::new_v5(&GIT_NAMESPACE, parts.join("\0").as_bytes()).to_string()
}

fn digests(fields: &Map<String, Value>) -> Digests {
    fields.iter().map(|(name, value)| (name.clone(), Sha256::digest(value.to_string().as_bytes()).into())).collect()
}

/// Returns the changed fields of an article. The names of removed fields are in the field `$unset`.
fn difference(fields: Map<String, Value>, before: &Digests, after: &Digests) -> Map<String, Value> {
    let removed: Vec<Value> =
        before.keys().filter(|name| !after.contains_key(*name)).map(|name| name.as_str().into()).collect();
    let mut changed: Map<String, Value> =
        fields.into_iter().filter(|(name, _)| before.get(name) != after.get(name)).collect();
    if !removed.is_empty() {
        changed.insert("$unset".to_owned(), Value::Array(removed));
    }
    changed
}

/// Returns a commit's time as RFC 3339 with milliseconds.
fn time_text(seconds: i64) -> Option<String> {
    // The server accepts times in the years 0000 to 9999.
    let time = Timestamp::from_second(seconds).ok().filter(|time| *time >= YEAR_0000)?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string())
}
