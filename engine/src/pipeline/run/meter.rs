//! Measurements of a run: the rows and the time of each operator.

use std::cell::Cell;

use super::rows::Rows;
use crate::model::value::Value;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// The measurements of an operator: the number of returned rows, the elapsed time in microseconds, and whether the run
/// read columns. The time includes the preceding operators.
#[derive(Debug, Default)]
pub struct OperatorMeter {
    rows: Cell<u64>,
    us: Cell<u64>,
    by_columns: Cell<bool>,
}

impl OperatorMeter {
    /// Sets the measurements of a step that ran over columns.
    pub fn measured(&self, rows: u64, us: u64) {
        self.rows.set(rows);
        self.us.set(us);
    }

    /// Records that the run read columns instead of the source's rows.
    pub fn by_columns(&self) {
        self.by_columns.set(true);
    }

    /// Returns the number of rows that the operator has returned.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Returns the elapsed time in microseconds.
    pub fn us(&self) -> u64 {
        self.us.get()
    }

    /// Returns whether the run read columns instead of the source's rows.
    pub fn is_by_columns(&self) -> bool {
        self.by_columns.get()
    }

    /// Adds `us` microseconds to the elapsed time.
    pub fn took(&self, us: u64) {
        self.us.set(self.us.get().saturating_add(us));
    }
}

/// An iterator over the rows that an operator returns. Adds the index of the stage to errors. If there is a meter,
/// counts the rows and measures the time.
pub struct MeteredRows<'a> {
    pub rows: Rows<'a>,
    pub index: usize,
    pub meter: Option<&'a OperatorMeter>,
    pub query: &'a Context<'a>,
}

impl Iterator for MeteredRows<'_> {
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
