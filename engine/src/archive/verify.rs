//! Verifies an archive without the store: checks every segment of the newest epoch's history, folds the events,
//! compares the states with a digest that a server computed from its states, and checks the bytes of the files.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::bucket::Bucket;
use super::digest::{self, Digest};
use super::files;
use super::line::{self, ArchiveLine};
use super::log::{self, SegmentReader, damaged};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{self, FILE};
use crate::model::closed_set::named;
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::file::{SHA256 as HASH, size_bytes, text};
use crate::model::id::AggregateId;

/// The maximum size of the states in memory, in bytes. If the states are larger, only the segments are checked.
const MAX_STATE_BYTES: usize = 512 << 20;
/// The maximum number of files whose hashes are checked. For all other files, only the sizes are checked.
const MAX_HASHED_FILES: usize = 1_000;
/// The limit of the total size of the hashed files, in bytes. The last hashed file may exceed the limit.
const MAX_HASHED_BYTES: u64 = 256 << 20;
/// The maximum time from the computation of a digest until the archive reaches the position of the digest, in
/// milliseconds. After this time, an archive that ends before the position counts as damaged.
const ARCHIVED_WITHIN_MS: i64 = 600_000;
/// The maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 20;

named!(VerificationResult);

/// The progress of a restore or a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreProgress {
    pub workspace_id: Arc<str>,
    /// The position up to which the events have been restored or verified so far.
    pub position: u64,
    /// The position up to which the archive has been read so far.
    pub end: u64,
}

/// A function that is called with the progress of a restore or a verification.
pub type Observer<'o> = &'o (dyn Fn(RestoreProgress) + Send + Sync);

/// The outcome of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum VerificationResult {
    /// The states in the archive match the digest that the server recorded.
    Equal,
    /// The states in the archive differ from the digest that the server recorded.
    Different,
    /// A segment, a file or another object of the archive is missing, changed or cut off.
    Damaged,
    /// Every segment is present and unchanged. The states and the files were not checked, because the states are too
    /// large for the memory of a verification, or because the archive has no digest from this version of the program.
    Partial,
}

/// A verification of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveVerification {
    /// The position up to which the archive was read.
    pub position: u64,
    /// The time of the verification, in milliseconds since 1970.
    pub at: i64,
    pub outcome: VerificationResult,
    pub events: u64,
    /// Descriptions of the problems. If a segment or a file is missing, changed or cut off, the description names the
    /// segment or file.
    pub problems: Vec<String>,
}

/// States folded from the archive alone.
#[derive(Default)]
struct ArchivedStates {
    definitions: HashMap<Arc<str>, Arc<Definition>>,
    states: HashMap<AggregateId, Aggregate>,
    bytes: usize,
}

impl ArchivedStates {
    /// Folds the events in lines up to a position.
    fn fold_lines(mut self, lines: &[u8], position: u64) -> Result<ArchivedStates, String> {
        for text in texts(lines).filter(|text| line::is_event(text)) {
            match line::read(text)? {
                ArchiveLine::Event(event) if event.position > position => break,
                ArchiveLine::Event(event) => self.fold(&event),
                ArchiveLine::Definition { .. } => {}
            }
        }
        Ok(self)
    }

    /// Folds an event under the last definition of its type.
    fn fold(&mut self, event: &Event) {
        let Some(definition) = self.definitions.get(&event.aggregate_type) else { return };
        let before = self.states.get(&event.aggregate_id);
        self.bytes = self.bytes.saturating_sub(before.map_or(0, Aggregate::size_bytes));
        let after = Aggregate::fold(before, event, definition);
        self.bytes += after.size_bytes();
        self.states.insert(after.id.clone(), after);
    }
}

/// Checks the archive of a workspace, and records the outcome in the archive.
pub async fn verify(
    bucket: &Bucket,
    workspace_id: &str,
    now_ms: i64,
    progress: Observer<'_>,
) -> Result<ArchiveVerification> {
    let (outcome, problems) = (VerificationResult::Partial, Vec::new());
    let mut proof = ArchiveVerification { position: 0, at: now_ms, outcome, events: 0, problems };
    match verify_into(bucket, workspace_id, &mut proof, progress).await {
        Ok(()) => {}
        Err(error) if log::is_damage(&error) => {
            proof.outcome = VerificationResult::Damaged;
            proof.problems.push(log::reason(&error));
        }
        Err(error) => return Err(error),
    }
    let text = serde_json::to_vec(&proof).map_err(Error::internal)?;
    if let Err(error) = bucket.put(&key(workspace_id), text.into()).await {
        tracing::warn!(
            %error, cause = ?error, workspace = workspace_id, "could not record the verification of an archive"
        );
    }
    Ok(proof)
}

/// Returns the last verification of an archive.
pub async fn last(bucket: &Bucket, workspace_id: &str) -> Result<Option<ArchiveVerification>> {
    let key = key(workspace_id);
    let Some(text) = bucket.read(&key).await? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| damaged(&key, &error.to_string()))
}

fn key(workspace_id: &str) -> String {
    format!("{workspace_id}/verified.json")
}

async fn verify_into(
    bucket: &Bucket,
    workspace_id: &str,
    proof: &mut ArchiveVerification,
    progress: Observer<'_>,
) -> Result<()> {
    let epochs = log::epochs(bucket, workspace_id).await?;
    let epoch = *epochs.last().ok_or_else(|| Error::not_found("archive of the workspace", workspace_id))?;
    let segments = log::history(bucket, workspace_id, epoch).await?;
    // The states of a server are folded under the last definitions, so the definitions are read first. This first pass
    // also checks every segment.
    let (mut reader, mut definitions) = (SegmentReader::new(bucket, workspace_id, segments.clone()), Vec::new());
    while let Some(segment) = reader.next().await? {
        let (events, found) = blocking(&reader.key, move || definitions_of(&segment.lines)).await?;
        definitions.extend(found);
        proof.events += events;
        proof.position = reader.place.position;
        progress(progressed(workspace_id, proof.position, proof.position));
    }
    let newest = digest::last(bucket, workspace_id, epoch, u64::MAX).await?;
    let is_late = |newest: &Digest| newest.at.saturating_add(ARCHIVED_WITHIN_MS) < proof.at;
    if let Some(newest) = newest.filter(|newest| newest.position > proof.position && is_late(newest)) {
        let message = format!(
            "the archive ends at position {}, but there is a digest of position {}: events are missing",
            proof.position, newest.position
        );
        return Err(damaged(&log::epoch_folder(workspace_id, epoch), &message));
    }
    let digest = digest::last(bucket, workspace_id, epoch, proof.position).await?;
    let Some(digest) = digest.filter(|digest| digest.program == env!("CARGO_PKG_VERSION")) else { return Ok(()) };
    let count = usize::try_from(digest.definitions).unwrap_or(usize::MAX);
    let mut folded = ArchivedStates::default();
    folded.definitions.extend(builtin::definitions().into_iter().map(named));
    folded.definitions.extend(definitions.into_iter().take(count).map(named));
    let mut reader = SegmentReader::new(bucket, workspace_id, segments);
    while reader.place.position < digest.position
        && let Some(segment) = reader.next().await?
    {
        folded = blocking(&reader.key, move || folded.fold_lines(&segment.lines, digest.position)).await?;
        if folded.bytes > MAX_STATE_BYTES {
            return Ok(());
        }
        progress(progressed(workspace_id, reader.place.position, proof.position));
    }
    let found = Digest::of(folded.states.values(), digest.position, digest.definitions, 0);
    proof.outcome = if found.equals(&digest) { VerificationResult::Equal } else { VerificationResult::Different };
    if proof.outcome == VerificationResult::Different {
        proof.problems.push(format!(
            "the states at position {} differ from the digest (aggregates: {} in the archive, {} on the server)",
            digest.position, found.states, digest.states
        ));
    }
    check_files(bucket, workspace_id, &folded, proof).await
}

fn progressed(workspace_id: &str, position: u64, end: u64) -> RestoreProgress {
    RestoreProgress { workspace_id: workspace_id.into(), position, end }
}

fn named(definition: Definition) -> (Arc<str>, Arc<Definition>) {
    (definition.type_name.clone(), Arc::new(definition))
}

/// Calls `read` on a thread that may block. If `read` fails, the error names the segment with this key.
async fn blocking<T: Send + 'static>(
    key: &str,
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T> {
    let read = tokio::task::spawn_blocking(read).await.map_err(Error::internal)?;
    read.map_err(|message| damaged(key, &format!("a line cannot be read: {message}")))
}

fn texts(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|text| !text.is_empty())
}

/// Reads lines of the archive. Returns the number of events in the lines, and the definitions in the lines.
fn definitions_of(lines: &[u8]) -> Result<(u64, Vec<Definition>), String> {
    let (mut events, mut definitions) = (0, Vec::new());
    for text in texts(lines) {
        if line::is_event(text) {
            events += 1;
        } else if let ArchiveLine::Definition { declaration, .. } = line::read(text)? {
            definitions.push(declaration::read(&declaration).0);
        }
    }
    Ok((events, definitions))
}

/// Checks the bytes of the files that the states refer to.
async fn check_files(
    bucket: &Bucket,
    workspace_id: &str,
    folded: &ArchivedStates,
    proof: &mut ArchiveVerification,
) -> Result<()> {
    let is_file = |state: &&Aggregate| &*state.aggregate_type == FILE && !state.deleted;
    let mut files: Vec<&Aggregate> = folded.states.values().filter(is_file).collect();
    // Because the order is random, repeated verifications eventually check the hash of every file.
    fastrand::shuffle(&mut files);
    let mut hashed_bytes = 0;
    for (index, file) in files.into_iter().enumerate() {
        let Some(sha256) = text(file, HASH) else { continue };
        let (key, size) = (files::key(workspace_id, sha256), size_bytes(file));
        let is_hashed = index < MAX_HASHED_FILES && hashed_bytes < MAX_HASHED_BYTES;
        let problem = if !bucket.has(&key, size).await? {
            if files::is_missing(bucket, workspace_id, sha256).await? {
                // The bytes were deleted before they were archived, so the server does not have them either.
                continue;
            }
            Some("the bytes of a file are missing or have the wrong size")
        } else if is_hashed {
            hashed_bytes += size;
            (hash_of(bucket, &key).await? != sha256).then_some("the bytes of a file do not match their hash")
        } else {
            None
        };
        if let Some(problem) = problem {
            proof.outcome = VerificationResult::Damaged;
            if proof.problems.len() < MAX_PROBLEMS {
                proof.problems.push(format!("{key}: {problem}"));
            }
        }
    }
    Ok(())
}

async fn hash_of(bucket: &Bucket, key: &str) -> Result<String> {
    let mut context = Context::new(&SHA256);
    let Some(mut bytes) = bucket.stream(key).await? else { return Ok(String::new()) };
    while let Some(block) = bytes.next().await {
        context.update(&block.map_err(Error::Body)?);
    }
    Ok(hex::encode(context.finish()))
}
