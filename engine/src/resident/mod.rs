//! The folded state of an open workspace, in memory: every aggregate's last state, readable while appends go on.
//!
//! Aggregates stand in chunks, in the order of their first events. A snapshot shares the chunks, and a chunk is
//! copied only when it is written while a snapshot still holds it; so readers never wait for long, nor do appends.

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
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::pipeline::column::{Column, Index};
pub use columns::Base;
use columns::{BuiltColumn, Columns};
use sharing::Sharing;

/// Aggregates in a chunk. Small enough to copy in a microsecond, large enough that a snapshot of a million is short.
const CHUNK: usize = 256;
/// The state field by which an aggregate of its type and project can be addressed.
pub const SLUG: &str = "slug";

type Chunk = Vec<Arc<Aggregate>>;
/// Type, project and slug.
type SlugKey<'a> = (&'a str, Option<&'a str>, &'a str);

/// The aggregates of one workspace.
#[derive(Default)]
pub struct Resident {
    inner: RwLock<Inner>,
    /// One makes columns at a time; whoever wants the same ones finds them then.
    making: Mutex<()>,
    sharing: Mutex<Sharing>,
}

#[derive(Default)]
struct Inner {
    chunks: Vec<Arc<Chunk>>,
    /// Places by id.
    rows: Index,
    /// Places of those not deleted by slug. More than one where events were appended past the article operations.
    slugs: Index,
    /// How many aggregates there are.
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

/// The columns that a snapshot was asked to have.
struct Wanted {
    base: Base,
    by_path: FxHashMap<Arc<str>, Column>,
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

    /// How many aggregates there are.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The aggregate at a row, in the order of [`iter`](Snapshot::iter).
    pub fn at(&self, row: usize) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row / CHUNK)?.get(row % CHUNK)
    }

    /// What every scan asks about, where the snapshot has columns.
    pub fn base(&self) -> Option<&Base> {
        self.columns.as_ref().map(|columns| &columns.base)
    }

    /// The column of a path, if it was asked for and is kept.
    pub fn column(&self, path: &str) -> Option<&Column> {
        let columns = self.columns.as_ref()?;
        columns.by_path.get(path).or_else(|| columns.base.column(path))
    }
}

impl Resident {
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.read().get(id).cloned()
    }

    /// The aggregate as it is in a snapshot of these.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        // An aggregate never leaves its row.
        let row = self.read().row_of(id)? as usize;
        snapshot.chunks.get(row / CHUNK)?.get(row % CHUNK).cloned()
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.read();
        Snapshot { chunks: inner.chunks.clone(), position: inner.position, columns: None }
    }

    /// Whether there are columns of all these paths.
    pub fn has_columns(&self, paths: &[&Arc<str>]) -> bool {
        self.read().columns.missing(paths).is_empty()
    }

    /// A snapshot with columns of these paths, which are made if there are none yet.
    pub fn snapshot_with(&self, paths: &[&Arc<str>]) -> Snapshot {
        if !self.has_columns(paths) {
            self.make_columns(paths);
        }
        let inner = self.read();
        let column = |path: &&Arc<str>| Some(((*path).clone(), inner.columns.column(path)?.clone()));
        let wanted = Wanted { base: inner.columns.base().clone(), by_path: paths.iter().filter_map(column).collect() };
        Snapshot { chunks: inner.chunks.clone(), position: inner.position, columns: Some(Arc::new(wanted)) }
    }

    fn make_columns(&self, paths: &[&Arc<str>]) {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot();
        let mut built: Vec<BuiltColumn> =
            self.read().columns.missing(paths).into_iter().map(BuiltColumn::new).collect();
        for (row, aggregate) in snapshot.iter().enumerate() {
            built.iter_mut().for_each(|column| column.put(row, aggregate));
        }
        let mut inner = self.write();
        for (number, chunk) in inner.chunks.iter().enumerate() {
            // While the snapshot holds a chunk, whoever writes to it copies it.
            if snapshot.chunks.get(number).is_some_and(|before| Arc::ptr_eq(before, chunk)) {
                continue;
            }
            for (row, aggregate) in chunk.iter().enumerate() {
                built.iter_mut().for_each(|column| column.put(number * CHUNK + row, aggregate));
            }
        }
        built.into_iter().for_each(|column| inner.columns.keep(column));
    }

    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// The aggregates that have this slug among those of a type and project.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        let key = (aggregate_type, project_id, slug);
        let inner = self.read();
        let mut rows: Vec<u32> = inner.slugs.candidates(hash(key)).collect();
        rows.sort_unstable();
        let found = rows.into_iter().filter_map(|row| inner.at(row)).filter(|found| slug_key(found) == Some(key));
        found.map(|aggregate| aggregate.id.clone()).collect()
    }

    /// Bytes that columns of the states take, roughly.
    pub fn columns_bytes(&self) -> usize {
        self.read().columns.size_bytes()
    }

    /// The aggregate in less room: what it has in common with others is held once.
    pub fn share(&self, aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner).share(aggregate)
    }

    /// Takes in aggregates that were folded up to a position, unless they are here in a later version. New ones come in
    /// the order of their first events.
    pub fn publish(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>, position: u64) {
        let aggregates: Vec<_> = aggregates.into_iter().map(|aggregate| self.share(aggregate)).collect();
        let mut inner = self.write();
        for aggregate in aggregates {
            inner.put(aggregate);
        }
        inner.position = inner.position.max(position);
    }

    /// Replaces what is derived about aggregates. Those that are not here are passed over.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        let mut sharing = self.sharing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.write();
        for (id, facts) in facts {
            if let Some(slot) = inner.slot(&id) {
                Arc::make_mut(slot).facts = sharing.facts(&facts);
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
        self.at(self.row_of(id)?)
    }

    fn row_of(&self, id: &str) -> Option<u32> {
        let mut candidates = self.rows.candidates(hash(id));
        candidates.find(|row| self.at(*row).is_some_and(|aggregate| aggregate.id.as_str() == id))
    }

    fn at(&self, row: u32) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row as usize / CHUNK)?.get(row as usize % CHUNK)
    }

    fn slot(&mut self, id: &AggregateId) -> Option<&mut Arc<Aggregate>> {
        let row = self.row_of(id.as_str())? as usize;
        Arc::make_mut(self.chunks.get_mut(row / CHUNK)?).get_mut(row % CHUNK)
    }

    fn put(&mut self, mut aggregate: Arc<Aggregate>) {
        let before = self.get(aggregate.id.as_str()).cloned();
        if before.as_ref().is_some_and(|before| before.version > aggregate.version) {
            // Whoever folded it began before the events that are in the one here.
            return;
        }
        let row = self.row_of(aggregate.id.as_str()).unwrap_or(self.count);
        self.index_slug(row, before.as_deref(), &aggregate);
        self.columns.put(row as usize, &aggregate);
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
                self.rows.insert(hash(aggregate.id.as_str()), row);
                self.count += 1;
                if (row as usize).is_multiple_of(CHUNK) {
                    self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
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
            let column = snapshot.column(path).expect("a column that was asked for");
            for (row, aggregate) in snapshot.iter().enumerate() {
                let (first, rest) = path.split_once('.').unwrap_or((path, ""));
                let field = aggregate.field(first).map(std::borrow::Cow::into_owned);
                let field = if rest.is_empty() { field } else { field.and_then(|field| field.get(rest).cloned()) };
                assert_eq!(format!("{:?}", column.value(row)), format!("{field:?}"), "{path} at {row}");
            }
        }
    }

    #[test]
    fn a_snapshots_columns_say_what_its_states_say() {
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
                // The first rounds make columns while states change; later ones find them kept up.
                let wanted: Vec<&Arc<str>> = paths.iter().take(round.min(paths.len())).collect();
                check(&resident.snapshot_with(&wanted), &wanted);
            }
        });
        check(&resident.snapshot_with(&paths.iter().collect::<Vec<_>>()), &paths.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_was_folded_from_fewer_events_replaces_nothing() {
        let resident = Resident::default();
        resident.publish([aggregate(1, 6)], 6);
        resident.publish([aggregate(1, 5), aggregate(2, 1)], 5);
        assert_eq!(resident.get("i-1").map(|found| found.version), Some(6));
        assert_eq!(resident.get("i-2").map(|found| found.version), Some(1));
        assert_eq!(resident.position(), 6);
        assert_eq!(resident.by_slug("thing", None, "s-7").len(), 1);
        // The same events folded another way.
        let refolded = Aggregate { state: Arc::default(), ..Aggregate::clone(&aggregate(1, 6)) };
        resident.publish([Arc::new(refolded)], 0);
        assert!(resident.get("i-1").is_some_and(|found| found.state.is_empty()));
    }

    #[test]
    fn slugs_follow_their_aggregates() {
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
