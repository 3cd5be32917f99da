//! Node records and their checkpoint. A node record contains a snapshot of the folded state of one aggregate. The
//! checkpoint is the position up to which the follower has written the snapshots.

use std::ops::Bound;
use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, Value as Record, Variables};

use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::date::parse_date;
use crate::model::definition::{Definition, FieldType, Fold};
use crate::model::exact;
use crate::model::id::AggregateId;
use crate::model::json;
use crate::model::value::{Object, Value};
use crate::store::key_range::KeyRange;
use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The statements that write snapshots if other processes may also write snapshots. A snapshot is not written if the
/// stored snapshot has a later version, or has the same version but was folded under a later revision of the
/// definition.
const GUARDED: &str = "
FOR $node IN $nodes {
    LET $known = (SELECT version, revision FROM ONLY $node.id);
    IF $known = NONE OR $known.version < $node.version
        OR ($known.version = $node.version AND $known.revision <= $node.revision) {
        UPSERT $node.id CONTENT $node RETURN NONE
    }
};";

/// The statement that writes snapshots if no other process writes. A new snapshot is not compared with the stored
/// snapshot, because the single follower writes states in the order in which they were published. The comparison would
/// cost more than the write.
const ALONE: &str = "FOR $node IN $nodes { UPSERT $node.id CONTENT $node RETURN NONE };";

/// The statement that rejects a transaction whose writer is not the leader. The statement is added if several servers
/// share the store, so that a former leader cannot replace event shapes that the current leader has written.
const LED: &str = "IF ((SELECT VALUE epoch FROM ONLY leader:consumer) ?? 0) != $epoch { THROW 'stale head' };";

/// The statements that every snapshot transaction contains. The statements write the shapes of events, and the
/// checkpoint up to which snapshots are written. The checkpoint only moves forward.
const REACHED: &str = "
IF $seen != NONE { UPSERT seen:shapes SET text = $seen RETURN NONE };
IF $name != NONE { UPSERT type::record('checkpoint', $name) SET position = math::max([position ?? 0, $position]) RETURN NONE };";

/// The fields that are read from a node. `folded` is the state in the format of [`exact`]. Older programs wrote the
/// state as JSON to `text` instead. This JSON lacks the values that JSON cannot represent. The database object to which
/// older programs also wrote the state is no longer read.
const FIELDS: &str = "id, aggregate_type, project_id, version, position, first_position, created_at, last_event_at, \
                      deleted, revision, folded, text";

/// A stored snapshot.
pub struct NodeSnapshot {
    pub aggregate: Aggregate,
    /// The revision of the definition under which the state was folded.
    pub revision: u64,
}

/// A stored snapshot that cannot be read or whose state is incomplete. The state can be folded again from the events in
/// the log.
#[derive(Debug)]
pub struct UnreadableSnapshot {
    pub id: AggregateId,
    pub reason: Error,
}

/// The result of reading one snapshot.
pub type ReadSnapshot = std::result::Result<NodeSnapshot, UnreadableSnapshot>;

impl DatabaseReader {
    /// Returns the checkpoint of a follower, or 0 if the follower has not written a checkpoint yet.
    pub async fn checkpoint(&self, name: &str) -> Result<u64> {
        let statement = "SELECT VALUE position FROM ONLY type::record('checkpoint', $name)";
        convert::count_in(self.query(statement, [("name", convert::text(name))]).await?.first())
    }

    /// Returns the stored shapes of events, or `None` if no shapes are stored or the shapes cannot be read. The shapes
    /// are in the table `seen`. If the shapes cannot be read, logs an error that names `workspace`.
    pub async fn read_observed(&self, workspace: &str) -> Result<Option<Object>> {
        let found = self.query("SELECT VALUE text FROM ONLY seen:shapes", []).await?;
        match found.first() {
            Some(Record::String(text)) => Ok(json::read(text.as_bytes())
                // Unreadable shapes are ignored, because new events will provide the shapes again.
                .inspect_err(|error| tracing::error!(%error, workspace, "failed to read the stored shapes of events"))
                .ok()),
            _ => Ok(None),
        }
    }

    /// Splits all snapshots into ranges for reading.
    pub async fn node_ranges(&self) -> Result<Vec<KeyRange>> {
        let found = self.query("SELECT id, string::len(folded ?? text ?? '') AS size FROM node", []).await?;
        let mut sized = Vec::new();
        for record in convert::list(found.first())? {
            let Record::Object(node) = record else { return Err(Error::corrupt("a snapshot is not an object")) };
            sized.push((id_of(node.get("id"))?, convert::unsigned_field(record, "size")? as usize));
        }
        Ok(KeyRange::by_size(sized))
    }

    /// Returns the snapshots of the aggregates in a range. `definition` returns the definition of an aggregate type.
    pub async fn read_nodes(
        &self,
        key_range: KeyRange,
        definition: impl Fn(&str) -> Option<Arc<Definition>>,
    ) -> Result<Vec<ReadSnapshot>> {
        let key = |id: &Arc<str>| RecordIdKey::String(id.to_string());
        let range = RecordIdKeyRange {
            start: key_range.from.as_ref().map_or(Bound::Unbounded, |id| Bound::Included(key(id))),
            end: key_range.until.as_ref().map_or(Bound::Unbounded, |id| Bound::Excluded(key(id))),
        };
        let statement = format!("SELECT {FIELDS} FROM $range");
        let values = [("range", convert::record_id("node", range))];
        self.read_all(&statement, values, |record| read_node(record, &definition)).await
    }

    /// Returns the snapshots that match a condition, in the order of their first positions.
    ///
    /// The condition is generated by the pipeline's planner and contains no values from clients: all values are bound.
    pub async fn select_nodes(
        &self,
        condition: &str,
        bindings: &[(String, Value)],
        definition: impl Fn(&str) -> Option<Arc<Definition>>,
    ) -> Result<Vec<ReadSnapshot>> {
        let values: Variables =
            bindings.iter().map(|(name, value)| (name.clone(), convert::to_record(value))).collect();
        let statement = format!("SELECT {FIELDS} FROM node WHERE {condition} ORDER BY first_position");
        let found = self.query_bound(&statement, values).await?;
        convert::list(found.first())?.map(|record| read_node(record, &definition)).collect()
    }
}

impl Database {
    /// Writes snapshots, the shapes of observed events if they have changed, and the checkpoint, in one transaction.
    /// Fails with [`Error::Conflict`] if `epoch` is given and the leader of the workspace has another epoch.
    pub async fn write_nodes(
        &self,
        nodes: &[(Arc<Aggregate>, u64)],
        observed: Option<&Object>,
        checkpoint: Option<(&str, u64)>,
        epoch: Option<u64>,
    ) -> Result<()> {
        let mut records = Vec::with_capacity(nodes.len());
        for (aggregate, revision) in nodes {
            records.push(node_record(convert::record_id("node", aggregate.id.to_string()), aggregate, *revision)?);
        }
        let values = [
            ("nodes", Record::Array(records.into())),
            ("name", convert::optional_text(checkpoint.map(|(name, _)| name))),
            ("seen", observed.map_or(Record::None, |observed| Record::String(crate::model::json::text(observed)))),
            ("position", convert::integer(checkpoint.map_or(0, |(_, position)| position))),
            ("epoch", epoch.map_or(Record::None, convert::integer)),
        ];
        let snapshots = if self.exclusive { ALONE } else { GUARDED };
        let led = if epoch.is_some() { LED } else { "" };
        self.query_again(&["BEGIN;", led, snapshots, REACHED, "COMMIT;"].concat(), values).await.map(drop)
    }
}

pub(super) fn node_record(id: Record, aggregate: &Aggregate, revision: u64) -> Result<Record> {
    let folded = exact::write(&aggregate.state).map_err(|error| Error::corrupt(error.to_string()))?;
    Ok(convert::object([
        ("id", id),
        ("aggregate_id", convert::text(aggregate.id.as_str())),
        ("aggregate_type", convert::text(&aggregate.aggregate_type)),
        ("project_id", convert::optional_text(aggregate.project_id.as_deref())),
        ("version", convert::integer(aggregate.version)),
        ("position", convert::integer(aggregate.position)),
        ("first_position", convert::integer(aggregate.first_position)),
        ("created_at", convert::integer(aggregate.created_at)),
        ("last_event_at", convert::integer(aggregate.last_event_at)),
        ("deleted", Record::Bool(aggregate.deleted)),
        ("revision", convert::integer(revision)),
        ("folded", Record::String(folded)),
    ]))
}

fn id_of(record: Option<&Record>) -> Result<&str> {
    match record {
        Some(Record::RecordId(RecordId { key: RecordIdKey::String(id), .. })) => Ok(id),
        _ => Err(Error::corrupt("the id of a snapshot is not a string")),
    }
}

pub(super) fn read_node(record: &Record, definition: impl Fn(&str) -> Option<Arc<Definition>>) -> Result<ReadSnapshot> {
    let Record::Object(object) = record else { return Err(Error::corrupt("a snapshot is not an object")) };
    let id = AggregateId::from(Arc::from(id_of(object.get("id"))?));
    Ok(read_snapshot(id.clone(), record, definition).map_err(|reason| UnreadableSnapshot { id, reason }))
}

fn read_snapshot(
    id: AggregateId,
    record: &Record,
    definition: impl Fn(&str) -> Option<Arc<Definition>>,
) -> Result<NodeSnapshot> {
    let aggregate_type: Arc<str> = convert::text_field(record, "aggregate_type")?.into();
    let state = match convert::text_field(record, "folded") {
        Ok(folded) => exact::read(folded.as_bytes()).map_err(|error| Error::corrupt(error.to_string()))?,
        Err(_) => read_older(convert::text_field(record, "text")?, definition(&aggregate_type).as_deref())?,
    };
    let aggregate = Aggregate {
        id,
        aggregate_type,
        project_id: convert::optional_text_field(record, "project_id"),
        version: convert::unsigned_field(record, "version")?,
        position: convert::unsigned_field(record, "position")?,
        first_position: convert::unsigned_field(record, "first_position")?,
        created_at: convert::int_field(record, "created_at")?,
        last_event_at: convert::int_field(record, "last_event_at")?,
        deleted: convert::bool_field(record, "deleted"),
        state: Arc::new(state),
        facts: no_facts(),
    };
    Ok(NodeSnapshot { aggregate, revision: convert::unsigned_field(record, "revision")? })
}

/// Reads a state that an older program wrote as JSON. The JSON contains dates as strings. If the definition declares a
/// field as a date, the string in this field is converted to a date. Fails if the state may have contained values that
/// JSON cannot represent.
fn read_older(text: &str, definition: Option<&Definition>) -> Result<Object> {
    let state = json::parse_stored(text.as_bytes()).map_err(|error| Error::corrupt(error.to_string()))?;
    let Value::Object(state) = state else { return Err(Error::corrupt("the state is not an object")) };
    let mut state = Arc::unwrap_or_clone(state);
    for field in definition.into_iter().flat_map(|definition| definition.fields().iter()) {
        let Some(slot) = state.get_mut(&field.name) else { continue };
        let lost = |what: &str| {
            let name = &field.name;
            Error::corrupt(format!(
                "the older format of the stored state cannot represent {what}, which the field '{name}' may have had"
            ))
        };
        match (field.field_type, field.fold, &*slot) {
            (FieldType::Date, _, Value::Array(_)) => return Err(lost("dates in lists")),
            (_, Fold::Sum, Value::Null) => return Err(lost("infinite numbers")),
            (FieldType::Date, _, Value::String(text)) => {
                if let Some(ms) = parse_date(text) {
                    *slot = Value::Date(ms);
                }
            }
            _ => {}
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: u64) -> Arc<Aggregate> {
        let state = Object::from_iter([("n", Value::Int(version as i64))]);
        Arc::new(Aggregate { version, position: version, ..Aggregate::sample("note", "a", state) })
    }

    #[tokio::test]
    async fn ranges_of_large_snapshots_end_at_a_byte_limit() {
        let log = Database::shared_log_in_memory().await;
        for id in ["a", "b", "c", "d"] {
            let state = Object::from_iter([("text", "x".repeat(KeyRange::BYTES / 2))]);
            let large = Arc::new(Aggregate::sample("note", id, state));
            log.write_nodes(&[(large, 1)], None, None, None).await.expect("written");
        }
        let ranges = log.node_ranges().await.expect("ranges");
        let ends: Vec<_> = ranges.iter().map(|key_range| key_range.until.as_deref()).collect();
        assert_eq!(ends, [Some("c"), None]);
    }

    #[tokio::test]
    async fn an_older_snapshot_changes_neither_the_stored_snapshot_nor_the_checkpoint() {
        let log = Database::shared_log_in_memory().await;
        let stored = async || {
            let found = log.read_nodes(KeyRange::default(), |_| None).await.expect("snapshots");
            let found: Vec<_> = found.into_iter().map(|known| known.expect("readable")).collect();
            let found: Vec<_> = found.iter().map(|known| (known.aggregate.version, known.revision)).collect();
            (found, log.checkpoint("nodes").await.expect("a checkpoint"))
        };
        let write = async |version, revision, reached| {
            let nodes = [(snapshot(version), revision)];
            log.write_nodes(&nodes, None, Some(("nodes", reached)), None).await.expect("written");
        };
        write(3, 1, 7).await;
        assert_eq!(stored().await, (vec![(3, 1)], 7));
        // Another server that has read less of the log writes a snapshot.
        write(2, 5, 6).await;
        assert_eq!(stored().await, (vec![(3, 1)], 7));
        write(3, 2, 7).await;
        write(3, 1, 7).await;
        assert_eq!(stored().await, (vec![(3, 2)], 7));
        write(4, 1, 9).await;
        assert_eq!(stored().await, (vec![(4, 1)], 9));
    }

    #[tokio::test]
    async fn an_overtaken_leader_cannot_write_event_shapes() {
        let log = Database::shared_log_in_memory().await;
        let shapes = |number: i64| Object::from_iter([("event", Value::Int(number))]);
        let write = async |number, epoch| log.write_nodes(&[], Some(&shapes(number)), None, Some(epoch)).await;
        let earlier = log.lead("a", &[], false).await.expect("a leader").epoch;
        write(1, earlier).await.expect("written");
        let later = log.lead("b", &["b".into()], false).await.expect("a leader").epoch;
        write(2, later).await.expect("written");
        assert!(matches!(write(1, earlier).await, Err(Error::Conflict)));
        assert_eq!(log.read_observed("0-1").await.expect("read"), Some(shapes(2)));
    }
}
