//! The source of an export: a running server, or a store that no server has open.

use std::borrow::Cow;

use anyhow::Context;
use foldwork_engine::workspace::offline::DefinitionVersion;
use futures_util::TryStreamExt;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::folder::FilesFolder;
use super::lines::{ExportedDefinition, ExportedProject, ExportedWorkspace};
use super::store::OpenStore;
use crate::cli::client::{Client, unless_refused};
use crate::cli::export::ExportSelection;
use crate::cli::pages;
use crate::cli::projects::Projects;
use crate::cli::retry;
use crate::wire::event::EventBody;

/// The number of events per page, which is the maximum that the server allows.
const PAGE: u32 = 200;
/// The maximum number of definitions per read from a store.
const DEFINITIONS: usize = 50;

/// The workspace that an export reads.
pub enum ExportSource<'a> {
    Server(&'a Client, &'a dyn Fn(&str)),
    Store(&'a OpenStore),
}

/// A page of the log.
#[derive(Debug, Deserialize)]
pub struct ExportPage<'a> {
    #[serde(borrow)]
    pub data: Vec<&'a RawValue>,
    /// The cursor of the next page. Present if the log contains more events.
    #[serde(borrow, default)]
    next_cursor: Option<Cow<'a, str>>,
    /// The position up to which the log was read.
    position: Option<u64>,
}

/// The fields by which the payload of an event refers to the bytes of a file.
#[derive(Debug, Deserialize)]
pub struct BytesReference<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    upload_id: Cow<'a, str>,
    #[serde(borrow)]
    pub sha256: Cow<'a, str>,
    pub size: u64,
}

impl ExportPage<'_> {
    /// Returns the position after which the next page begins, or `None` after the last page. `after` is the position
    /// after which this page begins, and `last` is the position of the last event that was read.
    pub fn next(&self, after: u64, last: u64) -> Option<u64> {
        let position = self.position.unwrap_or(last).max(last);
        let has_more = self.next_cursor.is_some() || !self.data.is_empty();
        (has_more && position > after).then_some(position)
    }
}

impl ExportSource<'_> {
    /// Returns the workspace that is exported.
    pub async fn workspace(&self) -> anyhow::Result<ExportedWorkspace> {
        match self {
            Self::Server(client, note) => {
                Ok(retry::get(client, note, &["workspace"]).await.context("the workspace cannot be read")?.json()?)
            }
            Self::Store(store) => Ok(store.about()),
        }
    }

    /// Returns all projects of the workspace.
    pub async fn projects(&self) -> anyhow::Result<Projects> {
        match self {
            Self::Server(client, note) => Projects::load(client, note).await,
            Self::Store(store) => {
                let text = |value: &foldwork_engine::model::value::Value| value.as_str().map(str::to_owned);
                let projects = store.workspace.projects().into_iter().map(|found| ExportedProject {
                    id: found.id.to_string(),
                    slug: found.state.get("slug").and_then(text).unwrap_or_default(),
                    name: found.state.get("name").and_then(text).unwrap_or_default(),
                    description: found.state.get("description").and_then(text),
                });
                Ok(projects.collect())
            }
        }
    }

    /// Returns the definitions, oldest first, without the oldest `start` definitions. A store returns at most
    /// `DEFINITIONS` per call. A server returns all definitions if `start` is 0, and otherwise no definitions.
    pub async fn definitions(&self, start: usize) -> anyhow::Result<Vec<ExportedDefinition>> {
        match self {
            Self::Server(..) if start > 0 => Ok(Vec::new()),
            Self::Server(client, note) => {
                let path = ["aggregate-types", "definitions"];
                let definitions = pages::rows(client, &path, &[("limit", "200")], Some(*note)).await;
                definitions.context("the types cannot be read")
            }
            Self::Store(store) => {
                let past = store.workspace.definitions(start, DEFINITIONS).await?;
                let line = |past: DefinitionVersion| -> anyhow::Result<ExportedDefinition> {
                    Ok(ExportedDefinition {
                        definition: serde_json::to_value(&past.declaration)?,
                        position: past.position,
                    })
                };
                past.into_iter().map(line).collect()
            }
        }
    }

    /// Returns the names of all types.
    pub async fn type_names(&self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Server(client, note) => {
                let types: Vec<Value> = pages::rows(client, &["aggregate-types"], &[], Some(*note)).await?;
                let names = types.iter().filter_map(|found| found.get("type_name")?.as_str());
                Ok(names.map(str::to_owned).collect())
            }
            Self::Store(store) => Ok(store.workspace.type_names()),
        }
    }

    /// Returns the JSON of a page of the log.
    pub async fn page(&self, selection: &ExportSelection, after: u64) -> anyhow::Result<String> {
        match self {
            Self::Server(client, note) => {
                let request = || {
                    let request =
                        client.request(Method::GET, &["events"]).query(&[("limit", PAGE)]).query(&[("after", after)]);
                    let types = (!selection.types.is_empty()).then(|| ("types", selection.types.join(",")));
                    let aggregate_type = selection.aggregate_type.as_deref().map(|name| ("aggregate_type", name));
                    request.query(types.as_slice()).query(aggregate_type.as_slice())
                };
                let response = retry::call(client, note, request).await;
                Ok(response.with_context(|| format!("the events after position {after} cannot be read"))?.body)
            }
            Self::Store(store) => {
                let events = store.workspace.events_after(after, PAGE as usize).await?;
                let position = events.last().map_or(after, |last| last.position);
                let chosen = events.iter().filter(|event| selection.admits(&event.event_type, &event.aggregate_type));
                let data: Vec<EventBody> = chosen.map(|event| EventBody::from(&**event)).collect();
                let next = (position > after).then_some("more");
                let body = ExportPageBody { data, next_cursor: next, position };
                serde_json::to_string(&body).context("the events cannot be written as JSON")
            }
        }
    }

    /// Saves in a folder the bytes that a file's event refers to. Returns false if the bytes no longer exist, because
    /// the file was replaced or deleted.
    pub async fn save_bytes(&self, folder: &FilesFolder, named: &BytesReference<'_>) -> anyhow::Result<bool> {
        let BytesReference { path, upload_id, sha256, size } = named;
        let saved = match self {
            Self::Store(store) => match store.workspace.read_upload(path, upload_id).await? {
                Some(bytes) => folder.store(sha256, *size, bytes).await.map(|is_same| (is_same, true)),
                None => return Ok(false),
            },
            Self::Server(client, note) => {
                let unread = || format!("the file '{path}' cannot be read");
                let link = unless_refused(retry::get(client, note, &["files", path]).await, StatusCode::NOT_FOUND);
                let Some(link) = link.with_context(unread)? else { return Ok(false) };
                let link: Value = link.json()?;
                let url = link.get("url").and_then(Value::as_str).unwrap_or_default();
                let response = unless_refused(client.download(url).await, StatusCode::NOT_FOUND);
                let Some(response) = response.with_context(unread)? else { return Ok(false) };
                let bytes = Box::pin(response.bytes_stream().map_err(std::io::Error::other));
                // If the hash differs, a later event has replaced the file.
                folder.store(sha256, *size, bytes).await.map(|is_same| (is_same, false))
            }
        };
        let (is_same, is_upload) = saved.with_context(|| format!("cannot save the bytes of the file '{path}'"))?;
        anyhow::ensure!(is_same || !is_upload, "the bytes of the file '{path}' do not have the SHA-256 {sha256}");
        Ok(is_same)
    }
}

#[derive(serde::Serialize)]
struct ExportPageBody<'a> {
    data: Vec<EventBody>,
    next_cursor: Option<&'a str>,
    position: u64,
}

/// Converts a type in a response to the form that requests have.
pub fn declaration_of(mut found: Value) -> Value {
    if let Some(fields) = found.as_object_mut() {
        fields.remove("builtin");
        fields.remove("managed");
    }
    found
}
