//! The interface of a window function while its window moves over a partition.

use std::ops::Range;

use super::partition::WindowPartition;
use crate::model::value::Value;
use crate::pipeline::value::error::Result;

/// A window function over one partition.
pub trait Computation<'a> {
    /// Returns the value for `row`, whose window contains the rows in `frame`. Returns `None` if the value is missing.
    /// Callers pass the rows in ascending order.
    fn value(&mut self, row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>>;
}
