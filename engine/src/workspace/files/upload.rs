//! Performs uploads: checks the description of a file, receives the bytes, and appends the event that refers to the
//! bytes.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::bytes::{PreviousUpload, is_live};
use super::receive::{Incoming, ReceivedBytes, RunningUpload};
use crate::access::grant::Grant;
use crate::append::checks::other_project;
use crate::append::earlier_writes::earlier_append;
use crate::append::request::{AppendOutcome, Decide};
use crate::append::staging::object_of;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::FILE;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::file::{ATTACHED_ID, ATTACHED_TYPE, FILENAME, MIME_TYPE, PATH, SHA256, SIZE, UPLOAD_ID};
use crate::model::file_path::{FileOwner, FilePath};
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::store::blobs::BlobKind;
use crate::workspace::call_context::{CallContext, Operation, event_of};
use crate::workspace::responses::IdempotentRequest;
use crate::workspace::rights::Writer;

const ENDED: &str = "the right to upload ended before the upload was complete";

/// A file to store.
#[derive(Debug, Clone, Default)]
pub struct NewFile {
    pub filename: String,
    pub mime_type: String,
    /// The value of the header `content-disposition` that an object store sends with the file.
    pub content_disposition: String,
    pub place: FileOwner,
    /// The path given by the client, which must equal the path made from `place` and `filename`.
    pub path: Option<String>,
    /// The announced number of bytes, if known.
    pub size: Option<u64>,
    pub request: Option<IdempotentRequest>,
    /// The expected version of the path's stream.
    pub expected: StreamExpectation,
}

/// The result of an upload.
#[derive(Debug)]
pub struct UploadOutcome {
    pub file: Arc<Aggregate>,
    /// Whether there was already a file at the path.
    pub replaced: bool,
    /// Whether an earlier request with the same idempotency key uploaded the file.
    pub repeated: bool,
}

/// The validated target of an upload.
pub(super) struct UploadTarget {
    pub path: FilePath,
    pub id: AggregateId,
    place: FileOwner,
}

impl Writer {
    /// Stores a file at the path made from its place and name. Replaces an existing file. The old bytes are removed
    /// after the new bytes are stored, and count toward the quota until then. An upload of the same bytes with the same
    /// metadata changes nothing.
    pub async fn upload_file(&self, new: NewFile, bytes: Incoming) -> Result<UploadOutcome> {
        Operation::perform(self, |operation| async move {
            operation.state().refresh().await?;
            let target = operation.context().target(&new)?;
            if let Some(first) = operation.earlier_response(&new, &target.id).await? {
                return Ok(first);
            }
            let quota = operation.context().storage_quota().await?;
            let id = operation.state().clock.new_id().to_string().into();
            let mut receiving = RunningUpload::new(operation.state(), operation.database(), id, quota);
            let kind =
                BlobKind { mime_type: new.mime_type.clone(), content_disposition: new.content_disposition.clone() };
            let stored = match operation.receive(&mut receiving, new.size, bytes, kind).await {
                Ok(received) => operation.name_bytes(target, new, received, receiving.upload_id().clone()).await,
                Err(error) => Err(error),
            };
            // Has no effect if a file refers to the bytes.
            receiving.give_up().await;
            stored
        })
        .await
    }
}

impl CallContext {
    /// Returns the validated target of an upload. A given project and a given type must exist. The aggregate may be
    /// created later. If the aggregate exists, it must have the given type and project.
    pub(super) fn target(&self, new: &NewFile) -> Result<UploadTarget> {
        let state = self.state();
        let mut place = new.place.clone();
        // Validates the place before it is used for lookups.
        self.path_of(&place, &new.filename)?;
        place.project = self.project_id(place.project.as_deref())?.map(|id| id.to_string());
        if let Some(name) = place.aggregate_type.as_deref().filter(|name| state.types.get(name).is_none()) {
            return Err(Error::invalid_at("/aggregate_type", format!("unknown aggregate type '{name}'")));
        }
        if let Some(found) = place.aggregate_id.as_deref().and_then(|id| state.folded.get(id)) {
            let own_type = found.aggregate_type.to_string();
            let given = place.aggregate_type.get_or_insert_with(|| own_type.clone());
            if *given != own_type {
                let message =
                    format!("the aggregate type '{given}' differs from the type of the aggregate, '{own_type}'");
                return Err(Error::conflict(ErrorCode::AggregateTypeMismatch, message));
            }
            let own_project = found.project_id.as_deref().map(str::to_owned);
            if let Some(project) = place.project.as_deref().filter(|project| Some(*project) != own_project.as_deref()) {
                return Err(other_project(project));
            }
            place.project = own_project;
        }
        let path = self.path_of(&place, &new.filename)?;
        if new.path.as_ref().is_some_and(|given| given != path.as_str()) {
            return Err(Error::invalid(format!(
                "the given path differs from the path of the file, '{}'",
                path.as_str()
            )));
        }
        Ok(UploadTarget { id: FilePath::aggregate_id(path.as_str()), path, place })
    }

    fn path_of(&self, place: &FileOwner, filename: &str) -> Result<FilePath> {
        FilePath::new(&self.record().id, place, filename)
            .map_err(|(field, message)| Error::invalid_at(format!("/{field}"), message))
    }
}

impl Operation {
    /// Receives the bytes of a file. Fails if the caller's right ends before the last byte has arrived.
    ///
    /// The end of the right only cancels the wait for bytes. A write to the store that has begun is completed, so that
    /// nothing is written after the upload was canceled.
    async fn receive(
        &self,
        receiving: &mut RunningUpload,
        size: Option<u64>,
        bytes: Incoming,
        kind: BlobKind,
    ) -> Result<ReceivedBytes> {
        let grant = self.context().grant();
        let received = receiving.write(size, while_granted(bytes, self.context().grant()), kind).await;
        // Checks the store, since another server may have ended the right.
        match grant.is_held().await? {
            true => received,
            false => Err(Error::Unauthenticated(ENDED)),
        }
    }

    /// Returns the response of an earlier request with the same idempotency key, if there was one. Called before
    /// storage is reserved, since a repeated request needs no storage.
    async fn earlier_response(&self, new: &NewFile, id: &AggregateId) -> Result<Option<UploadOutcome>> {
        let Some(request) = &new.request else { return Ok(None) };
        let Some(appended) = earlier_append(self.state(), self.database(), request).await? else { return Ok(None) };
        // Another server may have appended the event.
        self.state().refresh().await?;
        self.uploaded(&appended, id).map(Some)
    }

    /// Appends the event that makes the file refer to the uploaded bytes, and removes the previous bytes of the file.
    /// Appends nothing if the file would not change.
    async fn name_bytes(
        &self,
        target: UploadTarget,
        new: NewFile,
        received: ReceivedBytes,
        upload: Arc<str>,
    ) -> Result<UploadOutcome> {
        let previous = PreviousUpload::default();
        let (recorder, id, given_bytes) = (previous.clone(), target.id.clone(), target.path.as_str().len());
        let payload = payload(&target, &new, &received, &upload);
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let found = view.aggregate(target.id.as_str());
            let live = found.as_deref().filter(|found| is_live(found));
            recorder.record(live);
            let is_new = |(name, value): (&Arc<str>, &Value)| {
                **name != *UPLOAD_ID && live.is_none_or(|live| live.state.get(name) != Some(value))
            };
            if live.is_some() && !payload.iter().any(is_new) {
                recorder.record(None);
                return Ok(Vec::new());
            }
            let verb = if live.is_some() { "replaced" } else { "created" };
            let event = event_of(target.id.as_str(), FILE, verb, payload.clone());
            Ok(vec![NewEvent { project: target.place.project.clone(), expected: new.expected, ..event }])
        });
        let appended = self.append(decide, new.request, given_bytes, Some(upload)).await?;
        // The event of a repeated request was appended earlier, so the file may refer to the recorded bytes again.
        if !appended.replayed {
            self.clear(previous).await;
        }
        self.uploaded(&appended, &id)
    }

    /// Returns the file after the appended event, or the existing file if no event was appended.
    fn uploaded(&self, appended: &AppendOutcome, id: &AggregateId) -> Result<UploadOutcome> {
        let repeated = appended.is_repeat();
        let Some(event) = appended.events.first() else {
            let found = self.state().folded.get(id.as_str()).filter(|found| is_live(found));
            let file = found.ok_or_else(|| Error::not_found("file", id.as_str()))?;
            return Ok(UploadOutcome { file, replaced: true, repeated });
        };
        let (mut file, _) = self.context().created(appended)?;
        // The current aggregate has the time at which the path was first used.
        if let Some(now) = self.state().folded.get(event.aggregate_id.as_str()) {
            Arc::make_mut(&mut file).created_at = now.created_at;
        }
        Ok(UploadOutcome { file, replaced: event.verb() == "replaced", repeated })
    }
}

/// Returns a stream of the bytes in `bytes`. The stream fails when the right of `grant` ends.
fn while_granted(bytes: Incoming, mut grant: Grant) -> Incoming {
    let ended = Box::pin(async move { grant.ended().await });
    stream::unfold((bytes, ended), |(mut bytes, mut ended)| async move {
        let next = tokio::select! {
            () = &mut ended => Some(Err(std::io::Error::other(ENDED))),
            next = bytes.next() => next,
        };
        next.map(|next| (next, (bytes, ended)))
    })
    .boxed()
}

/// Returns the payload of a file event. Every event contains all fields that have a value, even unchanged fields.
fn payload(target: &UploadTarget, new: &NewFile, received: &ReceivedBytes, upload: &Arc<str>) -> Object {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    object_of([
        (PATH, Some(Value::from(target.path.as_str()))),
        (FILENAME, Some(Value::from(new.filename.as_str()))),
        (MIME_TYPE, Some(Value::from(new.mime_type.as_str()))),
        (SIZE, Some(Value::Int(i64::try_from(received.size).unwrap_or(i64::MAX)))),
        (SHA256, Some(Value::from(received.sha256.as_str()))),
        (UPLOAD_ID, Some(Value::from(upload.clone()))),
        (ATTACHED_ID, text(&target.place.aggregate_id)),
        (ATTACHED_TYPE, text(&target.place.aggregate_type)),
    ])
}
