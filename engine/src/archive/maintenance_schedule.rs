//! Periodic maintenance of the archive. Every hour: merges and digests. Every day: verification, and the removal of
//! unused file bytes and old dumps. Every 30 seconds: the removal of archives of deleted workspaces whose retention has
//! expired.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::backups::Backups;
use super::digest::{self, Digest};
use super::verify::{self, ArchiveVerification, VerificationResult};
use super::{control, files, log, merge};
use crate::error::{Error, Result};
use crate::metric;
use crate::registry::OpenWorkspace;
use crate::workspace::notices::notify_of_backup;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The maximum age of the last verification of an archive, in milliseconds, if a new verification fails with an error.
/// Up to this age, the result of the last verification is used instead.
const VERIFIED_WITHIN_MS: i64 = 2 * DAY_MS;
/// The number of digests that are kept in an epoch of a workspace.
const DIGESTS: usize = 48;

impl Backups {
    /// Runs each maintenance step that is due. If a step fails, logs the failure. The next call runs the failed step
    /// again.
    pub async fn run_maintenance(&self) {
        let mut tended = self.tended.lock().await;
        if let Err(error) = self.check_owner().await {
            return tracing::warn!(%error, cause = ?error, "the maintenance of the archive is skipped");
        }
        let now_ms = self.engine.clock().now_ms();
        for usage in self.engine.open_workspaces() {
            if !usage.state.leadership.is_own() {
                continue;
            }
            let id = usage.id.clone();
            if is_due(&tended.hourly, &id, now_ms, HOUR_MS) {
                let outcome = self.run_hourly_maintenance(&usage, now_ms).await;
                record(&mut tended.hourly, &id, now_ms, "merge the segments or write the digest", outcome);
            }
            if is_due(&tended.daily, &id, now_ms, DAY_MS) {
                let outcome = self.run_daily_maintenance(&usage, now_ms).await;
                record(&mut tended.daily, &id, now_ms, "remove the unused file bytes", outcome);
            }
        }
        if tended.control.saturating_add(DAY_MS) <= now_ms {
            match control::thin(&self.archive().bucket, now_ms, self.settings.retention_ms).await {
                Ok(()) => tended.control = now_ms,
                Err(error) => warn(&error, None, "could not remove old dumps of the control database"),
            }
        }
        if let Err(error) = self.remove_deleted(now_ms).await {
            warn(&error, None, "could not remove the archives of deleted workspaces");
        }
        if self.settings.verify {
            // A verification can use a digest only if the archive has reached the digest's position.
            self.archive_open().await;
            self.verify_all(now_ms).await;
        }
        metric::BACKUP_UNVERIFIED.set(&[], self.unverified.lock().len() as f64);
    }

    async fn run_hourly_maintenance(&self, usage: &OpenWorkspace, now_ms: i64) -> Result<()> {
        let (bucket, id, state) = (&self.archive().bucket, &usage.id, &usage.state);
        let epoch = self.reached(id).epoch;
        if epoch == 0 {
            return Ok(());
        }
        merge::merge(bucket, id, epoch, now_ms).await?;
        let (snapshot, definitions) = {
            // While this lock is held, this server folds no events and redefines no types.
            let _folding = state.folding().await;
            let definitions = state.db.count_defined().await?;
            if state.db.types_changed().await? != state.types.changed() {
                // Another server has redefined a type, and this server's states do not follow the redefinition yet.
                return Ok(());
            }
            (state.folded.snapshot(), definitions)
        };
        let last = digest::last(bucket, id, epoch, u64::MAX).await?;
        if last.is_some_and(|last| last.is_of(snapshot.position(), definitions)) {
            return Ok(());
        }
        let digest = tokio::task::spawn_blocking(move || {
            let states = snapshot.iter().map(|aggregate| &**aggregate);
            Digest::of(states, snapshot.position(), definitions, now_ms)
        });
        digest::write(bucket, id, epoch, &digest.await.map_err(Error::internal)?).await?;
        digest::thin(bucket, id, epoch, DIGESTS).await
    }

    async fn run_daily_maintenance(&self, usage: &OpenWorkspace, now_ms: i64) -> Result<()> {
        let snapshot = usage.state.folded.snapshot();
        let (bucket, retention_ms) = (&self.archive().bucket, self.settings.retention_ms);
        let is_file = |aggregate: &&Arc<_>| files::is_file(aggregate);
        files::sweep(bucket, &usage.id, snapshot.iter().filter(is_file), now_ms, retention_ms).await.map(drop)
    }

    /// Marks the archives that this server has written or found complete, and whose workspaces were deleted since.
    /// Removes marked archives of deleted workspaces if the mark is older than the retention period.
    async fn remove_deleted(&self, now_ms: i64) -> Result<()> {
        let existing: HashSet<Arc<str>> = self.engine.workspaces().await?.into_iter().map(|found| found.id).collect();
        let bucket = &self.archive().bucket;
        for id in self.archived_ids() {
            if !existing.contains(&id) {
                bucket.create(&log::removal_key(&id), now_ms.to_string().into()).await?;
                self.forget(&id);
            }
        }
        for id in self.archive().workspaces().await? {
            if existing.contains(&id) {
                continue;
            }
            let since = bucket.read_time(&log::removal_key(&id)).await?;
            if since.is_some_and(|since| since.saturating_add(self.settings.retention_ms) <= now_ms) {
                for found in bucket.list(&id).await? {
                    bucket.remove(&found.key).await?;
                }
                tracing::info!(workspace = %id, "removed the archive of a deleted workspace after its retention");
            }
        }
        Ok(())
    }

    /// Verifies the archives that were never verified, or whose last verification is at least a day old.
    async fn verify_all(&self, now_ms: i64) {
        let workspaces = match self.engine.workspaces().await {
            Ok(workspaces) => workspaces,
            Err(error) => return tracing::warn!(%error, "could not list the workspaces to verify"),
        };
        self.unverified.lock().retain(|id| workspaces.iter().any(|workspace| workspace.id == *id));
        for id in workspaces.into_iter().map(|workspace| workspace.id) {
            match self.verify_stored(&id, now_ms).await {
                Ok(true) => drop(self.unverified.lock().remove(&id)),
                Ok(false) => drop(self.unverified.lock().insert(id)),
                Err(error) => {
                    warn(&error, Some(&id), "could not read the epochs or the last verification of an archive");
                }
            }
        }
    }

    /// Verifies an archive that was never verified, or whose last verification is at least a day old. Returns whether
    /// the archive counts as verified. A workspace without an archive counts as verified.
    async fn verify_stored(&self, id: &Arc<str>, now_ms: i64) -> Result<bool> {
        let bucket = &self.archive().bucket;
        if log::epochs(bucket, id).await?.is_empty() {
            return Ok(true);
        }
        let last = verify::last(bucket, id).await?;
        let proof = match last {
            Some(last) if last.at.saturating_add(DAY_MS) > now_ms => last,
            last => match verify::verify(bucket, id, now_ms, &|_| {}).await {
                Ok(proof) => {
                    self.report(id, &proof).await;
                    proof
                }
                // After an error, the last verification is used for another day.
                Err(error) => match last {
                    Some(last) if last.at.saturating_add(VERIFIED_WITHIN_MS) > now_ms => {
                        warn(&error, Some(id), "could not verify an archive; its last verification still counts");
                        last
                    }
                    _ => {
                        warn(&error, Some(id), "could not verify an archive");
                        return Ok(false);
                    }
                },
            },
        };
        Ok(matches!(proof.outcome, VerificationResult::Equal | VerificationResult::Partial))
    }

    /// Logs the result of a verification. Creates a task for each operator if the archive is damaged or differs from
    /// the server's states.
    async fn report(&self, id: &Arc<str>, proof: &ArchiveVerification) {
        let ArchiveVerification { outcome, position, problems, .. } = proof;
        let problem = match (outcome, problems.first()) {
            (VerificationResult::Equal | VerificationResult::Partial, _) | (_, None) => {
                return tracing::info!(workspace = %id, position, outcome = outcome.name(), "verified an archive");
            }
            (_, Some(problem)) => problem,
        };
        tracing::error!(workspace = %id, position, outcome = outcome.name(), problem, "an archive has problems");
        if let Err(error) = notify_operators(self, id, proof.at, problem).await {
            warn(&error, Some(id), "could not create tasks about an archive that has problems");
        }
    }
}

/// Creates a task for each operator. The operators are the owners of the first workspace.
async fn notify_operators(backups: &Backups, id: &Arc<str>, at: i64, problem: &str) -> Result<()> {
    let access = backups.engine.access();
    let Some(first) = access.control().first_workspace_id().await? else { return Ok(()) };
    let first: Arc<str> = first.into();
    let owners = access.control().read_owners(&first).await?;
    notify_of_backup(&*backups.engine.runtime(&first).await?, owners, id.clone(), at, problem.to_owned()).await
}

fn is_due(done: &HashMap<Arc<str>, i64>, id: &Arc<str>, now_ms: i64, every_ms: i64) -> bool {
    done.get(id).is_none_or(|last| last.saturating_add(every_ms) <= now_ms)
}

fn record(done: &mut HashMap<Arc<str>, i64>, id: &Arc<str>, now_ms: i64, what: &str, outcome: Result<()>) {
    match outcome {
        Ok(()) => drop(done.insert(id.clone(), now_ms)),
        Err(error) => warn(&error, Some(id), &format!("could not {what} of an archive")),
    }
}

/// Logs a failure of the maintenance, with the workspace whose archive is concerned.
fn warn(error: &Error, workspace: Option<&Arc<str>>, problem: &str) {
    tracing::warn!(%error, cause = ?error, workspace = workspace.map(tracing::field::display), "{problem}");
}
