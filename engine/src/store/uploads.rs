//! The bytes of a workspace's files, counted, and those that no file names: uploads under way, and what is to be removed.
//!
//! An upload's record is there from before its first byte until a file names it, which is decided together with the events
//! that say so ([`super::log::Batch`]). When a file is replaced or deleted, those events make a record of the bytes that it
//! leaves. So what no file names can always be found, whoever died.

use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::Value as Record;

use super::{Database, Error, Result, convert};

/// Records that are looked through at once.
const AT_ONCE: usize = 200;

/// What became of a request for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Reserved,
    /// There is not as much.
    Exceeded,
    /// The upload was given up by another server, which took this one for dead.
    Lost,
}

/// An upload under way.
#[derive(Debug, Clone)]
pub struct Upload {
    pub id: Arc<str>,
    /// The server that does it.
    pub owner: Arc<str>,
    /// How long it is taken for alive after it was last heard of.
    pub lease: Duration,
}

/// Bytes that no file names any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub upload_id: Arc<str>,
    /// An upload in parts whose parts are there still.
    pub parts_id: Option<Arc<str>>,
}

impl Database {
    /// Reserves room for so many more bytes of an upload, within what the workspace may have in all. The first time makes
    /// the upload's record.
    pub async fn reserve(&self, upload: &Upload, more: u64, first: bool, most: Option<u64>) -> Result<Room> {
        let statement = "
            IF !$first AND (SELECT VALUE state FROM ONLY $id) != 'writing' { RETURN 'lost' }
            ELSE IF $most != NONE AND ((SELECT VALUE bytes FROM ONLY file_usage:all) ?? 0) + $more > $most {
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
            ("most", most.map_or(Record::None, convert::integer)),
        ];
        let answered = self.query_again(statement, values).await?;
        match answered.last() {
            Some(Record::String(text)) if text == "reserved" => Ok(Room::Reserved),
            Some(Record::String(text)) if text == "exceeded" => Ok(Room::Exceeded),
            Some(Record::String(text)) if text == "lost" => Ok(Room::Lost),
            other => Err(Error::Corrupt(format!("a reservation is answered {other:?}"))),
        }
    }

    /// Gives back what was reserved beyond the bytes that came.
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

    /// Says that an upload goes on. Returns whether it may.
    pub async fn renew_upload(&self, upload: &Upload) -> Result<bool> {
        let statement = "UPDATE $id SET until = time::now() + $lease WHERE state = 'writing' RETURN VALUE state";
        let values = [("id", upload_id(&upload.id)), ("lease", Record::Duration(upload.lease.into()))];
        let renewed = self.query_again(statement, values).await?;
        Ok(convert::list(renewed.first())?.next().is_some())
    }

    /// Notes under which id the parts of an upload are sent. Returns whether it may go on.
    pub async fn note_parts(&self, upload: &Upload, parts_id: &str) -> Result<bool> {
        let statement = "UPDATE $id SET parts_id = $parts_id WHERE state = 'writing' RETURN VALUE state";
        let values = [("id", upload_id(&upload.id)), ("parts_id", convert::text(parts_id))];
        let noted = self.query_again(statement, values).await?;
        Ok(convert::list(noted.first())?.next().is_some())
    }

    /// Those of some uploads that may still be named by a file.
    pub async fn uploads_under_way(&self, ids: &[Arc<str>]) -> Result<Vec<Arc<str>>> {
        let ids: Vec<Record> = ids.iter().map(|id| upload_id(id)).collect();
        let statement = "SELECT VALUE record::id(id) FROM $ids WHERE state = 'writing'";
        let found = self.query(statement, [("ids", Record::Array(ids.into()))]).await?;
        let text = |record: &Record| match record {
            Record::String(text) => Ok(Arc::from(text.as_str())),
            _ => Err(Error::Corrupt("the id of an upload is no text".into())),
        };
        convert::list(found.first())?.map(text).collect()
    }

    /// Gives an upload up that is under way, whoever does it: no file can name it from here on.
    /// Returns whether there is anything to give up.
    pub async fn give_up_upload(&self, id: &str) -> Result<bool> {
        let statement = "UPDATE $id SET state = 'freed' WHERE state = 'writing' RETURN VALUE state";
        let given_up = self.query_again(statement, [("id", upload_id(id))]).await?;
        Ok(convert::list(given_up.first())?.next().is_some())
    }

    /// Bytes that no file names and nobody is about to: what was left by files, and by uploads that were not heard of for
    /// their lease, or, where no other process writes, that are another process's. These are given up.
    pub async fn take_leftovers(&self, owner: &str) -> Result<Vec<Leftover>> {
        let statement = "
            UPDATE upload SET state = 'freed'
                WHERE state = 'writing' AND (until <= time::now() OR ($alone AND owner != $owner)) RETURN NONE;
            SELECT record::id(id) AS upload_id, parts_id FROM upload WHERE state = 'freed' LIMIT $limit";
        let values = [
            ("alone", Record::Bool(self.exclusive)),
            ("owner", convert::text(owner)),
            ("limit", convert::integer(AT_ONCE)),
        ];
        let found = self.query_again(statement, values).await?;
        let leftover = |record: &Record| {
            let upload_id = convert::text_field(record, "upload_id")?.into();
            Ok(Leftover { upload_id, parts_id: convert::optional_text_field(record, "parts_id") })
        };
        convert::list(found.last())?.map(leftover).collect()
    }

    /// Forgets bytes that were removed, and gives their room back.
    pub async fn forget_upload(&self, id: &str) -> Result<()> {
        let statement = "
            BEGIN;
            LET $gone = (DELETE $id WHERE state = 'freed' RETURN BEFORE);
            UPDATE file_usage:all SET bytes -= math::sum($gone.bytes) RETURN NONE;
            COMMIT;";
        self.query_again(statement, [("id", upload_id(id))]).await.map(drop)
    }

    /// How many bytes are counted: those of files, of uploads under way, and of what is to be removed.
    pub async fn used_bytes(&self) -> Result<u64> {
        let found = self.query("SELECT VALUE bytes FROM ONLY file_usage:all", []).await?;
        match found.first() {
            Some(record @ Record::Number(_)) => Ok(convert::int(record)?.max(0) as u64),
            _ => Ok(0),
        }
    }
}

pub(super) fn upload_id(id: &str) -> Record {
    convert::record_id("upload", id.to_owned())
}

/// The record of bytes that a file leaves.
pub(super) fn freed_record(id: &str, bytes: u64) -> Record {
    Record::Object(convert::fields([
        ("id", upload_id(id)),
        ("state", convert::text("freed")),
        ("bytes", convert::integer(bytes)),
    ]))
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
    async fn room_is_reserved_as_long_as_there_is_any() {
        let store = Store::connect("mem://").await.expect("a store");
        let database = store.workspace("w").await.expect("a database");
        let (one, two) = (upload("1", "a", LONG), upload("2", "a", LONG));
        assert_eq!(database.reserve(&one, 60, true, Some(100)).await.expect("asked"), Room::Reserved);
        assert_eq!(database.reserve(&two, 41, true, Some(100)).await.expect("asked"), Room::Exceeded);
        assert_eq!(database.reserve(&two, 40, true, Some(100)).await.expect("asked"), Room::Reserved);
        assert_eq!(database.reserve(&one, 1, false, Some(100)).await.expect("asked"), Room::Exceeded);
        assert_eq!(database.reserve(&one, 1, false, None).await.expect("asked"), Room::Reserved);
        assert_eq!(database.used_bytes().await.expect("counted"), 101);
        assert!(database.settle(&two, 15).await.expect("settled"));
        assert_eq!(database.used_bytes().await.expect("counted"), 76);
        // What was given up gets no more room, and gives back what it had, once.
        assert!(database.give_up_upload("1").await.expect("given up"));
        assert!(!database.give_up_upload("1").await.expect("nothing"));
        assert_eq!(database.reserve(&one, 1, false, None).await.expect("asked"), Room::Lost);
        assert!(!database.settle(&one, 0).await.expect("asked"));
        for _ in 0..2 {
            database.forget_upload("1").await.expect("forgotten");
            assert_eq!(database.used_bytes().await.expect("counted"), 15);
        }
        // One that is under way is not forgotten.
        database.forget_upload("2").await.expect("nothing");
        assert_eq!(database.used_bytes().await.expect("counted"), 15);
    }

    #[tokio::test]
    async fn uploads_of_the_dead_are_taken_and_those_of_the_living_left() {
        let store = Store::connect("mem://").await.expect("a store");
        let (alone, shared) = (store.workspace("w").await, store.share().workspace("w").await);
        let (alone, shared) = (alone.expect("a database"), shared.expect("a database"));
        for upload in [upload("dead", "b", Duration::ZERO), upload("other", "b", LONG), upload("own", "a", LONG)] {
            assert_eq!(alone.reserve(&upload, 1, true, None).await.expect("asked"), Room::Reserved);
            assert!(alone.note_parts(&upload, "p").await.expect("noted"));
        }
        let ids = |left: Vec<Leftover>| left.into_iter().map(|left| left.upload_id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(shared.take_leftovers("a").await.expect("taken")), ["dead"]);
        assert!(!alone.renew_upload(&upload("dead", "b", LONG)).await.expect("asked"));
        assert!(alone.renew_upload(&upload("other", "b", LONG)).await.expect("renewed"));
        // Who is alone on the store knows that nobody else lives.
        assert_eq!(ids(alone.take_leftovers("a").await.expect("taken")), ["dead", "other"]);
        let asked = ["own".into(), "other".into(), "never".into()];
        assert_eq!(alone.uploads_under_way(&asked).await.expect("read"), ["own".into()]);
    }
}
