//! The counts of plugin calls, one record for each server. Only used if several servers share the store.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use surrealdb::types::Value as Record;

use crate::store::{Database, DatabaseReader, Result, convert};

/// The age at which the counts of a server that is not alive are removed, in milliseconds. Newer counts are kept: a
/// server that has just started may write counts before other servers know that the server is alive.
const KEPT_MS: i64 = 60_000;

/// The statements that remove the old records of servers that are not alive, and return the record of one server.
const BEGIN: &str = "
DELETE plugin_calls WHERE $alive != NONE AND record::id(id) NOT IN $alive
    AND (written_at ?? 0) <= time::millis(time::now()) - $kept RETURN NONE;
SELECT VALUE calls FROM $server;";

impl DatabaseReader {
    /// Returns the counts of all servers, by the ids of the servers.
    pub async fn read_plugin_calls<T: DeserializeOwned>(&self) -> Result<Vec<(Arc<str>, T)>> {
        let pair = |record: &Record| {
            let calls = convert::parse_json(convert::text_field(record, "calls")?)?;
            Ok((convert::text_field(record, "server")?.into(), calls))
        };
        self.read_all("SELECT record::id(id) AS server, calls FROM plugin_calls", [], pair).await
    }
}

impl Database {
    /// Removes the counts of all servers that are not in `alive`, except counts that were written in the last minute.
    /// If `alive` is `None`, the living servers are not known, and nothing is removed. Returns the stored counts of the
    /// server `server`, or `None` if no counts are stored.
    pub async fn begin_plugin_calls<T: DeserializeOwned>(
        &self,
        server: &str,
        alive: Option<&[Arc<str>]>,
    ) -> Result<Option<T>> {
        let values = [
            ("server", convert::record_id("plugin_calls", server)),
            ("alive", alive.map_or(Record::None, convert::texts)),
            ("kept", convert::integer(KEPT_MS)),
        ];
        let found = self.query_again(BEGIN, values).await?;
        match convert::list(found.last())?.next() {
            Some(Record::String(calls)) => convert::parse_json(calls).map(Some),
            _ => Ok(None),
        }
    }

    /// Replaces the stored counts of a server's plugin calls.
    pub async fn write_plugin_calls(&self, server: &str, calls: &impl Serialize) -> Result<()> {
        let values = [
            ("server", convert::record_id("plugin_calls", server)),
            ("calls", Record::String(convert::json_text(calls)?)),
        ];
        let statement = "UPSERT $server SET calls = $calls, written_at = time::millis(time::now()) RETURN NONE";
        self.query_again(statement, values).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn a_starting_server_removes_old_call_counts_of_stopped_servers() {
        let store = Store::connect("mem://").await.expect("memory");
        let db = store.workspace("00000000-0000-0000-0000-000000000001").await.expect("a database");
        let alive: [Arc<str>; 2] = ["a".into(), "b".into()];
        assert_eq!(db.begin_plugin_calls::<u64>("a", Some(&alive)).await.expect("read"), None);
        for (server, runs) in [("a", 1), ("a", 2), ("b", 5)] {
            db.write_plugin_calls(server, &runs).await.expect("written");
        }
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read"), [("a".into(), 2), ("b".into(), 5)]);
        // The server 'a' may have started just now.
        assert_eq!(db.begin_plugin_calls::<u64>("b", Some(&alive[1..])).await.expect("read"), Some(5));
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read").len(), 2);
        db.query("UPDATE plugin_calls SET written_at -= $kept", [("kept", convert::integer(KEPT_MS))])
            .await
            .expect("written");
        assert_eq!(db.begin_plugin_calls::<u64>("b", None).await.expect("read"), Some(5));
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read").len(), 2);
        assert_eq!(db.begin_plugin_calls::<u64>("b", Some(&alive[1..])).await.expect("read"), Some(5));
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read"), [("b".into(), 5)]);
    }
}
