//! Checks whether a store in a folder accepts writes, by writing a record. A write is necessary, because only a
//! successful write shows that a failed or full disk works again.

use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::{CONTROL, CONTROL_MIGRATIONS, Database, Error, Result, Store, convert};

/// The time for which the result of a successful write is reused. While writes succeed, the checks write about 3 kB per
/// second at most.
const SUCCESS_DURATION: Duration = Duration::from_secs(5);
/// The time for which the result of a failed write is reused.
const FAILURE_DURATION: Duration = Duration::from_secs(1);
/// The time after a refused commit during which the store counts as not writable. During this time, the health-check
/// record is not written, because the record may fit on a full disk on which commits fail.
const REFUSAL_DURATION: Duration = Duration::from_secs(5);
/// The maximum time for one write of the health-check record. A store whose write takes longer is not healthy.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of hashes in the health-check record. Each hash has 64 characters, so the record has 16 KiB. The record
/// must be larger than a block of the disk. A smaller record may fit on a full disk, because a file can still grow to
/// the end of its last block.
const HASHES: u32 = 256;

/// A health check that writes a record. Each write overwrites the same record.
#[derive(Default)]
pub struct StoreProbe {
    control: OnceCell<Database>,
    last: tokio::sync::Mutex<Option<WriteOutcome>>,
    refused: Mutex<Option<CommitRefusal>>,
}

/// The result of a write.
struct WriteOutcome {
    at: Instant,
    failure: Option<String>,
}

/// A commit that the disk refused.
#[derive(Clone)]
struct CommitRefusal {
    at: Instant,
    reason: String,
}

impl StoreProbe {
    /// Records that the disk refused a commit. Other failed disk operations, such as reads, are also recorded this way.
    pub fn refused(&self, reason: &Error) {
        *self.refused.lock() = Some(CommitRefusal { at: Instant::now(), reason: reason.to_string() });
    }

    /// Fails if the disk has refused a commit recently. If not, writes the health-check record, or returns the result
    /// of a recent write. Concurrent calls share one write.
    pub async fn check(&self, store: &Store) -> Result<()> {
        let mut last = self.last.lock().await;
        let refusal = self.refused.lock().clone();
        let failure = match due(refusal.as_ref(), last.as_ref(), Instant::now()) {
            CheckAction::Nothing(failure) => failure,
            CheckAction::Write => {
                let failure = match timeout(WRITE_TIMEOUT, self.write(store)).await {
                    Ok(written) => written.err().map(|error| error.to_string()),
                    Err(_) => Some(format!("a write took longer than {} s", WRITE_TIMEOUT.as_secs())),
                };
                *last = Some(WriteOutcome { at: Instant::now(), failure: failure.clone() });
                failure
            }
        };
        failure.map_or(Ok(()), |failure| Err(Error::Unwritable(failure)))
    }

    async fn write(&self, store: &Store) -> Result<()> {
        // Failed writes of the health check itself do not count as refused commits.
        let control = || async { Ok::<_, Error>(store.database(CONTROL, &CONTROL_MIGRATIONS).await?.unprobed()) };
        let control = self.control.get_or_try_init(control).await?;
        let values = [("text", convert::text(&text()))];
        match control.query("UPSERT probe:write SET at = time::now(), text = $text RETURN NONE", values).await {
            // A conflict means that another write of the record succeeded, so the store accepts writes.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The next action of a check.
#[derive(Debug, PartialEq, Eq)]
enum CheckAction {
    /// No write is needed, because the result is known: the reason why the store is not writable, or `None` if the
    /// store is writable.
    Nothing(Option<String>),
    Write,
}

/// Returns the action of a check at the time `now`, given the last refused commit and the last write.
fn due(refusal: Option<&CommitRefusal>, last: Option<&WriteOutcome>, now: Instant) -> CheckAction {
    if let Some(CommitRefusal { at, reason }) = refusal
        && now.duration_since(*at) < REFUSAL_DURATION
    {
        return CheckAction::Nothing(Some(reason.clone()));
    }
    let is_current = |written: &&WriteOutcome| {
        let duration = if written.failure.is_none() { SUCCESS_DURATION } else { FAILURE_DURATION };
        now.duration_since(written.at) < duration && refusal.is_none_or(|refusal| refusal.at < written.at)
    };
    last.filter(is_current).map_or(CheckAction::Write, |written| CheckAction::Nothing(written.failure.clone()))
}

/// Returns the text of the health-check record. A file system cannot compress this text well.
fn text() -> String {
    (0..HASHES).map(|number| hex::encode(Sha256::digest(number.to_be_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_reuses_the_result_of_a_recent_write_or_refusal() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let written = WriteOutcome { at: began, failure: None };
        let refusal = CommitRefusal { at: began + second, reason: "full".into() };
        assert_eq!(due(None, None, began), CheckAction::Write);
        assert_eq!(due(None, Some(&written), began + second), CheckAction::Nothing(None));
        assert_eq!(due(None, Some(&written), began + SUCCESS_DURATION), CheckAction::Write);
        let full = || CheckAction::Nothing(Some("full".to_owned()));
        assert_eq!(due(Some(&refusal), Some(&written), began + second), full());
        assert_eq!(due(Some(&refusal), Some(&written), began + REFUSAL_DURATION), full());
        // A successful write before the refusal does not show that the disk works again.
        assert_eq!(due(Some(&refusal), Some(&written), began + second + REFUSAL_DURATION), CheckAction::Write);
        let failed = WriteOutcome { at: began + 6 * second, failure: Some("still full".into()) };
        assert_eq!(due(Some(&refusal), Some(&failed), failed.at), CheckAction::Nothing(Some("still full".into())));
        assert_eq!(due(Some(&refusal), Some(&failed), failed.at + FAILURE_DURATION), CheckAction::Write);
    }

    #[tokio::test]
    async fn the_probe_writes_16_kib_and_reports_a_refused_commit() {
        assert_eq!(text().len(), 16 << 10);
        let store = Store::connect("mem://").await.expect("memory");
        let probe = StoreProbe::default();
        probe.check(&store).await.expect("ready");
        probe.refused(&Error::Unwritable("the disk is full".into()));
        let refused = probe.check(&store).await.expect_err("not ready").to_string();
        assert!(refused.contains("the disk is full"), "{refused}");
    }
}
