//! Columns of the resident states: of what every scan asks about, and of the paths that pipelines used.
//!
//! A column is made when a pipeline first wants it, out of a snapshot and beside the writers; what changed meanwhile is
//! read again when it is taken in. From then on each state that is published is written into it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::model::aggregate::Aggregate;
use crate::model::value::Value;
use crate::pipeline::column::{Cell, Column};

/// Columns kept; a new one takes the row of that which was wanted longest ago.
const MOST: usize = 32;
/// A dictionary may have as many texts that no state holds any more as it had when it was made, and this many.
const STALE_TEXTS: usize = 16_384;

/// The columns of a workspace.
#[derive(Default)]
pub struct Columns {
    base: Base,
    cached: FxHashMap<Arc<str>, CachedColumn>,
    clock: AtomicU64,
}

/// What every scan asks about.
#[derive(Clone, Default)]
pub struct Base {
    pub types: Column,
    pub projects: Column,
    pub deleted: Column,
}

struct CachedColumn {
    path: Path,
    column: Column,
    /// When it was wanted last.
    wanted: AtomicU64,
    most_texts: usize,
}

/// A path's names.
#[derive(Clone)]
struct Path(Box<[Arc<str>]>);

/// A column that was made beside the writers.
pub struct BuiltColumn {
    path: Path,
    text: Arc<str>,
    column: Column,
}

impl Columns {
    /// Bytes that the columns take, roughly.
    pub fn size_bytes(&self) -> usize {
        let Base { types, projects, deleted } = &self.base;
        let cached = self.cached.values().map(|cached| &cached.column);
        cached.chain([types, projects, deleted]).map(Column::size_bytes).sum()
    }

    /// Writes a state into every column.
    pub fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.base.put(row, aggregate);
        self.cached.retain(|_, cached| {
            cached.path.put(&mut cached.column, row, aggregate);
            cached.column.texts().len() <= cached.most_texts
        });
    }

    /// Which of the paths have no column. Those that have one are wanted again.
    pub fn missing<'p>(&self, paths: &[&'p Arc<str>]) -> Vec<&'p Arc<str>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let missing = paths.iter().copied().filter(|path| match self.cached.get(&***path) {
            Some(cached) => {
                cached.wanted.store(now, Ordering::Relaxed);
                false
            }
            None => self.base.column(path).is_none(),
        });
        missing.collect()
    }

    pub fn base(&self) -> &Base {
        &self.base
    }

    pub fn column(&self, path: &str) -> Option<&Column> {
        self.cached.get(path).map(|cached| &cached.column)
    }

    /// Takes in a column to which nothing is missing any more.
    pub fn keep(&mut self, built: BuiltColumn) {
        while self.cached.len() >= MOST {
            let oldest = self.cached.iter().min_by_key(|(_, cached)| cached.wanted.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
            self.cached.remove(&oldest);
        }
        let BuiltColumn { path, text, column } = built;
        let wanted = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let most_texts = column.texts().len() * 2 + STALE_TEXTS;
        self.cached.insert(text, CachedColumn { path, column, wanted, most_texts });
    }
}

impl Base {
    fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.types.set(row, Cell::Value(&aggregate.aggregate_type.clone().into()));
        self.projects.set(row, Cell::Value(&aggregate.project_id.clone().into()));
        self.deleted.set(row, Cell::Value(&Value::Bool(aggregate.deleted)));
    }

    /// The column of a field by its name in rows.
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
        let path = Path(text.split('.').map(Arc::from).collect());
        BuiltColumn { path, text: text.clone(), column: Column::default() }
    }

    pub fn put(&mut self, row: usize, aggregate: &Aggregate) {
        self.path.put(&mut self.column, row, aggregate);
    }
}

impl Path {
    fn put(&self, column: &mut Column, row: usize, aggregate: &Aggregate) {
        let Some((first, rest)) = self.0.split_first() else { return };
        let field = aggregate.field(first);
        match &field {
            None => column.set(row, Cell::Missing),
            Some(Cow::Borrowed(value)) => column.set(row, below(value, rest)),
            Some(Cow::Owned(value)) => column.set(row, below(value, rest)),
        }
    }
}

/// What stands below a value, through objects only.
fn below<'v>(value: &'v Value, names: &[Arc<str>]) -> Cell<'v> {
    let Some((first, rest)) = names.split_first() else { return Cell::Value(value) };
    match value {
        Value::Object(object) => object.get(first).map_or(Cell::Missing, |value| below(value, rest)),
        Value::Array(_) => Cell::Opaque,
        _ => Cell::Missing,
    }
}
