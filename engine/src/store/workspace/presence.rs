//! The presence of agents: the time at which each agent was last seen, and the position up to which the agent has
//! acknowledged its feed. Both values normally only grow.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The stored presence of an agent. An unknown value is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PresenceRecord {
    /// The time of the agent's last request, in milliseconds since the epoch.
    pub last_seen_at: i64,
    /// The position in the log up to which the agent has acknowledged its feed.
    pub acknowledged: u64,
}

impl PresenceRecord {
    /// Merges another record into this one: keeps the later time and the higher position. Ignores a time of the other
    /// record that is after `latest`. If this record's time is after `latest`, the time comes from a wrong clock, and
    /// any valid time of the other record replaces it.
    pub fn merge(&mut self, other: PresenceRecord, latest: i64) {
        let is_later = other.last_seen_at > self.last_seen_at || self.last_seen_at > latest;
        if is_later && other.last_seen_at > 0 && other.last_seen_at <= latest {
            self.last_seen_at = other.last_seen_at;
        }
        self.acknowledged = self.acknowledged.max(other.acknowledged);
    }
}

/// The statement that writes presence rows. A value replaces a stored value only if the new value is larger, because
/// several servers write the same rows. Exception: a stored time after `$latest` comes from a wrong clock, and is
/// replaced by any time up to `$latest`. Times after `$latest` are not written to existing rows, but new rows are
/// written unchanged.
const WRITE: &str = "INSERT INTO presence $rows ON DUPLICATE KEY UPDATE
    last_seen_at = IF $input.last_seen_at > 0 AND $input.last_seen_at <= $latest
        AND (last_seen_at < $input.last_seen_at OR last_seen_at > $latest) { $input.last_seen_at } ELSE { last_seen_at },
    acknowledged = IF acknowledged < $input.acknowledged { $input.acknowledged } ELSE { acknowledged }
    RETURN NONE";

impl DatabaseReader {
    /// Returns the stored presence of all agents, by agent id.
    pub async fn read_presence(&self) -> Result<Vec<(Arc<str>, PresenceRecord)>> {
        self.read_all("SELECT *, record::id(id) AS agent FROM presence", [], read).await
    }

    /// Returns the presence that was written after `since`, a time of the store's clock in milliseconds since the
    /// epoch. The result may also contain presence that was written shortly before `since`. If `since` is `None`,
    /// returns all presence. Also returns the time to pass as `since` to the next read.
    pub async fn read_presence_since(&self, since: Option<i64>) -> Result<(Vec<(Arc<str>, PresenceRecord)>, i64)> {
        let condition = if since.is_some() { "WHERE changed > $since" } else { "" };
        let statements =
            format!("RETURN time::millis(time::now()); SELECT *, record::id(id) AS agent FROM presence {condition}");
        let since = since.map_or(Record::None, |since| convert::integer(self.with_overlap(since)));
        let found = self.query(&statements, [("since", since)]).await?;
        let [now, rows] = found.as_slice() else {
            return Err(Error::corrupt("the statements that read the presence of agents did not return two results"));
        };
        Ok((convert::list(Some(rows))?.map(read).collect::<Result<_>>()?, convert::int(now)?))
    }
}

impl Database {
    /// Merges the presence of agents into the stored rows. Ignores times after `latest`, except for agents without a
    /// stored row.
    pub async fn write_presence(&self, rows: &[(Arc<str>, PresenceRecord)], latest: i64) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let values = [("rows", convert::array(rows.iter().map(row))), ("latest", convert::integer(latest))];
        self.query_again(WRITE, values).await.map(drop)
    }

    /// Removes the presence of deleted agents.
    pub async fn forget_presence(&self, agents: &[Arc<str>]) -> Result<()> {
        let ids = agents.iter().map(|agent| convert::record_id("presence", agent.to_string()));
        self.query_again("DELETE $ids RETURN NONE", [("ids", convert::array(ids))]).await.map(drop)
    }
}

fn row((agent, record): &(Arc<str>, PresenceRecord)) -> Record {
    convert::object([
        ("id", convert::record_id("presence", agent.to_string())),
        ("last_seen_at", convert::integer(record.last_seen_at)),
        ("acknowledged", convert::integer(record.acknowledged)),
    ])
}

fn read(record: &Record) -> Result<(Arc<str>, PresenceRecord)> {
    let agent: Arc<str> = convert::text_field(record, "agent")?.into();
    let last_seen_at = convert::int_field(record, "last_seen_at")?;
    let acknowledged = convert::unsigned_field(record, "acknowledged").map_err(|_| {
        Error::corrupt(format!("the acknowledged position of agent '{agent}' is missing or not an unsigned integer"))
    })?;
    Ok((agent, PresenceRecord { last_seen_at, acknowledged }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stored_presence_keeps_the_latest_valid_time_and_the_highest_acknowledged_position() {
        let log = Database::log_in_memory().await;
        let write = async |agent: &str, last_seen_at, acknowledged| {
            let rows = [(Arc::from(agent), PresenceRecord { last_seen_at, acknowledged })];
            log.write_presence(&rows, 100).await.expect("written");
        };
        write("a", 10, 0).await;
        write("a", 5, 7).await;
        write("b", 1, 1).await;
        write("a", 12, 3).await;
        write("a", 101, 0).await;
        let mut found = log.read_presence().await.expect("read");
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [("a", 12, 7), ("b", 1, 1)];
        let expected = expected.map(|(agent, last_seen_at, acknowledged)| {
            (Arc::from(agent), PresenceRecord { last_seen_at, acknowledged })
        });
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_valid_time_replaces_a_time_in_the_future() {
        let log = Database::log_in_memory().await;
        let write = async |last_seen_at, latest| {
            let rows = [(Arc::from("a"), PresenceRecord { last_seen_at, acknowledged: 0 })];
            log.write_presence(&rows, latest).await.expect("written");
            log.read_presence().await.expect("read").first().map(|(_, record)| record.last_seen_at)
        };
        // The clock was ahead and was then corrected.
        assert_eq!(write(5_000, 6_000).await, Some(5_000));
        assert_eq!(write(1_000, 2_000).await, Some(1_000));
        assert_eq!(write(900, 2_000).await, Some(1_000));
        let mut known = PresenceRecord { last_seen_at: 5_000, acknowledged: 3 };
        known.merge(PresenceRecord { last_seen_at: 0, acknowledged: 4 }, 2_000);
        assert_eq!(known, PresenceRecord { last_seen_at: 5_000, acknowledged: 4 });
        known.merge(PresenceRecord { last_seen_at: 1_000, acknowledged: 2 }, 2_000);
        known.merge(PresenceRecord { last_seen_at: 5_000, acknowledged: 0 }, 2_000);
        assert_eq!(known, PresenceRecord { last_seen_at: 1_000, acknowledged: 4 });
    }
}
