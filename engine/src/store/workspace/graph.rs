//! The stored graph: facts, edges, parked steps, and the checkpoint of the graph's follower. One transaction writes all
//! of these records.

use std::ops::Range;
use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, Value as Record};

use super::graph_changes::{ChangedKeys, EdgeKey};
use super::stored_facts;
use crate::model::graph::{Edge, EnrichmentFacts};
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::store::key_range::KeyRange;
use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The transaction that writes the records in [`FollowerWrites`] and the checkpoint. Fails if another process has
/// changed the checkpoint.
const WRITE: &str = "
BEGIN;
IF ((SELECT VALUE position FROM ONLY checkpoint:graph) ?? 0) != $before
    OR ((SELECT VALUE generation FROM ONLY checkpoint:graph) ?? 0) != $serving
    OR ((SELECT VALUE versions FROM ONLY checkpoint:graph) ?? '{}') != $known { THROW 'stale head' };
FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE };
DELETE $gone RETURN NONE;
UPSERT checkpoint:graph SET position = $position, generation = $generation, circuits = $circuits, basis = $basis,
    versions = $versions, writes = $writes RETURN NONE;
";

/// The statements that are added to a transaction that writes the graph, if several servers share the store. The
/// transaction fails unless the writer is the leader. The statements record which facts and edges the transaction
/// changes.
const WRITE_SHARED: &str = "
IF ((SELECT VALUE epoch FROM ONLY leader:consumer) ?? 0) != $epoch { THROW 'stale head' };
UPSERT type::record('graph_write', $writes) CONTENT { changed: $changed } RETURN NONE;
DELETE type::record('graph_write', $writes - $kept) RETURN NONE;
";

/// The number of latest writes of the graph whose changed keys stay in the store. A server that has missed more writes
/// reads the whole graph.
const KEPT_WRITES: u64 = 4_096;

/// The statement that increments the number of the last claimed generation, so that each generation is claimed only
/// once.
const CLAIM: &str = "
UPSERT ONLY checkpoint:graph SET position = position ?? 0, generation = generation ?? 0, circuits = circuits ?? '{}',
    claimed = math::max([claimed ?? 0, generation ?? 0]) + 1 RETURN AFTER;";

/// The statement that writes rows of a generation that is being built while another generation is in use.
const PREPARE: &str = "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE };";

/// The progress of the graph's follower.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphCheckpoint {
    pub position: u64,
    /// The generation of facts and edges that is in use. A rebuild of the graph writes a new generation.
    pub generation: u64,
    /// The circuit breaker of each plugin: the aggregates for which the plugin has failed since its last success, and
    /// the id of the event that opened the circuit.
    pub circuits: Object,
    /// The digest of the definitions and the enabled plugins with which all edges were built. `None` if this digest is
    /// not known, for example because an older version of the program built the edges.
    pub basis: Option<Arc<str>>,
    /// The adopted version of each scripted plugin: the digest of the version's source, and the position of the first
    /// event that the version processes. The version stays recorded when the plugin is disabled.
    pub versions: Object,
    /// The number of writes of the graph.
    pub writes: u64,
}

/// The right to build the generation `generation` of the graph. Until the build is complete, the generation `serving`
/// is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub serving: u64,
    pub generation: u64,
}

/// The records that the graph's follower writes in one transaction.
#[derive(Debug, Default)]
pub struct FollowerWrites {
    pub facts: Vec<(AggregateId, Option<Arc<EnrichmentFacts>>)>,
    pub edges: Vec<Arc<Edge>>,
    pub parked: Vec<super::parked::ParkedStep>,
    /// The ids of parked steps to remove, because the steps have succeeded or were dropped.
    pub released: Vec<super::parked::StepId>,
}

impl FollowerWrites {
    pub fn is_empty(&self) -> bool {
        let FollowerWrites { facts, edges, parked, released } = self;
        facts.is_empty() && edges.is_empty() && parked.is_empty() && released.is_empty()
    }

    fn rows(&self, generation: u64) -> Result<Vec<Record>> {
        let mut rows = Vec::with_capacity(self.facts.len() + self.edges.len() + self.parked.len());
        for (id, facts) in &self.facts {
            rows.push(facts_record(generation, id, facts.as_deref())?);
        }
        rows.extend(self.edges.iter().map(|edge| edge_record(generation, edge)));
        for parked in &self.parked {
            rows.push(parked.record()?);
        }
        Ok(rows)
    }
}

impl DatabaseReader {
    pub async fn read_graph_checkpoint(&self) -> Result<GraphCheckpoint> {
        let read = |record: &Record| {
            let versions = convert::optional_text_field(record, "versions");
            Ok(GraphCheckpoint {
                position: convert::unsigned_field(record, "position")?,
                generation: convert::unsigned_field(record, "generation")?,
                circuits: convert::parse_json(convert::text_field(record, "circuits")?)?,
                basis: convert::optional_text_field(record, "basis"),
                versions: versions.map_or_else(|| Ok(Object::new()), |versions| convert::parse_json(&versions))?,
                writes: convert::unsigned_field(record, "writes").unwrap_or_default(),
            })
        };
        Ok(self.read_first("SELECT * FROM ONLY checkpoint:graph", [], read).await?.unwrap_or_default())
    }

    /// Returns the facts about the aggregates in a range, each with the aggregate's id. Reads only the facts of the
    /// given generation, from the table `finding`. If the facts about an aggregate cannot be read, the result contains
    /// an error for this aggregate.
    pub async fn read_facts(
        &self,
        generation: u64,
        about: KeyRange,
    ) -> Result<Vec<(Arc<str>, Result<EnrichmentFacts>)>> {
        let range = convert::record_id("finding", range(generation, &about));
        self.read_all("SELECT id, text FROM $range", [("range", range)], read_facts_record).await
    }

    /// Returns the open edges of a generation. Selects the edges that start at the aggregates in the range `from`.
    pub async fn read_open_edges(&self, generation: u64, from: KeyRange) -> Result<Vec<Edge>> {
        let range = convert::record_id("edge", range(generation, &from));
        self.read_all("SELECT * FROM $range WHERE valid_to = NONE", [("range", range)], read_edge).await
    }

    /// Returns the edges of a generation that start at a range of aggregates and were closed after a position. Selects
    /// closed edges without a closing position by their closing time, which must be after `time_ms`.
    pub async fn read_edges_closed_after(
        &self,
        generation: u64,
        from: KeyRange,
        position: u64,
        time_ms: i64,
    ) -> Result<Vec<Edge>> {
        let values = [
            ("range", convert::record_id("edge", range(generation, &from))),
            ("position", convert::integer(position)),
            ("time", convert::integer(time_ms)),
        ];
        let statement = "SELECT * FROM $range WHERE closed > $position OR (closed = NONE AND valid_to > $time)";
        self.read_all(statement, values, read_edge).await
    }

    /// Returns the closed edges of a generation. Only edges that start at an aggregate in the range `from` are
    /// returned, and only if the event that closed the edge occurred after `time_ms`.
    pub async fn read_edges_valid_after(&self, generation: u64, from: KeyRange, time_ms: i64) -> Result<Vec<Edge>> {
        let range = convert::record_id("edge", range(generation, &from));
        let values = [("range", range), ("time", convert::integer(time_ms))];
        self.read_all("SELECT * FROM $range WHERE valid_to > $time", values, read_edge).await
    }
}

impl Database {
    /// Writes `effects` and the checkpoint `after`. Fails with [`Error::Conflict`] if the checkpoint has another
    /// position, another generation or other versions of plugins than `before`. Also fails if `epoch` is given and the
    /// leader of the workspace has another epoch.
    pub async fn write_effects(
        &self,
        effects: &FollowerWrites,
        before: &GraphCheckpoint,
        after: &GraphCheckpoint,
        epoch: Option<u64>,
    ) -> Result<()> {
        let mut values = vec![
            ("rows", Record::Array(effects.rows(after.generation)?.into())),
            ("gone", convert::array(effects.released.iter().map(super::parked::StepId::record))),
            ("before", convert::integer(before.position)),
            ("serving", convert::integer(before.generation)),
            ("position", convert::integer(after.position)),
            ("generation", convert::integer(after.generation)),
            ("circuits", Record::String(convert::json_text(&after.circuits)?)),
            ("basis", convert::optional_text(after.basis.as_deref())),
            ("known", Record::String(convert::json_text(&before.versions)?)),
            ("versions", Record::String(convert::json_text(&after.versions)?)),
            ("writes", convert::integer(after.writes)),
        ];
        let mut statements = WRITE.to_owned();
        if let Some(epoch) = epoch {
            statements.push_str(WRITE_SHARED);
            values.extend([
                ("epoch", convert::integer(epoch)),
                ("changed", Record::String(convert::json_text(&ChangedKeys::of(effects))?)),
                ("kept", convert::integer(KEPT_WRITES)),
            ]);
        }
        statements.push_str("COMMIT;");
        self.query(&statements, values).await.map(drop)
    }

    /// Writes rows of a generation that is not in use yet.
    pub async fn prepare_effects(&self, effects: &FollowerWrites, generation: u64) -> Result<()> {
        self.query_again(PREPARE, [("rows", Record::Array(effects.rows(generation)?.into()))]).await.map(drop)
    }

    /// Claims the next generation. No other process on any server builds the same generation.
    pub async fn claim_generation(&self) -> Result<Claim> {
        let found = self.query_again(CLAIM, []).await?;
        let missing = || Error::corrupt("the statement that claims a graph generation returned no record");
        let record = found.first().ok_or_else(missing)?;
        let generation = convert::unsigned_field(record, "claimed")?;
        // Older versions of the program did not claim generations and may have left rows of this generation.
        self.drop_generations(generation..generation + 1).await?;
        Ok(Claim { serving: convert::unsigned_field(record, "generation")?, generation })
    }

    /// Removes the facts and edges of the given generations, which must not be in use.
    pub async fn drop_generations(&self, generations: Range<u64>) -> Result<()> {
        let statement = "DELETE $facts RETURN NONE; DELETE $edges RETURN NONE";
        let bound = |generation: u64| convert::key([convert::integer(generation)]);
        let range = || RecordIdKeyRange::from(bound(generations.start)..bound(generations.end));
        let values =
            [("facts", convert::record_id("finding", range())), ("edges", convert::record_id("edge", range()))];
        self.query_again(statement, values).await.map(drop)
    }
}

/// Returns the key range of a generation's records for a range of aggregates.
pub(super) fn range(generation: u64, key_range: &KeyRange) -> RecordIdKeyRange {
    let bound = |generation: u64| convert::key([convert::integer(generation)]);
    let at = |id: &Arc<str>| convert::key([convert::integer(generation), convert::text(id)]);
    let start = key_range.from.as_ref().map_or_else(|| bound(generation), at);
    (start..key_range.until.as_ref().map_or_else(|| bound(generation + 1), at)).into()
}

fn facts_record(generation: u64, id: &AggregateId, facts: Option<&EnrichmentFacts>) -> Result<Record> {
    let id = convert::key([convert::integer(generation), convert::text(id.as_str())]);
    Ok(convert::object([
        ("id", convert::record_id("finding", id)),
        ("text", Record::String(stored_facts::text_of(facts)?)),
    ]))
}

pub(super) fn read_facts_record(record: &Record) -> Result<(Arc<str>, Result<EnrichmentFacts>)> {
    convert::named("facts", record, || {
        let [_, Record::String(id)] = id_parts(record)? else {
            return Err(Error::corrupt("the id of the record is not `[generation, aggregate id]`"));
        };
        Ok((id.as_str().into(), convert::text_field(record, "text").and_then(stored_facts::read)))
    })
}

fn edge_record(generation: u64, edge: &Edge) -> Record {
    convert::object([
        ("id", EdgeKey::of(edge).record(generation)),
        ("weight", Record::Number(edge.weight.into())),
        ("plugin", convert::text(&edge.plugin)),
        ("event_id", convert::text(&edge.event_id)),
        ("valid_from", convert::integer(edge.valid_from)),
        ("valid_to", edge.valid_to.map_or(Record::None, convert::integer)),
        ("closed", edge.closed.map_or(Record::None, convert::integer)),
    ])
}

pub(super) fn read_edge(record: &Record) -> Result<Edge> {
    convert::named("edge", record, || {
        let [_, Record::String(from), Record::String(kind), Record::String(to), opened] = id_parts(record)? else {
            return Err(Error::corrupt("the id of an edge is not `[generation, from, kind, to, position]`"));
        };
        let id = |text: &String| AggregateId::from(Arc::from(text.as_str()));
        Ok(Edge {
            from: id(from),
            kind: kind.as_str().into(),
            to: id(to),
            weight: convert::float_field(record, "weight")?,
            plugin: convert::text_field(record, "plugin")?.into(),
            event_id: convert::text_field(record, "event_id")?.into(),
            opened: convert::int(opened)?.max(0) as u64,
            valid_from: convert::int_field(record, "valid_from")?,
            valid_to: convert::optional_int_field(record, "valid_to"),
            closed: convert::optional_int_field(record, "closed").and_then(|position| u64::try_from(position).ok()),
        })
    })
}

/// Returns the parts of a record's id, which is an array.
pub(super) fn id_parts(record: &Record) -> Result<&[Record]> {
    let Record::Object(object) = record else { return Err(Error::corrupt("the record is not an object")) };
    match object.get("id") {
        Some(Record::RecordId(RecordId { key: RecordIdKey::Array(parts), .. })) => Ok(parts),
        Some(Record::RecordId(_)) => Err(Error::corrupt("the id of a record is not an array")),
        _ => Err(Error::corrupt("the id of the record is missing or is not a record id")),
    }
}
