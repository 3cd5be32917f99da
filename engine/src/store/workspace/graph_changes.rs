//! The facts and edges that recent writes of the graph have changed. A server that does not write the graph reads these
//! changes to follow the server that writes the graph.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use surrealdb::types::{RecordIdKeyRange, Value as Record};

use super::graph::{FollowerWrites, read_edge, read_facts_record};
use crate::model::graph::{Edge, EnrichmentFacts};
use crate::store::{DatabaseReader, Error, Result, convert};

/// The keys of the facts and the edges that one write has changed.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedKeys {
    /// The ids of the aggregates whose facts have changed.
    pub facts: Vec<Arc<str>>,
    pub edges: Vec<EdgeKey>,
}

/// The key of an edge within a generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EdgeKey {
    pub from: Arc<str>,
    pub kind: Arc<str>,
    pub to: Arc<str>,
    /// The position of the event that opened the edge.
    pub opened: u64,
}

impl ChangedKeys {
    pub(super) fn of(effects: &FollowerWrites) -> ChangedKeys {
        let facts = effects.facts.iter().map(|(id, _)| id.text()).collect();
        ChangedKeys { facts, edges: effects.edges.iter().map(|edge| EdgeKey::of(edge)).collect() }
    }
}

impl EdgeKey {
    pub(super) fn of(edge: &Edge) -> EdgeKey {
        EdgeKey { from: edge.from.text(), kind: edge.kind.clone(), to: edge.to.text(), opened: edge.opened }
    }

    pub(super) fn record(&self, generation: u64) -> Record {
        let parts = [
            convert::integer(generation),
            convert::text(&self.from),
            convert::text(&self.kind),
            convert::text(&self.to),
            convert::integer(self.opened),
        ];
        convert::record_id("edge", convert::key(parts))
    }
}

impl DatabaseReader {
    /// Returns the keys of the facts and edges that the writes with these numbers have changed. Returns `None` if the
    /// keys of one of the writes are not stored.
    pub async fn read_changed_keys(&self, writes: RangeInclusive<u64>) -> Result<Option<Vec<ChangedKeys>>> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let range = RecordIdKeyRange::from(number(*writes.start())..=number(*writes.end()));
        let values = [("range", convert::record_id("graph_write", range))];
        let read = |changed: &Record| match changed {
            Record::String(changed) => convert::parse_json::<ChangedKeys>(changed),
            _ => Err(Error::corrupt("the changed keys of a graph write are not a string")),
        };
        let changed = self.read_all("SELECT VALUE changed FROM $range", values, read).await?;
        let count = writes.end().saturating_sub(*writes.start()).saturating_add(1);
        Ok((changed.len() as u64 == count).then_some(changed))
    }

    /// Returns the facts of a generation about the given aggregates, by aggregate id. Facts that cannot be read are
    /// returned as errors.
    pub async fn read_facts_of(
        &self,
        generation: u64,
        about: &[Arc<str>],
    ) -> Result<Vec<(Arc<str>, Result<EnrichmentFacts>)>> {
        let key = |id: &Arc<str>| convert::key([convert::integer(generation), convert::text(id)]);
        let ids = convert::array(about.iter().map(|id| convert::record_id("finding", key(id))));
        self.read_all("SELECT id, text FROM $ids", [("ids", ids)], read_facts_record).await
    }

    /// Returns the edges of a generation with the given keys.
    pub async fn read_edges_of(&self, generation: u64, keys: &[EdgeKey]) -> Result<Vec<Edge>> {
        let ids = convert::array(keys.iter().map(|key| key.record(generation)));
        self.read_all("SELECT * FROM $ids", [("ids", ids)], read_edge).await
    }
}
