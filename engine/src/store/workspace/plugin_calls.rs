//! The counts of plugin calls, one record for each server. Only used if several servers share the store.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use surrealdb::types::Value as Record;

use crate::store::{Database, DatabaseReader, Result, convert};

/// The statements that remove the records of servers that are not alive, and return the record of one server.
const BEGIN: &str = "
DELETE plugin_calls WHERE record::id(id) NOT IN $alive RETURN NONE;
SELECT VALUE calls FROM $server;";

impl DatabaseReader {
    /// Returns the counts of all servers, by the ids of the servers.
    pub async fn read_plugin_calls<T: DeserializeOwned>(&self) -> Result<Vec<(Arc<str>, T)>> {
        let found = self.query("SELECT record::id(id) AS server, calls FROM plugin_calls", []).await?;
        let pair = |record: &Record| {
            let calls = convert::parse_json(convert::text_field(record, "calls")?)?;
            Ok((convert::text_field(record, "server")?.into(), calls))
        };
        convert::list(found.first())?.map(pair).collect()
    }
}

impl Database {
    /// Removes the counts of all servers that are not in `alive`. Returns the stored counts of the server `server`, or
    /// `None` if nothing is stored.
    pub async fn begin_plugin_calls<T: DeserializeOwned>(&self, server: &str, alive: &[Arc<str>]) -> Result<Option<T>> {
        let alive: Vec<Record> = alive.iter().map(|server| convert::text(server)).collect();
        let values = [("server", convert::record_id("plugin_calls", server)), ("alive", Record::Array(alive.into()))];
        let found = self.query_again(BEGIN, values).await?;
        match convert::list(found.last())?.next() {
            Some(Record::String(calls)) => convert::parse_json(calls).map(Some),
            _ => Ok(None),
        }
    }

    /// Replaces the counts of a server.
    pub async fn write_plugin_calls(&self, server: &str, calls: &impl Serialize) -> Result<()> {
        let values = [
            ("server", convert::record_id("plugin_calls", server)),
            ("calls", Record::String(convert::json_text(calls)?)),
        ];
        self.query_again("UPSERT $server SET calls = $calls RETURN NONE", values).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn a_server_continues_its_counts_and_removes_those_of_dead_servers() {
        let store = Store::connect("mem://").await.expect("memory");
        let db = store.workspace("00000000-0000-0000-0000-000000000001").await.expect("a database");
        let alive: [Arc<str>; 2] = ["a".into(), "b".into()];
        assert_eq!(db.begin_plugin_calls::<u64>("a", &alive).await.expect("read"), None);
        for (server, runs) in [("a", 1), ("a", 2), ("b", 5)] {
            db.write_plugin_calls(server, &runs).await.expect("written");
        }
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read"), [("a".into(), 2), ("b".into(), 5)]);
        assert_eq!(db.begin_plugin_calls::<u64>("b", &alive[1..]).await.expect("read"), Some(5));
        assert_eq!(db.read_plugin_calls::<u64>().await.expect("read"), [("b".into(), 5)]);
    }
}
