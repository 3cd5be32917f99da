//! Counts the bytes of a workspace's files. Records bytes that no file refers to: uploads in progress, and bytes to be
//! removed.
//!
//! The record of an upload is created before the first byte is written. The record exists until a file refers to the
//! upload, or until the bytes of a canceled upload were removed. If a file refers to the upload, the record is deleted
//! in the transaction that appends the file's events ([`super::append::AppendBatch`]). The transaction that replaces or
//! deletes a file also records the file's previous bytes for removal. All bytes without a file can therefore be found,
//! even after a crash.

use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::Value as Record;

use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The maximum number of uploads that one call of [`Database::take_leftovers`] returns.
const BATCH_SIZE: usize = 200;
/// The storage limit of a workspace for which no limit is set, in bytes. The value is the largest integer that the
/// store can represent.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// The result of reserving storage for an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    Reserved,
    /// The reservation would exceed the limit.
    Exceeded,
    /// The upload was canceled, for example by another server after the lease of the upload had expired.
    Lost,
}

/// An upload in progress.
#[derive(Debug, Clone)]
pub struct Upload {
    pub id: Arc<str>,
    /// The id of the server that receives the upload.
    pub owner: Arc<str>,
    /// The time for which the upload counts as active after each renewal.
    pub lease: Duration,
}

/// The uploads that no file refers to.
#[derive(Debug)]
pub struct Leftovers {
    /// The uploads whose bytes are to be removed: at most [`BATCH_SIZE`].
    pub uploads: Vec<Leftover>,
    /// Whether uploads are in progress. These uploads may be abandoned later.
    pub has_active: bool,
}

/// An upload that no file refers to, and whose stored bytes are to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub upload_id: Arc<str>,
    /// The id of the multipart upload in the object store. Parts of the multipart upload may still exist.
    pub parts_id: Option<Arc<str>>,
}

impl DatabaseReader {
    /// Returns the uploads among `ids` that are in progress. Only the bytes of these uploads can still become the bytes
    /// of a file.
    pub async fn uploads_under_way(&self, ids: &[Arc<str>]) -> Result<Vec<Arc<str>>> {
        let ids = convert::array(ids.iter().map(|id| upload_id(id)));
        let statement = "SELECT VALUE record::id(id) FROM $ids WHERE state = 'writing'";
        let wrong = || Error::corrupt("the id of an upload is not a string");
        self.read_all(statement, [("ids", ids)], |id| convert::text_of(id).ok_or_else(wrong)).await
    }

    /// Returns the used storage of the workspace, in bytes: files, uploads in progress, and bytes to be removed.
    pub async fn used_bytes(&self) -> Result<u64> {
        convert::count_in(self.query("SELECT VALUE bytes FROM ONLY file_usage:all", []).await?.first())
    }
}

impl Database {
    /// Reserves storage for `more` bytes of an upload, and renews the lease of the upload. `most` is the limit for the
    /// whole workspace, in bytes. If `most` is `None`, the limit is [`MAX_BYTES`]. If `first` is set, creates the
    /// record of the upload.
    pub async fn reserve(&self, upload: &Upload, more: u64, first: bool, most: Option<u64>) -> Result<Reservation> {
        // A client chooses `$more`, so only a difference is computed: the sum could be larger than any integer.
        let statement = "
            IF !$first AND (SELECT VALUE state FROM ONLY $id) != 'writing' { RETURN 'lost' }
            ELSE IF ((SELECT VALUE bytes FROM ONLY file_usage:all) ?? 0) > $most - $more {
                RETURN 'exceeded'
            } ELSE {
                UPSERT file_usage:all SET bytes = (bytes ?? 0) + $more RETURN NONE;
                UPSERT $id SET state = 'writing', owner = $owner, bytes = (bytes ?? 0) + $more,
                    until = time::now() + $lease RETURN NONE;
                RETURN 'reserved'
            }";
        let values = [
            ("id", upload_id(&upload.id)),
            ("owner", convert::text(&upload.owner)),
            ("lease", Record::Duration(upload.lease.into())),
            ("more", convert::integer(more)),
            ("first", Record::Bool(first)),
            ("most", convert::integer(most.unwrap_or(MAX_BYTES))),
        ];
        let answered = self.query_again(statement, values).await?;
        match answered.last() {
            Some(Record::String(text)) if text == "reserved" => Ok(Reservation::Reserved),
            Some(Record::String(text)) if text == "exceeded" => Ok(Reservation::Exceeded),
            Some(Record::String(text)) if text == "lost" => Ok(Reservation::Lost),
            other => {
                let expected = "`reserved`, `exceeded` or `lost`";
                Err(Error::corrupt(format!("reserving storage returned {other:?}; expected {expected}")))
            }
        }
    }

    /// Reduces the reserved storage of an upload to the number of received bytes. Returns whether the upload is still
    /// in progress.
    pub async fn settle(&self, upload: &Upload, bytes: u64) -> Result<bool> {
        let statement = "
            IF (SELECT VALUE state FROM ONLY $id) != 'writing' { RETURN false } ELSE {
                LET $beyond = (SELECT VALUE bytes FROM ONLY $id) - $bytes;
                UPDATE file_usage:all SET bytes -= $beyond RETURN NONE;
                UPDATE $id SET bytes = $bytes RETURN NONE;
                RETURN true
            }";
        let values = [("id", upload_id(&upload.id)), ("bytes", convert::integer(bytes))];
        let answered = self.query_again(statement, values).await?;
        Ok(matches!(answered.last(), Some(Record::Bool(true))))
    }

    /// Renews the lease of an upload. Returns whether the upload is still in progress.
    pub async fn renew_upload(&self, upload: &Upload) -> Result<bool> {
        let statement = "UPDATE $id SET until = time::now() + $lease WHERE state = 'writing' RETURN VALUE state";
        let values = [("id", upload_id(&upload.id)), ("lease", Record::Duration(upload.lease.into()))];
        convert::has_rows(&self.query_again(statement, values).await?)
    }

    /// Records the id that the object store assigned to the multipart upload. Returns whether the upload is still in
    /// progress.
    pub async fn note_parts(&self, upload: &Upload, parts_id: &str) -> Result<bool> {
        let statement = "UPDATE $id SET parts_id = $parts_id WHERE state = 'writing' RETURN VALUE state";
        let values = [("id", upload_id(&upload.id)), ("parts_id", convert::text(parts_id))];
        convert::has_rows(&self.query_again(statement, values).await?)
    }

    /// Cancels an upload of any server, so that no file can refer to the upload any more. Returns whether the upload
    /// was in progress.
    pub async fn give_up_upload(&self, id: &str) -> Result<bool> {
        let statement = "UPDATE $id SET state = 'freed' WHERE state = 'writing' RETURN VALUE state";
        convert::has_rows(&self.query_again(statement, [("id", upload_id(id))]).await?)
    }

    /// Cancels abandoned uploads, and returns the bytes to be removed. An upload is abandoned if its lease has expired.
    /// If no other process writes to the store, the uploads of all other servers are abandoned, too.
    pub async fn take_leftovers(&self, owner: &str) -> Result<Leftovers> {
        let statement = "
            UPDATE upload SET state = 'freed'
                WHERE state = 'writing' AND (until <= time::now() OR ($alone AND owner != $owner)) RETURN NONE;
            SELECT VALUE state FROM upload WHERE state = 'writing' LIMIT 1;
            SELECT record::id(id) AS upload_id, parts_id FROM upload WHERE state = 'freed' LIMIT $limit";
        let values = [
            ("alone", Record::Bool(self.exclusive)),
            ("owner", convert::text(owner)),
            ("limit", convert::integer(BATCH_SIZE)),
        ];
        let found = self.query_again(statement, values).await?;
        let leftover = |record: &Record| {
            let upload_id = convert::text_field(record, "upload_id")?.into();
            Ok(Leftover { upload_id, parts_id: convert::optional_text_field(record, "parts_id") })
        };
        let [.., active, uploads] = found.as_slice() else {
            return Err(Error::corrupt("the statements that read the unused uploads returned fewer than two results"));
        };
        let has_active = convert::list(Some(active))?.next().is_some();
        Ok(Leftovers { uploads: convert::list(Some(uploads))?.map(leftover).collect::<Result<_>>()?, has_active })
    }

    /// Deletes the record of an upload whose bytes were removed, and releases the upload's storage. Does nothing if the
    /// upload is in progress.
    pub async fn forget_upload(&self, id: &str) -> Result<()> {
        let statement = "
            BEGIN;
            LET $gone = (DELETE $id WHERE state = 'freed' RETURN BEFORE);
            UPDATE file_usage:all SET bytes -= math::sum($gone.bytes) RETURN NONE;
            COMMIT;";
        self.query_again(statement, [("id", upload_id(id))]).await.map(drop)
    }
}

pub(super) fn upload_id(id: &str) -> Record {
    convert::record_id("upload", id.to_owned())
}

/// Returns the record of an upload that a file no longer refers to.
pub(super) fn freed_record(id: &str, bytes: u64) -> Record {
    convert::object([("id", upload_id(id)), ("state", convert::text("freed")), ("bytes", convert::integer(bytes))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn upload(id: &str, owner: &str, lease: Duration) -> Upload {
        Upload { id: id.into(), owner: owner.into(), lease }
    }

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn reserved_bytes_stay_within_the_quota_and_are_released_only_once() {
        let database = Database::log_in_memory().await;
        let (one, two) = (upload("1", "a", LONG), upload("2", "a", LONG));
        assert_eq!(database.reserve(&one, 60, true, Some(100)).await.expect("a result"), Reservation::Reserved);
        assert_eq!(database.reserve(&two, 41, true, Some(100)).await.expect("a result"), Reservation::Exceeded);
        assert_eq!(database.reserve(&two, 40, true, Some(100)).await.expect("a result"), Reservation::Reserved);
        assert_eq!(database.reserve(&one, 1, false, Some(100)).await.expect("a result"), Reservation::Exceeded);
        assert_eq!(database.reserve(&one, 1, false, None).await.expect("a result"), Reservation::Reserved);
        assert_eq!(database.used_bytes().await.expect("counted"), 101);
        assert!(database.settle(&two, 15).await.expect("settled"));
        assert_eq!(database.used_bytes().await.expect("counted"), 76);
        // A canceled upload gets no more storage, and releases its storage only once.
        assert!(database.give_up_upload("1").await.expect("given up"));
        assert!(!database.give_up_upload("1").await.expect("nothing"));
        assert_eq!(database.reserve(&one, 1, false, None).await.expect("a result"), Reservation::Lost);
        assert!(!database.settle(&one, 0).await.expect("a result"));
        for _ in 0..2 {
            database.forget_upload("1").await.expect("forgotten");
            assert_eq!(database.used_bytes().await.expect("counted"), 15);
        }
        // An upload in progress keeps its record.
        database.forget_upload("2").await.expect("nothing");
        assert_eq!(database.used_bytes().await.expect("counted"), 15);
    }

    #[tokio::test]
    async fn reservations_beyond_the_maximum_number_of_bytes_are_rejected() {
        let database = Database::log_in_memory().await;
        let (one, two) = (upload("1", "a", LONG), upload("2", "a", LONG));
        assert_eq!(database.reserve(&one, 1, true, None).await.expect("a result"), Reservation::Reserved);
        for more in [MAX_BYTES, u64::MAX] {
            assert_eq!(database.reserve(&two, more, true, None).await.expect("a result"), Reservation::Exceeded);
            assert_eq!(database.reserve(&two, more, true, Some(100)).await.expect("a result"), Reservation::Exceeded);
        }
        assert_eq!(database.reserve(&two, MAX_BYTES - 1, true, None).await.expect("a result"), Reservation::Reserved);
        assert_eq!(database.reserve(&one, 1, false, None).await.expect("a result"), Reservation::Exceeded);
        assert_eq!(database.used_bytes().await.expect("counted"), MAX_BYTES);
    }

    #[tokio::test]
    async fn only_abandoned_uploads_are_canceled() {
        let store = Store::connect("mem://").await.expect("a store");
        let (alone, shared) = (store.workspace("w").await, store.share().workspace("w").await);
        let (alone, shared) = (alone.expect("a database"), shared.expect("a database"));
        for upload in [upload("dead", "b", Duration::ZERO), upload("other", "b", LONG), upload("own", "a", LONG)] {
            assert_eq!(alone.reserve(&upload, 1, true, None).await.expect("a result"), Reservation::Reserved);
            assert!(alone.note_parts(&upload, "p").await.expect("noted"));
        }
        let ids = |leftovers: Leftovers| {
            let ids = leftovers.uploads.into_iter().map(|leftover| leftover.upload_id.to_string());
            (ids.collect::<Vec<_>>().join(" "), leftovers.has_active)
        };
        assert_eq!(ids(shared.take_leftovers("a").await.expect("taken")), ("dead".to_owned(), true));
        assert!(!alone.renew_upload(&upload("dead", "b", LONG)).await.expect("a result"));
        assert!(alone.renew_upload(&upload("other", "b", LONG)).await.expect("renewed"));
        // If only one process uses the store, no other server can be active.
        assert_eq!(ids(alone.take_leftovers("a").await.expect("taken")), ("dead other".to_owned(), true));
        let upload_ids = ["own".into(), "other".into(), "never".into()];
        assert_eq!(alone.uploads_under_way(&upload_ids).await.expect("read"), ["own".into()]);
        assert!(alone.give_up_upload("own").await.expect("given up"));
        assert_eq!(ids(alone.take_leftovers("a").await.expect("taken")), ("dead other own".to_owned(), false));
    }
}
