//! Reads of the stored graph that limit their size: ranges of facts and edges that fit into memory, and edges of one
//! aggregate up to a maximum number.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::graph::{range, read_edge};
use crate::model::graph::Edge;
use crate::model::id::AggregateId;
use crate::store::key_range::KeyRange;
use crate::store::{DatabaseReader, Result, convert};

/// The estimated size of an edge as a database value, in bytes.
const EDGE_BYTES: usize = 1_024;

impl DatabaseReader {
    /// Splits the facts of a generation into ranges for reading.
    pub async fn fact_ranges(&self, generation: u64) -> Result<Vec<KeyRange>> {
        let statement = "SELECT record::id(id)[1] AS about, string::len(text) AS size FROM $range";
        let all = convert::record_id("finding", range(generation, &KeyRange::default()));
        let found = self.query(statement, [("range", all)]).await?;
        ranges(found.first(), 1)
    }

    /// Splits the edges of a generation into ranges for reading, by the aggregates at which the edges start.
    pub async fn edge_ranges(&self, generation: u64) -> Result<Vec<KeyRange>> {
        self.edge_ranges_by(generation, EDGE_BYTES).await
    }

    async fn edge_ranges_by(&self, generation: u64, edge_bytes: usize) -> Result<Vec<KeyRange>> {
        let statement =
            "SELECT about, count() AS size FROM (SELECT record::id(id)[1] AS about FROM $range) GROUP BY about";
        let all = convert::record_id("edge", range(generation, &KeyRange::default()));
        let found = self.query(statement, [("range", all)]).await?;
        ranges(found.first(), edge_bytes)
    }

    /// Returns up to `limit` closed edges of a generation that start at an aggregate. `kinds` restricts the kinds of
    /// the edges. An empty list allows all kinds.
    pub async fn read_closed_edges(
        &self,
        generation: u64,
        from: &AggregateId,
        kinds: &[Arc<str>],
        limit: usize,
    ) -> Result<Vec<Edge>> {
        let condition = "valid_to != NONE AND ($allowed = [] OR record::id(id)[2] IN $allowed)";
        self.read_edges_where(generation, from, condition, convert::texts(kinds), limit).await
    }

    /// Returns up to `limit` edges of a generation. Selects the edges that start at the aggregate `from` and that a
    /// plugin found in the event `event_id`.
    pub async fn read_edges_of_event(
        &self,
        generation: u64,
        from: &AggregateId,
        event_id: &str,
        limit: usize,
    ) -> Result<Vec<Edge>> {
        self.read_edges_where(generation, from, "event_id = $allowed", convert::text(event_id), limit).await
    }

    async fn read_edges_where(
        &self,
        generation: u64,
        from: &AggregateId,
        condition: &str,
        allowed: Record,
        limit: usize,
    ) -> Result<Vec<Edge>> {
        // No id contains the byte 0. In the order of keys, this key is therefore directly after all keys of the
        // aggregate.
        let behind = format!("{from}\0");
        let only = KeyRange { from: Some(from.text()), until: Some(behind.as_str().into()) };
        let values = [
            ("range", convert::record_id("edge", range(generation, &only))),
            ("allowed", allowed),
            ("limit", convert::integer(limit as u64)),
        ];
        self.read_all(&format!("SELECT * FROM $range WHERE {condition} LIMIT $limit"), values, read_edge).await
    }
}

/// Splits the aggregates in `found` into ranges by size. A size of 1 in `found` stands for about `unit_bytes` bytes.
/// For facts, the size is a number of characters, and a character counts as one byte.
fn ranges(found: Option<&Record>, unit_bytes: usize) -> Result<Vec<KeyRange>> {
    let mut sizes = Vec::new();
    for record in convert::list(found)? {
        let units = convert::unsigned_field(record, "size")? as usize;
        sizes.push((convert::text_field(record, "about")?, units.saturating_mul(unit_bytes)));
    }
    sizes.sort_unstable();
    Ok(KeyRange::by_size(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::graph::{EnrichmentFacts, PluginFacts};
    use crate::model::value::Object;
    use crate::store::Database;
    use crate::store::workspace::graph::FollowerWrites;

    fn id(text: &str) -> AggregateId {
        AggregateId::from(Arc::from(text))
    }

    fn edge(from: &str, to: usize, closed: bool) -> Arc<Edge> {
        Arc::new(Edge {
            from: id(from),
            kind: if to.is_multiple_of(2) { "even" } else { "odd" }.into(),
            to: id(&format!("t{to:06}")),
            weight: 1.0,
            plugin: "linker".into(),
            event_id: format!("e{}", to % 10).as_str().into(),
            opened: 1,
            valid_from: 1,
            valid_to: closed.then_some(2),
            closed: closed.then_some(2),
        })
    }

    fn ends(ranges: &[KeyRange]) -> Vec<Option<&str>> {
        ranges.iter().map(|key_range| key_range.until.as_deref()).collect()
    }

    #[tokio::test]
    async fn ranges_of_facts_and_edges_end_at_a_byte_limit() {
        let log = Database::shared_log_in_memory().await;
        assert_eq!(log.edge_ranges(1).await.expect("ranges"), [KeyRange::default()]);
        for name in ["b", "a", "c"] {
            let derived = Object::from_iter([("text", "x".repeat(KeyRange::BYTES / 2))]);
            let found = PluginFacts { derived: Arc::new(derived), ..PluginFacts::default() };
            let facts: EnrichmentFacts = [(Arc::from("linker"), found)].into_iter().collect();
            let effects =
                FollowerWrites { facts: vec![(id(name), Some(Arc::new(facts)))], ..FollowerWrites::default() };
            log.prepare_effects(&effects, 1).await.expect("written");
            let edges = (0..30).map(|to| edge(name, to, to < 20)).collect();
            log.prepare_effects(&FollowerWrites { edges, ..FollowerWrites::default() }, 1).await.expect("written");
        }
        assert_eq!(ends(&log.fact_ranges(1).await.expect("ranges")), [Some("c"), None]);
        let ranges = log.edge_ranges_by(1, KeyRange::BYTES / 59).await.expect("ranges");
        assert_eq!(ends(&ranges), [Some("c"), None]);
        let open = log.read_open_edges(1, ranges[1].clone()).await.expect("edges");
        assert!(open.len() == 10 && open.iter().all(|edge| edge.from == id("c")));
    }

    #[tokio::test]
    async fn edges_of_one_aggregate_are_read_up_to_a_limit() {
        let log = Database::shared_log_in_memory().await;
        let edges = (0..60).map(|to| edge("a", to, to < 40)).chain([edge("b", 0, true)]).collect();
        log.prepare_effects(&FollowerWrites { edges, ..FollowerWrites::default() }, 1).await.expect("written");
        let closed = async |kinds: &[Arc<str>], limit| {
            let found = log.read_closed_edges(1, &id("a"), kinds, limit).await.expect("edges");
            assert!(found.iter().all(|edge| edge.valid_to.is_some() && edge.from == id("a")));
            found.len()
        };
        assert_eq!((closed(&[], 100).await, closed(&[], 7).await), (40, 7));
        assert_eq!((closed(&["odd".into()], 100).await, closed(&["none".into()], 100).await), (20, 0));
        let of_event = async |limit| log.read_edges_of_event(1, &id("a"), "e3", limit).await.expect("edges").len();
        assert_eq!((of_event(100).await, of_event(4).await), (6, 4));
    }
}
