//! The folded state of an open workspace, in memory: the last state of every aggregate, readable during appends.
//!
//! Aggregates are stored in chunks, in the order of their first events. A snapshot shares the chunks, and a write
//! copies a chunk only if a snapshot uses the chunk. Readers and appends therefore never wait for long.

mod columns;
pub mod dirty;
pub mod event_shapes;
pub mod follower;
pub mod graph;
pub mod labels;
mod newest;
mod rows;
mod sharing;
mod snapshot;
pub mod tail;
pub mod workload;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::model::value::Object;
pub use columns::BaseColumns;
use columns::BuiltColumn;
pub use newest::NewestFirst;
use rows::{CHUNK_SIZE, ResidentRows};
use sharing::PartInterner;
use snapshot::RequestedColumns;
pub use snapshot::Snapshot;

/// The aggregates of one workspace.
#[derive(Default)]
pub struct ResidentStates {
    // A panic during a write cannot leave a partial aggregate, because each write replaces one pointer.
    rows: RwLock<ResidentRows>,
    /// The lock that is held while a thread builds columns, so that no two threads build the same column.
    making: Mutex<()>,
    sharing: Mutex<PartInterner>,
}

impl ResidentStates {
    /// Returns the current state of an aggregate.
    pub fn get(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.rows.read().get(id).cloned()
    }

    /// Returns the state of an aggregate in a snapshot of this workspace.
    pub fn get_in(&self, snapshot: &Snapshot, id: &str) -> Option<Arc<Aggregate>> {
        // An aggregate never moves to another row.
        let row = self.rows.read().row_of(id)?;
        snapshot.at(row as usize).cloned()
    }

    pub fn snapshot(&self) -> Snapshot {
        let rows = self.rows.read();
        Snapshot { chunks: rows.chunks.clone(), position: rows.position, columns: None }
    }

    /// Returns an iterator over the aggregates whose first event is before a position, newest first. With
    /// `aggregate_type`, the iterator visits only aggregates of this type.
    pub fn newest<'a>(&'a self, aggregate_type: Option<&'a str>, before: u64) -> NewestFirst<'a> {
        NewestFirst::new(self, aggregate_type, before)
    }

    /// Returns whether all these paths have columns. Marks the existing columns as used.
    pub fn has_columns(&self, paths: &[&Arc<str>]) -> bool {
        self.rows.read().columns.missing(paths).is_empty()
    }

    /// Returns a snapshot with columns of these paths. The snapshot lacks a column that is dropped before the snapshot
    /// is taken. Building missing columns takes processor time, so threads that serve requests must call this function
    /// only if [`has_columns`](Self::has_columns) returns `true`.
    pub fn snapshot_with(&self, paths: &[&Arc<str>]) -> Snapshot {
        if !self.has_columns(paths) {
            self.make_columns(paths);
        }
        let rows = self.rows.read();
        let column = |path: &&Arc<str>| Some(((*path).clone(), rows.columns.column(path)?.clone()));
        let columns =
            RequestedColumns { base: rows.columns.base.clone(), by_path: paths.iter().filter_map(column).collect() };
        Snapshot { chunks: rows.chunks.clone(), position: rows.position, columns: Some(Arc::new(columns)) }
    }

    fn make_columns(&self, paths: &[&Arc<str>]) {
        let _one = self.making.lock();
        let snapshot = self.snapshot();
        let mut built: Vec<BuiltColumn> =
            self.rows.read().columns.missing(paths).into_iter().map(BuiltColumn::new).collect();
        for (row, aggregate) in snapshot.iter().enumerate() {
            built.iter_mut().for_each(|column| column.put(row, aggregate));
        }
        let mut rows = self.rows.write();
        for (number, chunk) in rows.chunks.iter().enumerate() {
            // A writer copies a chunk that the snapshot uses. An identical pointer therefore means an unchanged chunk.
            if snapshot.chunks.get(number).is_some_and(|before| Arc::ptr_eq(before, chunk)) {
                continue;
            }
            for (row, aggregate) in chunk.iter().enumerate() {
                built.iter_mut().for_each(|column| column.put(number * CHUNK_SIZE + row, aggregate));
            }
        }
        built.into_iter().for_each(|column| rows.columns.keep(column));
    }

    /// Returns the position of the last folded event.
    pub fn position(&self) -> u64 {
        self.rows.read().position
    }

    /// Returns the aggregates of a type and project that have this slug, except deleted aggregates.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Vec<AggregateId> {
        self.rows.read().by_slug((aggregate_type, project_id, slug))
    }

    /// Returns the approximate size of the columns, in bytes.
    pub fn columns_bytes(&self) -> usize {
        self.rows.read().columns.size_bytes()
    }

    /// Replaces parts of an aggregate with equal parts of other aggregates to save memory.
    pub fn share(&self, aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        self.sharing.lock().share(aggregate)
    }

    /// Publishes aggregates folded up to `position`. Ignores an aggregate if the resident aggregate has a higher
    /// version. Otherwise replaces the resident aggregate, but not its facts. New aggregates must be sorted by the
    /// positions of their first events.
    pub fn publish(&self, aggregates: impl IntoIterator<Item = Arc<Aggregate>>, position: u64) {
        let aggregates: Vec<_> = aggregates.into_iter().map(|aggregate| self.share(aggregate)).collect();
        let mut rows = self.rows.write();
        for aggregate in aggregates {
            rows.put(aggregate);
        }
        rows.position = rows.position.max(position);
    }

    /// Replaces the facts of aggregates. Ignores aggregates that are not resident.
    pub fn set_facts(&self, facts: impl IntoIterator<Item = (AggregateId, Arc<Object>)>) {
        let mut sharing = self.sharing.lock();
        let mut rows = self.rows.write();
        for (id, facts) in facts {
            if let Some(slot) = rows.slot(&id) {
                Arc::make_mut(slot).facts = sharing.facts(&facts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Value;

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
            version,
            position: version,
            first_position: number,
            last_event_at: version as i64,
            deleted: version % 5 == 4,
            ..Aggregate::sample("thing", &format!("i-{number}"), state)
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
        let resident = ResidentStates::default();
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
    fn a_state_is_replaced_by_a_refolded_state_but_not_by_an_older_state() {
        let resident = ResidentStates::default();
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
        let resident = ResidentStates::default();
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
