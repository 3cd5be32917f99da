//! `$graphLookup`: for each row, repeats a lookup of equal values, and adds the found rows to the row. Rows that need
//! fewer lookups come first.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lookup::add;
use super::nested_fields;
use crate::model::value::Value;
use crate::pipeline::language::ast::GraphSearch;
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, Rows, RunContext, collect};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::memory::{expanded_bytes, measure, measure_all, own_bytes};
use crate::pipeline::value::query_path::{Leaf, QueryPath};

/// The operator of `$graphLookup`.
pub struct GraphLookupOperator {
    pub search: GraphSearch,
    pub program: Program,
}

/// The rows that are searched, with an index of their values.
struct SearchedRows {
    rows: Vec<Value>,
    by_value: FxHashMap<Value, Vec<usize>>,
    /// For each row, the first row with the same `_id`, or `None` if the row has no `_id`.
    first: Vec<Option<usize>>,
    /// The path of a field of the rows. After the search finds a row, the search looks up the values of this field.
    from: QueryPath,
    /// The results of earlier searches, by start value.
    known: FxHashMap<Value, Value>,
    /// The number of bytes that the query is charged for `known`.
    known_bytes: usize,
}

impl Operator for GraphLookupOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut searched: Option<SearchedRows> = None;
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            let searched = match &mut searched {
                Some(searched) => searched,
                None => searched.insert(self.read(run)?),
            };
            let start = run.query.uncharged(|| self.search.start.eval(&run.env(&row)))?;
            let found = match start {
                None => Value::from(Vec::new()),
                Some(start) => self.found(start, searched, run)?,
            };
            Ok(nested_fields::with(row, self.search.target.segments(), found))
        })))
    }
}

impl GraphLookupOperator {
    fn read(&self, run: RunContext) -> Result<SearchedRows> {
        let rows = collect(self.program.rows(run)?, self.program.owner(), run.query)?;
        let mut by_value: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
        let mut by_id: FxHashMap<&Value, usize> = FxHashMap::default();
        let mut first = Vec::with_capacity(rows.len());
        for (row_index, row) in rows.iter().enumerate() {
            run.query.tick()?;
            run.query.charge(size_of::<Value>() + 2 * size_of::<usize>())?;
            self.search.connect_to.any(row, Leaf::Expanded, &mut |value| {
                let Some(value) = value else { return Ok(false) };
                measure(value, run.query)?;
                add(&mut by_value, value.clone(), row_index, run.query)?;
                Ok(false)
            })?;
            first.push(match row.get("_id") {
                Some(id) => {
                    measure(id, run.query)?;
                    Some(*by_id.entry(id).or_insert(row_index))
                }
                None => None,
            });
        }
        let from = QueryPath::new(&self.search.connect_from.segments().join("."));
        drop(by_id);
        Ok(SearchedRows { rows, by_value, first, from, known: FxHashMap::default(), known_bytes: 0 })
    }

    /// Returns the array of the rows that are reached from a start value. Keeps small results for later rows with the
    /// same start value.
    fn found(&self, start: Value, searched: &mut SearchedRows, run: RunContext) -> Result<Value> {
        measure(&start, run.query)?;
        if let Some(found) = searched.known.get(&start) {
            return Ok(found.clone());
        }
        // The operator that keeps the row charges the query for the found rows as well.
        let found = run.query.uncharged(|| self.search(&start, searched, run.query))?;
        let rows = found.as_array().unwrap_or_default();
        let copied: usize = rows.iter().map(|row| self.copied_bytes(row)).sum();
        let bytes = expanded_bytes(&start, run.query)? + size_of::<Value>() + size_of_val(rows) + copied;
        // The kept results together take less than an eighth of the memory that the query could use without the kept
        // results.
        let known_bytes = searched.known_bytes + bytes;
        if known_bytes < (run.query.remaining_bytes() + searched.known_bytes) / 8 {
            run.query.charge(bytes)?;
            searched.known_bytes = known_bytes;
            searched.known.insert(start, found.clone());
        }
        Ok(found)
    }

    /// Returns the array of the rows that a breadth-first search finds from `start`. Rows of one depth are in the order
    /// in which they are read.
    fn search(&self, start: &Value, searched: &SearchedRows, query: &Context) -> Result<Value> {
        let mut is_found: FxHashSet<usize> = FxHashSet::default();
        let mut asked: FxHashSet<Value> = FxHashSet::default();
        let mut values: Vec<Value> = match start {
            Value::Array(items) => items.to_vec(),
            value => vec![value.clone()],
        };
        let mut found = Vec::new();
        let mut depth = 0u64;
        while !values.is_empty() && self.search.max_depth.is_none_or(|max| depth <= max) {
            let mut level: Vec<usize> = Vec::new();
            for value in std::mem::take(&mut values) {
                query.tick()?;
                measure(&value, query)?;
                if let Some(row_indices) = searched.by_value.get(&value) {
                    query.tick_many(row_indices.len())?;
                    level.extend(row_indices);
                }
                query.charge(size_of::<Value>())?;
                asked.insert(value);
            }
            level.sort_unstable();
            level.dedup();
            for row_index in level {
                query.tick()?;
                let row = &searched.rows[row_index];
                let Some(first) = searched.first[row_index] else {
                    let text = "Documents in the 'from' of $graphLookup must contain an '_id'";
                    return Err(Error::new(40271, text));
                };
                if !is_found.insert(first) {
                    continue;
                }
                query.charge(2 * size_of::<Value>() + self.copied_bytes(row))?;
                searched.next(row, &asked, &mut values, query)?;
                found.push(self.with_depth(row, depth));
            }
            depth += 1;
        }
        Ok(found.into())
    }

    /// Returns the number of bytes of a found row that are not shared with the searched row.
    fn copied_bytes(&self, row: &Value) -> usize {
        let Some(path) = &self.search.depth_field else { return 0 };
        let names = path.segments().iter();
        let objects = names.scan(Some(row), |object, name| {
            let at = (*object)?;
            *object = at.get(name);
            Some(at)
        });
        objects.map(own_bytes).sum()
    }

    fn with_depth(&self, row: &Value, depth: u64) -> Value {
        let Some(path) = &self.search.depth_field else { return row.clone() };
        let depth = Value::Int(i64::try_from(depth).unwrap_or(i64::MAX));
        nested_fields::with(row.clone(), path.segments(), depth)
    }
}

impl SearchedRows {
    /// Adds to `values` the values that a row has at the path `from`. Adds the items of an array instead of the array.
    /// Skips the values that `asked` contains.
    fn next(&self, row: &Value, asked: &FxHashSet<Value>, values: &mut Vec<Value>, query: &Context) -> Result<()> {
        self.from.any(row, Leaf::Whole, &mut |value| {
            let Some(value) = value else { return Ok(false) };
            let items = match value {
                Value::Array(items) => items.as_slice(),
                value => std::slice::from_ref(value),
            };
            measure_all(items, query)?;
            query.charge(size_of_val(items))?;
            values.extend(items.iter().filter(|item| !asked.contains(*item)).cloned());
            Ok(false)
        })?;
        Ok(())
    }
}
