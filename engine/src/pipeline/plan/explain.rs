//! What a run did: source, pushed parts, operators, rows and time of each.

use std::cell::Cell;

use super::context::Context;
use super::error::Result;
use super::operator::Rows;
use super::program::Program;
use super::scan::Scan;
use crate::model::value::{Object, Value};

/// Rows that came out of an operator, and the time until then, that of the operators below included.
#[derive(Debug, Default)]
pub struct Meter {
    rows: Cell<u64>,
    us: Cell<u64>,
    by_columns: Cell<bool>,
}

impl Meter {
    /// Says what was measured of a step that was done over columns.
    pub fn measured(&self, rows: u64, us: u64) {
        self.rows.set(rows);
        self.us.set(us);
    }

    /// Says that the source was read by columns.
    pub fn by_columns(&self) {
        self.by_columns.set(true);
    }

    pub fn took(&self, us: u64) {
        self.us.set(self.us.get().saturating_add(us));
    }
}

/// An operator's rows; an error among them is told its stage, and all are measured where a meter is.
pub struct Tracked<'a> {
    pub rows: Rows<'a>,
    pub index: usize,
    pub meter: Option<&'a Meter>,
    pub query: &'a Context<'a>,
}

impl Iterator for Tracked<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        let Some(meter) = self.meter else {
            return self.rows.next().map(|row| row.map_err(|error| error.at_stage(self.index)));
        };
        let start = (self.query.elapsed_us)();
        let row = self.rows.next();
        meter.took((self.query.elapsed_us)().saturating_sub(start));
        if row.is_some() {
            meter.rows.set(meter.rows.get() + 1);
        }
        row.map(|row| row.map_err(|error| error.at_stage(self.index)))
    }
}

/// The plan with what was measured. `read` counts the source's rows.
pub fn explain(program: &Program, scans: &[Scan], rules: &[&'static str], meters: &[Meter], read: &Meter) -> Value {
    let Value::Array(plan) = program.describe(scans) else { return Value::Null };
    let mut stages = Vec::with_capacity(plan.len());
    let mut below = 0;
    for (place, (entry, meter)) in plan.iter().zip(std::iter::once(read).chain(meters)).enumerate() {
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        if place == 0 && !read.by_columns.get() {
            entry.remove("columns");
        }
        let us = meter.us.get();
        entry.insert("rows", int(meter.rows.get()));
        entry.insert("us", int(us.saturating_sub(below)));
        below = us;
        stages.push(Value::from(entry));
    }
    let rules: Vec<Value> = rules.iter().copied().map(Value::from).collect();
    Object::from_iter([("stages", Value::from(stages)), ("rules", rules.into())]).into()
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
