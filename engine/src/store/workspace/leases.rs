//! Renewals of leases on tasks. The row of a lease contains the time at which the lease ends, whether the lease has
//! expired, and the version of the event that claimed the task. The start and the end of a lease are events in the log.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::model::id::AggregateId;
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, DatabaseReader, Error, Result, convert};

stored_record!(LeaseRow as "lease" [] { task_id = "task", claim, until, expired });

/// The state of a lease after a renewal or the expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    pub task_id: Arc<str>,
    /// The version of the event that claimed the task.
    pub claim: u64,
    /// The end of the lease, in milliseconds since the epoch.
    pub until: i64,
    /// Whether the lease has expired. An expired lease cannot be renewed.
    pub expired: bool,
}

/// The statement that renews leases. If the stored row belongs to an earlier claim, the statement replaces the row. If
/// the row belongs to the same claim, the statement extends the lease unless the lease has expired.
const RENEW: &str = "
INSERT INTO lease $leases ON DUPLICATE KEY UPDATE
until = IF claim < $input.claim OR (claim = $input.claim AND !expired AND until < $input.until) { $input.until } ELSE { until },
expired = IF claim < $input.claim { false } ELSE { expired },
claim = IF claim < $input.claim { $input.claim } ELSE { claim }";

/// The statement that marks a lease as expired if the end of the lease, including renewals, is at or before `$now`. If
/// `$now` is `NONE`, the store's time applies.
const EXPIRE: &str = "
LET $at = $now ?? time::millis(time::now());
INSERT INTO lease {
    id: $lease.id, task: $lease.task, claim: $lease.claim, until: $lease.until, expired: $lease.until <= $at
} ON DUPLICATE KEY UPDATE
expired = IF claim < $input.claim { $input.expired } ELSE IF claim = $input.claim AND until <= $at { true } ELSE { expired },
until = IF claim < $input.claim { $input.until } ELSE { until },
claim = IF claim < $input.claim { $input.claim } ELSE { claim }";

impl DatabaseReader {
    /// Returns the leases of the given tasks.
    pub async fn read_leases(&self, task_ids: &[Arc<str>]) -> Result<Vec<LeaseRow>> {
        let ids = convert::array(task_ids.iter().map(|id| lease_id(id)));
        self.read_all("SELECT * FROM $ids", [("ids", ids)], LeaseRow::read).await
    }

    /// Returns the ids of all tasks with a stored lease.
    pub async fn leased_tasks(&self) -> Result<Vec<Arc<str>>> {
        let found = self.query("SELECT VALUE task FROM lease", []).await?;
        Ok(convert::list(found.first())?.filter_map(convert::text_of).collect())
    }
}

impl Database {
    /// Renews leases and returns their current states. If a lease could not be renewed, its row is `expired` or belongs
    /// to another claim.
    pub async fn renew_leases(&self, leases: &[LeaseRow]) -> Result<Vec<LeaseRow>> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let records = convert::array(leases.iter().map(lease_record));
        let found = self.query_again(RENEW, [("leases", records)]).await?;
        convert::list(found.last())?.map(LeaseRow::read).collect()
    }

    /// Marks a lease as expired if the end of the lease, including renewals, is at or before `now_ms`. If `now_ms` is
    /// `None`, the store's time applies. `lease.until` is the original end, which the claiming event recorded. Returns
    /// the current state of the lease.
    pub async fn expire_lease(&self, lease: &LeaseRow, now_ms: Option<i64>) -> Result<LeaseRow> {
        let values = [("lease", lease_record(lease)), ("now", now_ms.map_or(Record::None, convert::integer))];
        let found = self.query_again(EXPIRE, values).await?;
        let row = convert::list(found.last())?.next().map(LeaseRow::read).transpose()?;
        row.ok_or_else(|| Error::corrupt(format!("the lease on task '{}' is missing after its write", lease.task_id)))
    }

    /// Removes the stored leases of tasks that have ended. `ended` contains the id of each task, and the version at
    /// which the task ended. Keeps the leases of later claims.
    pub async fn forget_leases(&self, ended: &[(AggregateId, u64)]) -> Result<()> {
        let record = |(id, version): &(AggregateId, u64)| {
            convert::object([("id", lease_id(id.as_str())), ("version", convert::integer(*version))])
        };
        let statement = "FOR $task IN $ended { DELETE $task.id WHERE claim <= $task.version RETURN NONE }";
        self.query_again(statement, [("ended", convert::array(ended.iter().map(record)))]).await.map(drop)
    }
}

fn lease_record(lease: &LeaseRow) -> Record {
    lease.with_id(lease_id(&lease.task_id))
}

fn lease_id(task_id: &str) -> Record {
    convert::record_id("lease", task_id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(claim: u64, until: i64, expired: bool) -> LeaseRow {
        LeaseRow { task_id: "t".into(), claim, until, expired }
    }

    #[tokio::test]
    async fn an_expired_lease_cannot_be_renewed_without_a_new_claim() {
        let log = Database::log_in_memory().await;
        let renew = async |claim, until| log.renew_leases(&[row(claim, until, false)]).await.expect("renewed");
        assert_eq!(renew(1, 100).await, [row(1, 100, false)]);
        assert_eq!(renew(1, 90).await, [row(1, 100, false)]);
        assert_eq!(renew(1, 200).await, [row(1, 200, false)]);
        // The claim recorded an earlier end, but the end after the renewal applies.
        assert_eq!(log.expire_lease(&row(1, 50, false), Some(199)).await.expect("asked"), row(1, 200, false));
        assert_eq!(log.expire_lease(&row(1, 50, false), Some(200)).await.expect("asked"), row(1, 200, true));
        assert_eq!(renew(1, 300).await, [row(1, 200, true)]);
        assert_eq!(log.expire_lease(&row(1, 50, false), Some(201)).await.expect("asked"), row(1, 200, true));
        // A new claim starts with a new lease, and the lease of the earlier claim no longer matters.
        assert_eq!(renew(4, 400).await, [row(4, 400, false)]);
        assert_eq!(renew(1, 500).await, [row(4, 400, false)]);
        assert_eq!(log.expire_lease(&row(1, 50, false), Some(600)).await.expect("asked"), row(4, 400, false));
        assert_eq!(log.read_leases(&["t".into(), "u".into()]).await.expect("rows"), [row(4, 400, false)]);
        // A lease that was never renewed does not expire before the end that the claiming event recorded.
        assert_eq!(log.expire_lease(&row(7, 700, false), Some(699)).await.expect("asked"), row(7, 700, false));
        // A lease that was never renewed expires at the end that the claiming event recorded, and replaces the row of
        // an earlier claim.
        assert_eq!(log.expire_lease(&row(7, 700, false), Some(700)).await.expect("asked"), row(7, 700, true));
    }

    #[tokio::test]
    async fn a_lease_expires_by_the_clock_of_the_store_if_no_time_is_given() {
        let log = Database::log_in_memory().await;
        let expired = async |until| log.expire_lease(&row(1, until, false), None).await.expect("asked").expired;
        log.renew_leases(&[row(1, 1_000, false)]).await.expect("renewed");
        assert!(expired(1_000).await);
        log.renew_leases(&[row(2, i64::MAX, false)]).await.expect("renewed");
        let later = log.expire_lease(&row(2, 1_000, false), None).await.expect("asked");
        assert_eq!(later, row(2, i64::MAX, false));
    }

    #[tokio::test]
    async fn lease_rows_of_ended_tasks_are_removed() {
        let log = Database::log_in_memory().await;
        let rows: Vec<LeaseRow> =
            ["a", "b", "c"].map(|task| LeaseRow { task_id: task.into(), ..row(1, 10, false) }).into();
        log.renew_leases(&rows).await.expect("renewed");
        let ended = ["a", "c", "never"].map(|task| (AggregateId::from(Arc::from(task)), 2));
        let later = LeaseRow { task_id: "a".into(), ..row(3, 10, false) };
        log.forget_leases(&ended).await.expect("removed");
        assert_eq!(log.leased_tasks().await.expect("read"), [Arc::from("b")]);
        // The task was claimed again before a server that lags behind removes the lease of the first claim.
        log.renew_leases(std::slice::from_ref(&later)).await.expect("renewed");
        log.forget_leases(&ended).await.expect("nothing to remove");
        assert_eq!(log.read_leases(&["a".into()]).await.expect("read"), [later]);
        log.forget_leases(&[]).await.expect("nothing to remove");
    }
}
