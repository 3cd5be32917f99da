//! Parked steps: steps that wait to be retried or replayed, with the reason and the number of attempts. A step is
//! parked if it failed, or if its plugin was stopped or paused and was therefore not called.

use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use surrealdb::types::{RecordIdKey, RecordIdKeyRange, Value as Record};

use super::graph::id_parts;
use crate::store::{DatabaseReader, Error, Result, convert};

/// The id of a step in processing an event. A step is the call of one hook of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId {
    /// The position of the event.
    pub position: u64,
    pub hook: Arc<str>,
    pub plugin: Arc<str>,
}

/// A step that failed or was not executed, and that waits to be retried or replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedStep {
    pub id: StepId,
    pub reason: Reason,
}

/// The reason why a step is parked, and the event of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub event_id: Arc<str>,
    pub aggregate_id: Arc<str>,
    pub event_type: Arc<str>,
    /// The kind of the failure, such as `thrown`. `circuit_open` if the plugin was stopped or paused and was therefore
    /// not called.
    pub kind: Arc<str>,
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// The version of the plugin when the step was parked.
    pub version: String,
    pub attempts: u32,
    /// The time at which the step was parked, in milliseconds since the epoch.
    pub parked_at: i64,
    /// The time of the next retry, in milliseconds since the epoch. `None` if the step is not retried automatically and
    /// waits until it is replayed on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<i64>,
}

impl StepId {
    /// Returns the id as text, in the form that clients use.
    pub fn text(&self) -> String {
        format!("{}:{}:{}", self.position, self.hook, self.plugin)
    }

    /// Parses an id in the form that clients use. Returns `None` if the text is not such an id.
    pub fn parse(text: &str) -> Option<StepId> {
        let mut parts = text.splitn(3, ':');
        let position = parts.next()?.parse().ok()?;
        let (hook, plugin) = (parts.next()?.into(), parts.next()?.into());
        Some(StepId { position, hook, plugin })
    }

    fn key(&self) -> RecordIdKey {
        convert::key([convert::integer(self.position), convert::text(&self.hook), convert::text(&self.plugin)])
    }

    pub(super) fn record(&self) -> Record {
        convert::record_id("parked", self.key())
    }
}

impl ParkedStep {
    pub(super) fn record(&self) -> Result<Record> {
        Ok(convert::object([
            ("id", self.id.record()),
            ("plugin", convert::text(&self.id.plugin)),
            ("is_retried", Record::Bool(self.reason.retry_at.is_some())),
            ("text", Record::String(convert::json_text(&self.reason)?)),
        ]))
    }
}

impl DatabaseReader {
    /// Returns up to `limit` parked steps of the given plugins after the step `after`, in log order.
    pub async fn read_parked(
        &self,
        plugins: &[Arc<str>],
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<Vec<ParkedStep>> {
        let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.key()));
        let range = convert::record_id("parked", RecordIdKeyRange { start, end: Bound::Unbounded });
        let statement = "SELECT * FROM $range WHERE plugin IN $plugins LIMIT $limit";
        let values = [("range", range), ("plugins", convert::texts(plugins)), ("limit", convert::integer(limit))];
        self.read_all(statement, values, read_parked).await
    }

    /// Returns the parked steps that wait for a retry, in log order. Returns only steps of the given plugins, and at
    /// most `limit` steps.
    pub async fn read_retried(&self, plugins: &[Arc<str>], limit: usize) -> Result<Vec<ParkedStep>> {
        let statement = "SELECT * FROM parked WHERE is_retried = true AND plugin IN $plugins LIMIT $limit";
        let values = [("plugins", convert::texts(plugins)), ("limit", convert::integer(limit))];
        self.read_all(statement, values, read_parked).await
    }

    /// Returns the parked steps of the given plugins for events in a range of positions, in log order.
    pub async fn read_parked_between(
        &self,
        plugins: &[Arc<str>],
        positions: RangeInclusive<u64>,
    ) -> Result<Vec<ParkedStep>> {
        let start = Bound::Included(position_key(*positions.start()));
        let end = match positions.end().checked_add(1) {
            Some(end) => Bound::Excluded(position_key(end)),
            None => Bound::Unbounded,
        };
        let range = convert::record_id("parked", RecordIdKeyRange { start, end });
        let values = [("range", range), ("plugins", convert::texts(plugins))];
        self.read_all("SELECT * FROM $range WHERE plugin IN $plugins", values, read_parked).await
    }

    /// Returns the parked steps with the given ids. Ignores ids of steps that are not parked.
    pub async fn find_parked_steps(&self, steps: &[StepId]) -> Result<Vec<ParkedStep>> {
        let ids = convert::array(steps.iter().map(StepId::record));
        self.read_all("SELECT * FROM $ids", [("ids", ids)], read_parked).await
    }

    /// Returns the ids among `steps` whose steps are parked.
    pub async fn parked_among(&self, steps: impl Iterator<Item = &StepId>) -> Result<FxHashSet<StepId>> {
        let ids = convert::array(steps.map(StepId::record));
        let found = self.query("SELECT id FROM $ids", [("ids", ids)]).await?;
        convert::list(found.first())?.map(read_id).collect()
    }

    pub async fn find_parked(&self, id: &StepId) -> Result<Option<ParkedStep>> {
        self.read_first("SELECT * FROM ONLY $id", [("id", id.record())], read_parked).await
    }

    /// Returns the names of the plugins with parked steps, each with the number of its parked steps.
    pub async fn count_parked(&self) -> Result<Vec<(Arc<str>, u64)>> {
        let read = |record: &Record| {
            Ok((convert::text_field(record, "plugin")?.into(), convert::unsigned_field(record, "steps")?))
        };
        self.read_all("SELECT plugin, count() AS steps FROM parked GROUP BY plugin", [], read).await
    }
}

/// Returns a key that sorts before the key of every step at a position.
fn position_key(position: u64) -> RecordIdKey {
    convert::key([convert::integer(position), convert::text(""), convert::text("")])
}

fn read_parked(record: &Record) -> Result<ParkedStep> {
    convert::named("parked step", record, || {
        Ok(ParkedStep { id: read_id(record)?, reason: convert::parse_json(convert::text_field(record, "text")?)? })
    })
}

fn read_id(record: &Record) -> Result<StepId> {
    let [position, Record::String(hook), Record::String(plugin)] = id_parts(record)? else {
        return Err(Error::corrupt("the id of a parked step is not `[position, hook, plugin]`"));
    };
    Ok(StepId {
        position: convert::int(position)?.max(0) as u64,
        hook: hook.as_str().into(),
        plugin: plugin.as_str().into(),
    })
}
