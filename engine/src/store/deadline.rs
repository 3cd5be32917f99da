//! The deadline of a transaction on a remote store.
//!
//! The client of the database keeps queries while the connection is lost, and sends the queries when the connection is
//! back. By then the sender has reported an unknown outcome, and other writers may have changed the same records. Each
//! transaction therefore has a deadline, which is a time of the store's clock. A transaction that begins after its
//! deadline fails and writes nothing. Transactions have no deadline while the time of the store is not known.
//! Statements that write without `BEGIN` are sent as one transaction. Migrations are transactions too. Outside
//! transactions, statements that define tables and databases have no deadline, because these statements change no
//! existing data.

use std::borrow::Cow;
use std::time::Duration;

use parking_lot::Mutex;
use surrealdb::types::{Value as Record, Variables};
use tokio::time::Instant;

use super::convert;

/// The error text of a transaction that begins after its deadline.
pub const LATE: &str = "after its deadline";
/// The result of the statement that checks the deadline.
const IN_TIME: &str = "before its deadline";
/// The name of the bound value that contains the deadline.
const DEADLINE: &str = "transaction_deadline";
const BEGIN: &str = "BEGIN;";

/// The time of a remote store, as last reported by the store.
#[derive(Debug, Default)]
pub struct StoreTime {
    /// A time of the store in milliseconds, and the local time at which this process received the time of the store.
    received: Mutex<Option<(i64, Instant)>>,
}

impl StoreTime {
    /// Sets the time that the store has just reported, in milliseconds.
    pub fn set(&self, now_ms: i64) {
        *self.received.lock() = Some((now_ms, Instant::now()));
    }

    /// Discards the time. Transactions have no deadline until the time is set again.
    pub fn forget(&self) {
        *self.received.lock() = None;
    }

    /// Adds a check to statements that begin a transaction. With the check, the transaction fails if it begins later
    /// than `timeout` from now. Returns the statements unchanged if they do not begin a transaction, or if the time of
    /// the store is not known.
    pub fn limit<'a>(
        &self,
        timeout: Duration,
        statements: &'a str,
        mut values: Variables,
    ) -> (Cow<'a, str>, Variables) {
        let (Some(rest), Some((received_ms, at))) =
            (statements.trim_start().strip_prefix(BEGIN), *self.received.lock())
        else {
            return (statements.into(), values);
        };
        let left_ms = i64::try_from((at.elapsed() + timeout).as_millis()).unwrap_or(i64::MAX);
        values.insert(DEADLINE, convert::integer(received_ms.saturating_add(left_ms)));
        let check = format!(
            "IF time::millis(time::now()) > ${DEADLINE} {{ THROW 'the transaction begins {LATE}' }} ELSE {{ '{IN_TIME}' }};"
        );
        ([BEGIN, &check, rest].concat().into(), values)
    }
}

/// Wraps statements in one transaction, so that a deadline can apply to the statements. Only the last statement may be
/// a `RETURN`, because a transaction runs no statement after `RETURN`. Returns `None` if `statements` already begins
/// with `BEGIN`. The results of the transaction begin with the result of `BEGIN`, and end with the result of `COMMIT`.
pub fn in_transaction(statements: &str) -> Option<String> {
    let statements = statements.trim().trim_end_matches(';');
    (!statements.starts_with(BEGIN)).then(|| [BEGIN, statements, "; COMMIT;"].concat())
}

/// Removes the result of the check that [`StoreTime::limit`] has added after `BEGIN`.
pub fn without_check(mut results: Vec<Record>) -> Vec<Record> {
    if matches!(results.get(1), Some(Record::String(text)) if text == IN_TIME) {
        results.remove(1);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::super::availability::TIMEOUT;
    use super::super::connections::Connections;
    use super::super::error::Error;
    use super::super::session::StoreSession;
    use super::super::workspace::uploads::{Reservation, Upload};
    use super::*;
    use crate::clock::{Clock, SystemClock};
    use crate::model::access::WorkspaceRecord;

    /// Returns a store in memory that has deadlines like a remote store.
    async fn remote() -> Store {
        let store = Store::connect("mem://").await.expect("a store");
        let connections = Connections::open("mem://", TIMEOUT).await.expect("a store");
        Store { root: StoreSession::remote(connections).await.expect("a session"), exclusive: false, ..store }
    }

    #[tokio::test]
    async fn a_transaction_that_begins_after_its_deadline_writes_nothing() {
        let control = remote().await.control().await.expect("a database");
        let write = "BEGIN; UPSERT a:b SET c = 1 RETURN NONE; COMMIT;";
        control.query("DEFINE TABLE a SCHEMALESS", []).await.expect("a table");
        let read = async || control.query("SELECT VALUE c FROM a", []).await.expect("read");
        control.session.set_time(0);
        assert!(matches!(control.query(write, []).await, Err(Error::Conflict)));
        assert_eq!(read().await, [Record::Array(Vec::<Record>::new().into())]);
        // The next attempt does not use the wrong time.
        control.query(write, []).await.expect("written");
        control.session.set_time(0);
        control.query_again("UPSERT a:b SET c = 2 RETURN NONE", []).await.expect("written by the second attempt");
        assert_eq!(read().await, [Record::Array(vec![Record::from_t(2)].into())]);
    }

    #[tokio::test]
    async fn statements_that_miss_their_deadline_succeed_on_the_second_attempt() {
        let store = remote().await;
        let control = store.control().await.expect("a database");
        let in_use = async || {
            // The first attempt began after its deadline, so the wrong time is no longer used.
            control.query("BEGIN; UPSERT a:c SET c = 1 RETURN NONE; COMMIT;", []).await.expect("written");
        };
        control.query("DEFINE TABLE a SCHEMALESS", []).await.expect("a table");
        control.session.set_time(0);
        let statements = "UPSERT a:b SET c = 1 RETURN VALUE c; LET $x = 2; RETURN $x;";
        let found = control.query_again(statements, []).await.expect("written by the second attempt");
        assert_eq!(found, [Record::Array(vec![Record::from_t(1)].into()), Record::None, Record::from_t(2)]);
        in_use().await;
        control.session.set_time(0);
        let beat = control.beat("s", true, 0).await.expect("written by the second attempt");
        assert_eq!(beat.servers, [std::sync::Arc::from("s")]);
        in_use().await;
        let db = store.workspace("0-1").await.expect("a database");
        let upload = Upload { id: "u".into(), owner: "s".into(), lease: TIMEOUT };
        control.session.set_time(0);
        assert_eq!(db.reserve(&upload, 5, true, None).await.expect("a result"), Reservation::Reserved);
        control.session.set_time(0);
        assert!(db.settle(&upload, 3).await.expect("a result"));
        assert_eq!(db.used_bytes().await.expect("counted"), 3);
        in_use().await;
    }

    #[tokio::test]
    async fn a_deadline_does_not_change_the_results_of_a_transaction() {
        let scripts = [
            "BEGIN; LET $x = 1; RETURN $x = 1; COMMIT;",
            "BEGIN; UPSERT a:b SET c = 1 RETURN VALUE c; COMMIT;",
            "\n BEGIN; UPSERT ONLY a:b SET c = 1 RETURN VALUE c; SELECT VALUE c FROM a; COMMIT;",
        ];
        let control = remote().await.control().await.expect("a database");
        for script in scripts {
            control.session.forget_time();
            let expected = control.query(script, []).await.expect("a result");
            control.session.set_time(SystemClock.now_ms());
            assert_eq!(control.query(script, []).await.expect("a result"), expected, "{script}");
        }
        let found = control.query_again("UPDATE a:b SET c = 3 RETURN VALUE c", []).await.expect("a result");
        assert_eq!(found, [Record::Array(vec![Record::from_t(3)].into())]);
    }

    #[tokio::test]
    async fn a_removal_that_begins_after_its_deadline_keeps_the_database() {
        let store = remote().await;
        let id = "00000000-0000-0000-0000-000000000001";
        let control = store.control().await.expect("a database");
        let workspace =
            WorkspaceRecord { id: id.into(), name: "n".into(), slug: "n".into(), owner_id: "o".into(), created_at: 0 };
        control.restore_workspace(&workspace).await.expect("written");
        let db = store.workspace(id).await.expect("a database");
        db.query("UPSERT a:b SET c = 1", []).await.expect("written");
        control.session.set_time(0);
        let remove = "BEGIN; REMOVE DATABASE ws_00000000000000000000000000000001; COMMIT;";
        let late = control.query(remove, []).await;
        assert!(matches!(late, Err(Error::Conflict)), "{late:?}");
        db.query("SELECT * FROM a", []).await.expect("the database exists");
        control.session.set_time(0);
        store.remove_workspace(id).await.expect("removed by the second attempt");
        db.query("SELECT * FROM a", []).await.expect_err("the database is gone");
    }
}
