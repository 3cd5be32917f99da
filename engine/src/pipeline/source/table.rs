//! The rows of a scan, which a source provides one by one or by columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::column::{Column, Mask};
use crate::pipeline::value::error::Result;

/// The rows that a source returned for a scan. The pipeline may read the rows more than once.
pub trait Table {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// Returns the number of rows, or `None` if counting the rows would require reading them.
    fn count(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns the rows that edges connect to `_nodes`, each row once and the nearest rows first. Returns no rows
    /// unless the scan follows edges.
    fn reached_from(&self, _nodes: &[Arc<str>]) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// Returns the columns of all rows, including the rows that the scan's filter and limit exclude. Returns `None` if
    /// the table has no columns.
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

/// The rows of a table, stored by columns.
pub trait Columns {
    /// Returns the number of rows. Rows excluded by [`restrict`](Columns::restrict) count as well.
    fn count(&self) -> usize;

    /// Returns the column of a path, if the table has this column.
    fn column(&self, path: &str) -> Option<&Column>;

    /// Removes rows from the mask of a segment: the rows of streams that the scan does not select, and deleted rows
    /// unless the scan returns deleted aggregates. Does not apply the scan's filter and limit.
    fn restrict(&self, segment: usize, mask: &mut Mask) -> Result<()>;

    /// Returns the `_id` of a row.
    fn id(&self, row_index: usize) -> Option<Arc<str>>;

    /// Returns a row with the fields that the scan requests.
    fn row(&self, row_index: usize) -> Option<Value>;

    /// Returns a row with the given fields. If `fields` is `None`, returns all fields of the row.
    fn part(&self, row_index: usize, fields: Option<&BTreeSet<Arc<str>>>) -> Option<Value>;
}
