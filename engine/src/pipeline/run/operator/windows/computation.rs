//! The interface of a window function while its window moves over a partition.

use std::ops::Range;

use super::partition::WindowPartition;
use crate::model::value::Value;
use crate::pipeline::value::error::Result;

/// A window function over one partition.
pub trait Computation<'a> {
    /// Returns the value for a row whose window contains the rows in `frame`, or `None` if the field is missing. The
    /// calls are in the order of the rows.
    fn value(&mut self, row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>>;
}
