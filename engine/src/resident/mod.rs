//! The folded state of an open workspace, in memory: every aggregate's last state, readable while appends go on.
//!
//! Aggregates stand in chunks, in the order of their first events. A snapshot shares the chunks, and a chunk is
//! copied only when it is written while a snapshot still holds it; so readers never wait for long, nor do appends.

pub mod behind;
pub mod graph;
pub mod labels;
pub mod seen;
pub mod tail;
pub mod unsaved;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;

use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};

/// Aggregates in a chunk. Small enough to copy in a microsecond, large enough that a snapshot of a million is short.
const CHUNK: usize = 256;
/// The state field by which an aggregate of its type and project can be addressed.
pub const SLUG: &str = "slug";

type Chunk = Vec<Arc<Aggregate>>;
type SlugKey = (Arc<str>, Option<Arc<str>>, Arc<str>);

/// The aggregates of one workspace.
#[derive(Default)]
pub struct Resident {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    chunks: Vec<Arc<Chunk>>,
    places: FxHashMap<AggregateId, u32>,
    /// Who has a slug, of those not deleted. More than one where events were appended past the article operations.
    slugs: FxHashMap<SlugKey, Vec<AggregateId>>,
    position: u64,
}

/// All aggregates as they were at one position.
#[derive(Clone)]
pub struct Snapshot {
    chunks: Vec<Arc<Chunk>>,
    position: u64,
}

impl Snapshot {
    /// Every aggregate, deleted ones too, in the order of their first events.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Aggregate>> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Those whose first event stands before a position, newest first.
    pub fn newest_before(&self, position: u64) -> impl Iterator<Item = &Arc<Aggregate>> {
        let chunks = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|aggregate| aggregate.first_position < position));
        let chunks = self.chunks.get(..chunks).unwrap_or_default();
        let newest = chunks.iter().rev().flat_map(|chunk| chunk.iter().rev());
        newest.skip_while(move |aggregate| aggregate.first_position >= position)
    }

    /// Position of the last event folded.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Resident {
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.read().get(id).cloned()
    }

    /// The aggregate as it is in a snapshot of these.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        // An aggregate never leaves its place.
        let place = *self.read().places.get(id)? as usize;
        snapshot.chunks.get(place / CHUNK)?.get(place % CHUNK).cloned()
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.read();
        Snapshot { chunks: inner.chunks.clone(), position: inner.position }
    }

    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// The aggregates that have this slug among those of a type and project.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        let key = (aggregate_type.into(), project_id.map(Arc::from), slug.into());
        self.read().slugs.get(&key).cloned().unwrap_or_default()
    }

    /// Takes in aggregates that were folded up to a position. New ones come in the order of their first events.
    pub fn publish(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>, position: u64) {
        let mut inner = self.write();
        for aggregate in aggregates {
            inner.put(aggregate);
        }
        inner.position = inner.position.max(position);
    }

    /// Replaces what is derived about aggregates. Those that are not here are passed over.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        let mut inner = self.write();
        for (id, facts) in facts {
            if let Some(slot) = inner.slot(&id) {
                Arc::make_mut(slot).facts = facts;
            }
        }
    }

    // A reader or writer that panicked left whole aggregates behind: each write is one pointer.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get(&self, id: &str) -> Option<&Arc<Aggregate>> {
        let place = *self.places.get(id)? as usize;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    fn slot(&mut self, id: &AggregateId) -> Option<&mut Arc<Aggregate>> {
        let place = *self.places.get(id)? as usize;
        Arc::make_mut(self.chunks.get_mut(place / CHUNK)?).get_mut(place % CHUNK)
    }

    fn put(&mut self, mut aggregate: Arc<Aggregate>) {
        let before = self.get(aggregate.id.as_str()).cloned();
        self.index_slug(before.as_deref(), &aggregate);
        match before {
            Some(before) => {
                // Facts may have changed after this fold began: those that are here are the newer ones.
                if !Arc::ptr_eq(&before.facts, &aggregate.facts) {
                    Arc::make_mut(&mut aggregate).facts = before.facts.clone();
                }
                if let Some(slot) = self.slot(&before.id) {
                    *slot = aggregate;
                }
            }
            None => {
                let place = self.places.len();
                self.places.insert(aggregate.id.clone(), place as u32);
                if place.is_multiple_of(CHUNK) {
                    self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
                }
                if let Some(chunk) = self.chunks.last_mut() {
                    Arc::make_mut(chunk).push(aggregate);
                }
            }
        }
    }

    fn index_slug(&mut self, before: Option<&Aggregate>, after: &Aggregate) {
        let (old, new) = (before.and_then(slug_key), slug_key(after));
        if old == new {
            return;
        }
        if let Some(key) = old
            && let Some(ids) = self.slugs.get_mut(&key)
        {
            ids.retain(|id| *id != after.id);
            if ids.is_empty() {
                self.slugs.remove(&key);
            }
        }
        if let Some(key) = new {
            self.slugs.entry(key).or_default().push(after.id.clone());
        }
    }
}

fn slug_key(aggregate: &Aggregate) -> Option<SlugKey> {
    match aggregate.state.get(SLUG) {
        Some(Value::String(slug)) if !aggregate.deleted => {
            Some((aggregate.aggregate_type.clone(), aggregate.project_id.clone(), slug.clone()))
        }
        _ => None,
    }
}
