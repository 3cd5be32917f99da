//! Selects the data structure that computes a window function.

use super::computation::Computation;
use super::ends::{Count, Derivative, Edge, EdgeN, List, Shift};
use super::extremes::{Extreme, Scaled};
use super::integral::Integral;
use super::moments::{Covariance, Deviation};
use super::partition::Partition;
use super::ranks::Ranked;
use super::running::{LastKnown, LinearFill, MovingAverage, Rank};
use super::sets::Set;
use super::slide::Sliding;
use super::stacks::{Merged, Summed};
use crate::pipeline::expression::accumulator::{Accumulator, Kind};
use crate::pipeline::expression::window::{Function, Output};
use crate::pipeline::value::error::Result;

/// Returns the computation of an output field over a partition.
pub fn computation<'a>(output: &'a Output, partition: &Partition) -> Result<Box<dyn Computation<'a> + 'a>> {
    let keeps = !output.bounds.begins_with_partition();
    Ok(match &output.function {
        Function::Accumulate(accumulator, count) => accumulated(output, accumulator, *count, keeps, partition)?,
        Function::Count => Box::new(Count),
        Function::Rank(ranking) => Box::new(Rank::new(*ranking)),
        Function::Shift { output, by, default } => Box::new(Shift::new(output, *by, default, partition)?),
        Function::Derivative(input, unit) => Box::new(Derivative::new(input, *unit, partition)?),
        Function::Integral(input, unit) => Box::new(Sliding::new(Integral::new(input, *unit, partition)?)),
        Function::MovingAverage(input, alpha) => Box::new(MovingAverage::new(input, *alpha)),
        Function::Covariance(input, sampled) => {
            Box::new(Sliding::new(Covariance::new(input, *sampled, keeps, partition)?))
        }
        Function::LinearFill(input) => Box::new(LinearFill::new(input)),
        Function::LastKnown(input) => Box::new(LastKnown::new(input)),
        Function::Scale(scale) => Box::new(Scaled::new(scale, partition)?),
    })
}

fn accumulated<'a>(
    output: &'a Output,
    accumulator: &'a Accumulator,
    count: usize,
    keeps: bool,
    partition: &Partition,
) -> Result<Box<dyn Computation<'a> + 'a>> {
    let input = accumulator.input();
    Ok(match accumulator.kind() {
        Kind::Sum => Box::new(Sliding::new(Summed::new(input, false, keeps, partition)?)),
        Kind::Average => Box::new(Sliding::new(Summed::new(input, true, keeps, partition)?)),
        Kind::Deviation(sampled) => Box::new(Sliding::new(Deviation::new(input, *sampled, keeps, partition)?)),
        Kind::MergeObjects => Box::new(Sliding::new(Merged::new(input, keeps, partition)?)),
        Kind::Extreme(direction) => Box::new(Sliding::new(Extreme::new(input, *direction, partition)?)),
        Kind::First => Box::new(Edge::first(input, partition)?),
        Kind::Last => Box::new(Edge::last(input, partition)?),
        Kind::Edge(end, _) => Box::new(Sliding::new(EdgeN::new(input, *end, count, partition)?)),
        Kind::Push => Box::new(Sliding::new(List::new(input, false, partition)?)),
        Kind::ConcatArrays => Box::new(Sliding::new(List::new(input, true, partition)?)),
        Kind::AddToSet => Box::new(Sliding::new(Set::new(input, false, partition)?)),
        Kind::SetUnion => Box::new(Sliding::new(Set::new(input, true, partition)?)),
        Kind::ExtremeN(..) | Kind::Ranked(..) | Kind::Percentiles(_) | Kind::Median => {
            Box::new(Sliding::new(Ranked::new(accumulator, count, &output.bounds, partition)?))
        }
    })
}
