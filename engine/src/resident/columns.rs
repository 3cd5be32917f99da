//! Columns of the resident states: the fields that every scan reads, and the paths that pipelines have used.
//!
//! A column is built from a snapshot when a pipeline first needs the column. The build does not block writers. States
//! that change during the build are read again at the end of the build. Later, every published state is also written
//! into the column.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::model::aggregate::Aggregate;
use crate::model::value::Value;
use crate::pipeline::column::{Cell, Column};

/// The maximum number of columns for paths. At the limit, a new column replaces the least recently used column.
const MAX_CACHED_COLUMNS: usize = 32;
/// The number of texts that a column's dictionary may contain in addition to twice the number of texts after the build.
/// A column whose dictionary exceeds this limit is dropped, because the dictionary also keeps texts that are no longer
/// in any state.
const STALE_TEXTS: usize = 16_384;

/// The columns of a workspace.
#[derive(Default)]
pub struct Columns {
    pub base: BaseColumns,
    cached: FxHashMap<Arc<str>, CachedColumn>,
    clock: AtomicU64,
}

/// The columns that every scan reads.
#[derive(Clone, Default)]
pub struct BaseColumns {
    pub types: Column,
    pub projects: Column,
    pub deleted: Column,
}

struct CachedColumn {
    path: ColumnPath,
    column: Column,
    /// The value of [`Columns::clock`] when the column was last requested.
    last_used: AtomicU64,
    max_texts: usize,
}

/// The segments of a path. Each segment is a field name.
#[derive(Clone)]
struct ColumnPath(Box<[Arc<str>]>);

/// A column that was built from a snapshot and is not yet in use.
pub struct BuiltColumn {
    path: ColumnPath,
    text: Arc<str>,
    column: Column,
}

impl Columns {
    /// Returns the approximate size of the columns, in bytes.
    pub fn size_bytes(&self) -> usize {
        let BaseColumns { types, projects, deleted } = &self.base;
        let cached = self.cached.values().map(|cached| &cached.column);
        cached.chain([types, projects, deleted]).map(Column::size_bytes).sum()
    }

    /// Writes the state of the aggregate at `row` into every column. Drops the columns whose dictionaries have become
    /// too large.
    pub fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.base.put(row, aggregate);
        self.cached.retain(|_, cached| {
            cached.path.put(&mut cached.column, row, aggregate);
            cached.column.texts().len() <= cached.max_texts
        });
    }

    /// Returns the paths that have no column. Marks the columns of the other paths as used.
    pub fn missing<'p>(&self, paths: &[&'p Arc<str>]) -> Vec<&'p Arc<str>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let missing = paths.iter().copied().filter(|path| match self.cached.get(&***path) {
            Some(cached) => {
                cached.last_used.store(now, Ordering::Relaxed);
                false
            }
            None => self.base.column(path).is_none(),
        });
        missing.collect()
    }

    pub fn column(&self, path: &str) -> Option<&Column> {
        self.cached.get(path).map(|cached| &cached.column)
    }

    /// Adds a column, which must contain the values of all current states. If the maximum number of columns is cached,
    /// first removes the least recently used column.
    pub fn keep(&mut self, built: BuiltColumn) {
        while self.cached.len() >= MAX_CACHED_COLUMNS {
            let oldest = self.cached.iter().min_by_key(|(_, cached)| cached.last_used.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
            self.cached.remove(&oldest);
        }
        let BuiltColumn { path, text, column } = built;
        let last_used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let max_texts = column.texts().len() * 2 + STALE_TEXTS;
        self.cached.insert(text, CachedColumn { path, column, last_used, max_texts });
    }
}

impl BaseColumns {
    fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.types.set(row, Cell::Value(&aggregate.aggregate_type.clone().into()));
        self.projects.set(row, Cell::Value(&aggregate.project_id.clone().into()));
        self.deleted.set(row, Cell::Value(&Value::Bool(aggregate.deleted)));
    }

    /// Returns the column of a path, or `None` if the path has no base column.
    pub fn column(&self, path: &str) -> Option<&Column> {
        match path {
            "aggregate_type" => Some(&self.types),
            "project_id" => Some(&self.projects),
            _ => None,
        }
    }
}

impl BuiltColumn {
    pub fn new(text: &Arc<str>) -> BuiltColumn {
        let path = ColumnPath(text.split('.').map(Arc::from).collect());
        BuiltColumn { path, text: text.clone(), column: Column::default() }
    }

    pub fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.path.put(&mut self.column, row, aggregate);
    }
}

impl ColumnPath {
    fn put(&self, column: &mut Column, row: usize, aggregate: &Aggregate) {
        let Some((first, rest)) = self.0.split_first() else { return };
        let field = aggregate.field(first);
        column.set(row, field.as_deref().map_or(Cell::Missing, |value| below(value, rest)));
    }
}

/// Returns the cell at a path inside a value. The cell is [`Cell::Opaque`] if the path leads through an array.
fn below<'v>(value: &'v Value, names: &[Arc<str>]) -> Cell<'v> {
    let Some((first, rest)) = names.split_first() else { return Cell::Value(value) };
    match value {
        Value::Object(object) => object.get(first).map_or(Cell::Missing, |value| below(value, rest)),
        Value::Array(_) => Cell::Opaque,
        _ => Cell::Missing,
    }
}
