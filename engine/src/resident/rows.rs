//! The rows of the resident states, with indexes by id, by slug and by type.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::columns::Columns;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::model::slug::SLUG;
use crate::model::value::Value;
use crate::pipeline::column::NumberIndex;

/// The number of aggregates per chunk. Copying a chunk of this size takes about a microsecond. Smaller chunks would be
/// copied faster, but each snapshot would consist of more chunks.
pub const CHUNK_SIZE: usize = 256;

pub type Chunk = Vec<Arc<Aggregate>>;
/// The type, project and slug of an aggregate.
pub type SlugKey<'a> = (&'a str, Option<&'a str>, &'a str);

/// The aggregates in the order of their first events, with their indexes and columns.
#[derive(Default)]
pub struct ResidentRows {
    pub chunks: Vec<Arc<Chunk>>,
    /// The row number of each aggregate, by id.
    by_id: NumberIndex,
    /// The row numbers of aggregates that are not deleted, by type, project and slug. In a log that an older program
    /// wrote, several rows can have the same key.
    slugs: NumberIndex,
    /// The row numbers of the aggregates of each type, in ascending order. The type of an aggregate never changes.
    types: FxHashMap<Arc<str>, Vec<u32>>,
    /// The number of aggregates.
    count: u32,
    pub position: u64,
    pub columns: Columns,
}

impl ResidentRows {
    pub fn get(&self, id: &str) -> Option<&Arc<Aggregate>> {
        self.at(self.row_of(id)?)
    }

    pub fn row_of(&self, id: &str) -> Option<u32> {
        let mut candidates = self.by_id.candidates(hash(id));
        candidates.find(|row| self.at(*row).is_some_and(|aggregate| aggregate.id.as_str() == id))
    }

    fn at(&self, row: u32) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row as usize / CHUNK_SIZE)?.get(row as usize % CHUNK_SIZE)
    }

    pub fn slot(&mut self, id: &AggregateId) -> Option<&mut Arc<Aggregate>> {
        let row = self.row_of(id.as_str())? as usize;
        Arc::make_mut(self.chunks.get_mut(row / CHUNK_SIZE)?).get_mut(row % CHUNK_SIZE)
    }

    pub fn put(&mut self, mut aggregate: Arc<Aggregate>) {
        let before = self.get(aggregate.id.as_str()).cloned();
        if before.as_ref().is_some_and(|before| before.version > aggregate.version) {
            // The resident aggregate contains later events than this fold.
            return;
        }
        let row = self.row_of(aggregate.id.as_str()).unwrap_or(self.count);
        self.index_slug(row, before.as_deref(), &aggregate);
        self.columns.put(row as usize, &aggregate);
        match before {
            Some(before) => {
                // The resident facts are kept, because facts may have changed since this fold began.
                if !Arc::ptr_eq(&before.facts, &aggregate.facts) {
                    Arc::make_mut(&mut aggregate).facts = before.facts.clone();
                }
                if let Some(slot) = self.slot(&before.id) {
                    *slot = aggregate;
                }
            }
            None => {
                self.by_id.insert(hash(aggregate.id.as_str()), row);
                self.types.entry(aggregate.aggregate_type.clone()).or_default().push(row);
                self.count += 1;
                if (row as usize).is_multiple_of(CHUNK_SIZE) {
                    self.chunks.push(Arc::new(Vec::with_capacity(CHUNK_SIZE)));
                }
                if let Some(chunk) = self.chunks.last_mut() {
                    Arc::make_mut(chunk).push(aggregate);
                }
            }
        }
    }

    /// Returns the ids of the aggregates that have this type, project and slug, except deleted aggregates.
    pub fn by_slug(&self, key: SlugKey<'_>) -> Vec<AggregateId> {
        let mut rows: Vec<u32> = self.slugs.candidates(hash(key)).collect();
        rows.sort_unstable();
        let found = rows.into_iter().filter_map(|row| self.at(row)).filter(|found| slug_key(found) == Some(key));
        found.map(|aggregate| aggregate.id.clone()).collect()
    }

    /// Appends at most `count` rows of a type to `found`: the last rows that are before the row `before`, in descending
    /// order.
    pub fn rows_before(&self, aggregate_type: &str, before: usize, count: usize, found: &mut Vec<u32>) {
        let rows = self.types.get(aggregate_type).map_or(&[][..], Vec::as_slice);
        let end = rows.partition_point(|row| (*row as usize) < before);
        found.extend(rows.iter().take(end).rev().take(count));
    }

    fn index_slug(&mut self, row: u32, before: Option<&Aggregate>, after: &Aggregate) {
        let (old, new) = (before.and_then(slug_key), slug_key(after));
        if old == new {
            return;
        }
        if let Some(key) = old {
            self.slugs.remove(hash(key), row);
        }
        if let Some(key) = new {
            self.slugs.insert(hash(key), row);
        }
    }
}

fn slug_key(aggregate: &Aggregate) -> Option<SlugKey<'_>> {
    match aggregate.state.get(SLUG) {
        Some(Value::String(slug)) if !aggregate.deleted => {
            Some((&aggregate.aggregate_type, aggregate.project_id.as_deref(), slug))
        }
        _ => None,
    }
}

fn hash(key: impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
}
