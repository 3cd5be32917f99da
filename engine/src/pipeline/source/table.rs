//! The rows of a scan, as whoever holds them gives them: one by one, or by columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::column::{Column, Mask};
use crate::pipeline::value::error::Result;

/// Rows that a scan gave. They may be asked for more than once.
pub trait Table {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// The rows around nodes, of a scan that follows edges: the nearest first, each node once.
    fn around(&self, _nodes: &[Arc<str>]) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// The same rows, before filter and limit of the scan, by columns.
    fn columns(&self) -> Option<&dyn Columns> {
        None
    }
}

impl Table for Vec<Value> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.iter().cloned())
    }
}

impl Table for Arc<[Value]> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.iter().cloned())
    }
}

/// Rows of a table, by columns.
pub trait Columns {
    /// How many rows there are, those left out by [`restrict`](Columns::restrict) included.
    fn count(&self) -> usize;

    /// The column of a path, if it is kept.
    fn column(&self, path: &str) -> Option<&Column>;

    /// Takes those rows of a segment out of a mask that the scan does not ask for.
    fn restrict(&self, segment: usize, mask: &mut Mask) -> Result<()>;

    /// A row's `_id`.
    fn id(&self, row_index: usize) -> Option<Arc<str>>;

    /// A row with the fields that the scan asks for.
    fn row(&self, row_index: usize) -> Option<Value>;

    /// A row with these fields, or all of its fields.
    fn part(&self, row_index: usize, fields: Option<&BTreeSet<Arc<str>>>) -> Option<Value>;
}
