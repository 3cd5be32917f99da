//! A window function whose data structure follows the window: rows enter at the end of the window and leave at the
//! beginning.

use std::ops::Range;

use super::computation::Computation;
use super::partition::WindowPartition;
use crate::model::value::Value;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::own_bytes;

/// The data structure of a function that depends only on the rows in the window.
pub trait Slide {
    /// Adds the next row of the partition to the window. Does nothing by default.
    fn add(&mut self, _row: usize, _partition: &WindowPartition) -> Result<()> {
        Ok(())
    }

    /// Removes the first row from the window. Does nothing by default.
    fn remove(&mut self, _row: usize, _partition: &WindowPartition) -> Result<()> {
        Ok(())
    }

    /// Returns the value for the window.
    fn value(&mut self, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>>;
}

/// A window that moves over a partition. If the windows of successive rows are equal, the value is computed once.
pub struct SlidingWindow<S> {
    slide: S,
    held: Range<usize>,
    last: Option<(Range<usize>, Option<Value>)>,
    /// The number of bytes that the query is charged for the value in `last`.
    last_bytes: usize,
}

impl<S: Slide> SlidingWindow<S> {
    pub fn new(slide: S) -> SlidingWindow<S> {
        SlidingWindow { slide, held: 0..0, last: None, last_bytes: 0 }
    }
}

impl<S: Slide> Computation<'_> for SlidingWindow<S> {
    fn value(&mut self, _row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        if let Some((last, value)) = &self.last
            && *last == frame
        {
            return Ok(value.clone());
        }
        while self.held.start < frame.start.min(self.held.end) {
            partition.run.query.tick()?;
            self.slide.remove(self.held.start, partition)?;
            self.held.start += 1;
        }
        if self.held.is_empty() && self.held.start < frame.start {
            self.held = frame.start..frame.start;
        }
        while self.held.end < frame.end {
            partition.run.query.tick()?;
            self.slide.add(self.held.end, partition)?;
            self.held.end += 1;
        }
        let value = self.slide.value(frame.clone(), partition)?;
        // The query is charged for the list of an array's items or an object's fields, but not for the data of the
        // items and fields, because the rows or the column of inputs own the data.
        let bytes = value.as_ref().map_or(0, own_bytes);
        partition.run.query.charge(bytes)?;
        partition.run.query.give_back(std::mem::replace(&mut self.last_bytes, bytes));
        self.last = Some((frame, value.clone()));
        Ok(value)
    }
}
