//! The folded state of an open workspace, in memory: the last state of every aggregate, readable during appends.
//!
//! Aggregates are stored in chunks, in the order of their first events. A snapshot shares the chunks, and a write
//! copies a chunk only if a snapshot uses the chunk. Readers and appends therefore never wait for long.

mod columns;
pub mod dirty;
pub mod follower;
pub mod graph;
pub mod labels;
pub mod observed;
mod sharing;
pub mod tail;
pub mod workload;

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::model::slug::SLUG;
use crate::model::value::{Object, Value};
use crate::pipeline::column::{Column, Index};
pub use columns::Base;
use columns::{BuiltColumn, Columns};
use sharing::Sharing;

/// The number of aggregates per chunk. A chunk takes a microsecond to copy; larger chunks make snapshots shorter.
const CHUNK_SIZE: usize = 256;

type Chunk = Vec<Arc<Aggregate>>;
/// The type, project and slug of an aggregate.
type SlugKey<'a> = (&'a str, Option<&'a str>, &'a str);

/// The aggregates of one workspace.
#[derive(Default)]
pub struct Resident {
    inner: RwLock<Inner>,
    /// Locked while a thread builds columns, so that no two threads build the same column.
    making: Mutex<()>,
    sharing: Mutex<Sharing>,
}

#[derive(Default)]
struct Inner {
    chunks: Vec<Arc<Chunk>>,
    /// The row number of each aggregate, by id.
    rows: Index,
    /// The row numbers of aggregates that are not deleted, by slug. A slug can have several rows in a log
    /// of an older program.
    slugs: Index,
    /// Number of aggregates.
    count: u32,
    position: u64,
    columns: Columns,
}

/// All aggregates as they were at one position.
#[derive(Clone)]
pub struct Snapshot {
    chunks: Vec<Arc<Chunk>>,
    position: u64,
    columns: Option<Arc<Wanted>>,
}

/// The columns that were requested together with a snapshot.
struct Wanted {
    base: Base,
    by_path: FxHashMap<Arc<str>, Column>,
}

impl Snapshot {
    /// Iterates over all aggregates, including deleted ones, in the order of their first events.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Aggregate>> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Iterates over the aggregates whose first event is before a position, newest first.
    pub fn newest_before(&self, position: u64) -> impl Iterator<Item = &Arc<Aggregate>> {
        let chunks = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|aggregate| aggregate.first_position < position));
        let chunks = self.chunks.get(..chunks).unwrap_or_default();
        let newest = chunks.iter().rev().flat_map(|chunk| chunk.iter().rev());
        newest.skip_while(move |aggregate| aggregate.first_position >= position)
    }

    /// Returns the position of the last event folded.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of aggregates.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK_SIZE + last.len())
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the aggregate at a row, in the order of [`iter`](Snapshot::iter).
    pub fn at(&self, row: usize) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row / CHUNK_SIZE)?.get(row % CHUNK_SIZE)
    }

    /// Returns the columns that every scan reads, if the snapshot has columns.
    pub fn base(&self) -> Option<&Base> {
        self.columns.as_ref().map(|columns| &columns.base)
    }

    /// Returns the column of a path, or `None` if the snapshot has no such column.
    pub fn column(&self, path: &str) -> Option<&Column> {
        let columns = self.columns.as_ref()?;
        columns.by_path.get(path).or_else(|| columns.base.column(path))
    }
}

impl Resident {
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.read().get(id).cloned()
    }

    /// Returns the state of an aggregate in a snapshot of this workspace.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        // The row of an aggregate never changes.
        let row = self.read().row_of(id)? as usize;
        snapshot.chunks.get(row / CHUNK_SIZE)?.get(row % CHUNK_SIZE).cloned()
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.read();
        Snapshot { chunks: inner.chunks.clone(), position: inner.position, columns: None }
    }

    /// Returns whether all these paths have columns.
    pub fn has_columns(&self, paths: &[&Arc<str>]) -> bool {
        self.read().columns.missing(paths).is_empty()
    }

    /// Returns a snapshot with columns of these paths. Missing columns are built.
    pub fn snapshot_with(&self, paths: &[&Arc<str>]) -> Snapshot {
        if !self.has_columns(paths) {
            self.make_columns(paths);
        }
        let inner = self.read();
        let column = |path: &&Arc<str>| Some(((*path).clone(), inner.columns.column(path)?.clone()));
        let columns = Wanted { base: inner.columns.base().clone(), by_path: paths.iter().filter_map(column).collect() };
        Snapshot { chunks: inner.chunks.clone(), position: inner.position, columns: Some(Arc::new(columns)) }
    }

    fn make_columns(&self, paths: &[&Arc<str>]) {
        let _one = self.making.lock();
        let snapshot = self.snapshot();
        let mut built: Vec<BuiltColumn> =
            self.read().columns.missing(paths).into_iter().map(BuiltColumn::new).collect();
        for (row, aggregate) in snapshot.iter().enumerate() {
            built.iter_mut().for_each(|column| column.put(row, aggregate));
        }
        let mut inner = self.write();
        for (number, chunk) in inner.chunks.iter().enumerate() {
            // A writer copies a chunk that the snapshot holds, so an identical pointer means an unchanged chunk.
            if snapshot.chunks.get(number).is_some_and(|before| Arc::ptr_eq(before, chunk)) {
                continue;
            }
            for (row, aggregate) in chunk.iter().enumerate() {
                built.iter_mut().for_each(|column| column.put(number * CHUNK_SIZE + row, aggregate));
            }
        }
        built.into_iter().for_each(|column| inner.columns.keep(column));
    }

    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// Returns the aggregates of a type and project that have this slug.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        let key = (aggregate_type, project_id, slug);
        let inner = self.read();
        let mut rows: Vec<u32> = inner.slugs.candidates(hash(key)).collect();
        rows.sort_unstable();
        let found = rows.into_iter().filter_map(|row| inner.at(row)).filter(|found| slug_key(found) == Some(key));
        found.map(|aggregate| aggregate.id.clone()).collect()
    }

    /// Returns the approximate size of the columns in bytes.
    pub fn columns_bytes(&self) -> usize {
        self.read().columns.size_bytes()
    }

    /// Replaces parts of an aggregate by equal parts of other aggregates, which saves memory.
    pub fn share(&self, aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        self.sharing.lock().share(aggregate)
    }

    /// Publishes aggregates folded up to `position`. Keeps later versions that are already resident. New aggregates
    /// must be sorted by the positions of their first events.
    pub fn publish(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>, position: u64) {
        let aggregates: Vec<_> = aggregates.into_iter().map(|aggregate| self.share(aggregate)).collect();
        let mut inner = self.write();
        for aggregate in aggregates {
            inner.put(aggregate);
        }
        inner.position = inner.position.max(position);
    }

    /// Replaces the facts of aggregates. Ignores aggregates that are not resident.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        let mut sharing = self.sharing.lock();
        let mut inner = self.write();
        for (id, facts) in facts {
            if let Some(slot) = inner.slot(&id) {
                Arc::make_mut(slot).facts = sharing.facts(&facts);
            }
        }
    }

    // A panic during a write cannot leave a partial aggregate, because each write replaces one pointer.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write()
    }
}

impl Inner {
    fn get(&self, id: &str) -> Option<&Arc<Aggregate>> {
        self.at(self.row_of(id)?)
    }

    fn row_of(&self, id: &str) -> Option<u32> {
        let mut candidates = self.rows.candidates(hash(id));
        candidates.find(|row| self.at(*row).is_some_and(|aggregate| aggregate.id.as_str() == id))
    }

    fn at(&self, row: u32) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row as usize / CHUNK_SIZE)?.get(row as usize % CHUNK_SIZE)
    }

    fn slot(&mut self, id: &AggregateId) -> Option<&mut Arc<Aggregate>> {
        let row = self.row_of(id.as_str())? as usize;
        Arc::make_mut(self.chunks.get_mut(row / CHUNK_SIZE)?).get_mut(row % CHUNK_SIZE)
    }

    fn put(&mut self, mut aggregate: Arc<Aggregate>) {
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
                // The resident facts are newer, because facts may have changed since this fold began.
                if !Arc::ptr_eq(&before.facts, &aggregate.facts) {
                    Arc::make_mut(&mut aggregate).facts = before.facts.clone();
                }
                if let Some(slot) = self.slot(&before.id) {
                    *slot = aggregate;
                }
            }
            None => {
                self.rows.insert(hash(aggregate.id.as_str()), row);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::aggregate::no_facts;

    fn aggregate(number: u64, version: u64) -> Arc<Aggregate> {
        let n = match version % 4 {
            0 => Value::Int((number + version) as i64),
            1 => Value::from(format!("text {}", number % 7)),
            2 => Value::Double(0.5),
            _ => Value::Null,
        };
        let mut state = Object::from_iter([("a", Value::from(Object::from_iter([("n", n)])))]);
        state.push("slug", format!("s-{}", (number + version) % 50));
        state.push("tags", (0..version % 3).map(|tag| Value::from(format!("t-{tag}"))).collect::<Vec<_>>());
        Arc::new(Aggregate {
            id: AggregateId::from(Arc::from(format!("i-{number}"))),
            aggregate_type: "thing".into(),
            project_id: None,
            version,
            position: version,
            first_position: number,
            created_at: 0,
            last_event_at: version as i64,
            deleted: version % 5 == 4,
            state: Arc::new(state),
            facts: no_facts(),
        })
    }

    fn check(snapshot: &Snapshot, paths: &[&Arc<str>]) {
        for path in paths {
            let column = snapshot.column(path).expect("a requested column");
            for (row, aggregate) in snapshot.iter().enumerate() {
                let (first, rest) = path.split_once('.').unwrap_or((path, ""));
                let field = aggregate.field(first).map(std::borrow::Cow::into_owned);
                let field = if rest.is_empty() { field } else { field.and_then(|field| field.get(rest).cloned()) };
                assert_eq!(format!("{:?}", column.value(row)), format!("{field:?}"), "{path} at {row}");
            }
        }
    }

    #[test]
    fn columns_of_a_snapshot_match_its_states() {
        let resident = Resident::default();
        let paths: Vec<Arc<str>> = ["a.n", "slug", "_version", "tags", "a"].map(Arc::from).to_vec();
        resident.publish((0..5_000).map(|number| aggregate(number, number % 3)), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in 0..400u64 {
                    let changed = [aggregate(step * 7 % 5_000, step), aggregate(5_000 + step, step)];
                    resident.publish(changed, step);
                }
            });
            for round in 1..=8 {
                // The first rounds build columns while states change. Later rounds check that the existing columns are
                // current.
                let requested: Vec<&Arc<str>> = paths.iter().take(round.min(paths.len())).collect();
                check(&resident.snapshot_with(&requested), &requested);
            }
        });
        check(&resident.snapshot_with(&paths.iter().collect::<Vec<_>>()), &paths.iter().collect::<Vec<_>>());
    }

    #[test]
    fn an_older_state_does_not_replace_a_newer_one() {
        let resident = Resident::default();
        resident.publish([aggregate(1, 6)], 6);
        resident.publish([aggregate(1, 5), aggregate(2, 1)], 5);
        assert_eq!(resident.get("i-1").map(|found| found.version), Some(6));
        assert_eq!(resident.get("i-2").map(|found| found.version), Some(1));
        assert_eq!(resident.position(), 6);
        assert_eq!(resident.by_slug("thing", None, "s-7").len(), 1);
        // The same events, folded under another definition, have another state.
        let refolded = Aggregate { state: Arc::default(), ..Aggregate::clone(&aggregate(1, 6)) };
        resident.publish([Arc::new(refolded)], 0);
        assert!(resident.get("i-1").is_some_and(|found| found.state.is_empty()));
    }

    #[test]
    fn the_slug_index_follows_changes_of_aggregates() {
        let resident = Resident::default();
        for version in 0..60 {
            resident.publish((0..40).map(|number| aggregate(number, version)), version);
            for slug in 0..50u64 {
                let found = resident.by_slug("thing", None, &format!("s-{slug}"));
                let held = (0..40u64).filter(|number| version % 5 != 4 && (number + version) % 50 == slug);
                assert_eq!(
                    found.iter().map(AggregateId::to_string).collect::<Vec<_>>(),
                    held.map(|n| format!("i-{n}")).collect::<Vec<_>>()
                );
            }
        }
        assert!(resident.by_slug("thing", Some("p"), "s-1").is_empty());
        assert_eq!(resident.get("i-39").map(|found| found.version), Some(59));
        assert!(resident.get("i-40").is_none());
    }
}
