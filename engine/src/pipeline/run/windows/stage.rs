//! The stage `$setWindowFields` over partitions whose rows are sorted.

use std::sync::Arc;

use super::computation::Computation;
use super::frames::Frames;
use super::function;
use super::partition::{PartitionRows, WindowPartition};
use crate::model::value::Value;
use crate::pipeline::expression::window::Bounds;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The partitions of a query, in the order of their keys. The rows of a partition are sorted when the partition is
/// read.
pub type Partitions<'a> = Box<dyn Iterator<Item = Result<Box<dyn PartitionRows + 'a>>> + 'a>;

/// The functions of a `$setWindowFields`.
#[derive(Debug)]
pub struct WindowStage {
    pub stage: Arc<ast::Windows>,
    /// The distinct bounds of the functions.
    bounds: Vec<Bounds>,
    /// The index of each function's bounds in `bounds`.
    bounds_of: Vec<usize>,
}

impl WindowStage {
    pub fn new(stage: Arc<ast::Windows>) -> WindowStage {
        let mut bounds: Vec<Bounds> = Vec::new();
        let bounds_of = stage.outputs.iter().map(|output| {
            bounds.iter().position(|known| *known == output.bounds).unwrap_or_else(|| {
                bounds.push(output.bounds.clone());
                bounds.len() - 1
            })
        });
        let bounds_of = bounds_of.collect();
        WindowStage { stage, bounds, bounds_of }
    }

    /// Returns the rows of the partitions with their computed fields.
    pub fn rows<'a>(&'a self, partitions: Partitions<'a>, run: RunContext<'a>) -> Rows<'a> {
        Box::new(WindowRows { stage: self, run, partitions, current: None })
    }

    /// Prepares the functions for a partition. `before` is the number of bytes that the query could use before the
    /// partition was read.
    fn open<'a>(
        &'a self,
        rows: Box<dyn PartitionRows + 'a>,
        run: RunContext<'a>,
        before: i64,
    ) -> Result<CurrentPartition<'a>> {
        let partition = WindowPartition::new(rows, run);
        let frames = self.bounds.iter().map(|bounds| Frames::new(bounds, &partition)).collect::<Result<_>>()?;
        let computations = self
            .stage
            .outputs
            .iter()
            .map(|output| function::computation(output, &partition))
            .collect::<Result<Vec<_>>>()?;
        let charged = before.saturating_sub(run.query.bytes_left.get());
        Ok(CurrentPartition { partition, frames, computations, next: 0, charged, values: Vec::new() })
    }
}

/// An iterator over the rows with their computed fields.
struct WindowRows<'a> {
    stage: &'a WindowStage,
    run: RunContext<'a>,
    partitions: Partitions<'a>,
    current: Option<CurrentPartition<'a>>,
}

/// The partition whose rows are being returned.
struct CurrentPartition<'a> {
    partition: WindowPartition<'a>,
    frames: Vec<Frames>,
    computations: Vec<Box<dyn Computation<'a> + 'a>>,
    next: usize,
    /// The bytes that the query was charged for the functions of the partition, less the bytes that the functions have
    /// given back.
    charged: i64,
    /// The computed values of the current row.
    values: Vec<Option<Value>>,
}

impl Iterator for WindowRows<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        loop {
            if let Some(current) = &mut self.current {
                if current.next < current.partition.len() {
                    return Some(current.row(self.stage));
                }
                self.run.query.give_back(usize::try_from(current.charged).unwrap_or(0));
                self.current = None;
            }
            let before = self.run.query.bytes_left.get();
            let rows = self.partitions.next()?;
            match rows.and_then(|rows| self.stage.open(rows, self.run, before)) {
                Ok(current) => self.current = Some(current),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl CurrentPartition<'_> {
    /// Returns the next row with its computed fields.
    fn row(&mut self, stage: &WindowStage) -> Result<Value> {
        let (index, run) = (self.next, self.partition.run);
        self.next += 1;
        run.query.tick()?;
        let before = run.query.bytes_left.get();
        for frame in &mut self.frames {
            frame.move_to(index)?;
        }
        self.values.clear();
        for (computation, bounds) in self.computations.iter_mut().zip(&stage.bounds_of) {
            run.query.tick()?;
            self.values.push(computation.value(index, self.frames[*bounds].current(), &self.partition)?);
        }
        self.charged += before.saturating_sub(run.query.bytes_left.get());
        run.query.uncharged(|| {
            let row = self.partition.rows().output(index)?;
            let env = run.env(&row);
            stage.stage.write.apply(&env.bind(&env.frame(&self.values)))
        })
    }
}
