//! Selects the data structure that computes a window function.

use super::computation::Computation;
use super::ends::{CountWindow, Derivative, EdgeN, EdgeWindow, ListWindow, Shift};
use super::extremes::{Extreme, ScalerWindow};
use super::integral::Integral;
use super::moments::{MomentsWindow, Statistic};
use super::partition::WindowPartition;
use super::ranks::RankWindow;
use super::sets::SetWindow;
use super::single_pass::{LastKnown, LinearFill, MovingAverage, Rank};
use super::slide::SlidingWindow;
use super::stacks::{MergeObjectsWindow, SumWindow};
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorKind};
use crate::pipeline::expression::window::{WindowFunction, WindowOutput};
use crate::pipeline::value::error::Result;

/// Returns the computation of an output field over a partition.
pub fn computation<'a>(output: &'a WindowOutput, partition: &WindowPartition) -> Result<Box<dyn Computation<'a> + 'a>> {
    let keeps = !output.bounds.begins_with_partition();
    Ok(match &output.function {
        WindowFunction::Accumulate(accumulator, count) => {
            let count = match count {
                Some(count) => *count,
                None => accumulator.kept(&partition.run.env(&Value::Null))?,
            };
            accumulated(output, accumulator, count, keeps, partition)?
        }
        WindowFunction::Count => Box::new(CountWindow),
        WindowFunction::Rank(ranking) => Box::new(Rank::new(*ranking)),
        WindowFunction::Shift { output, by, default } => Box::new(Shift::new(output, *by, default, partition)?),
        WindowFunction::Derivative(input, unit) => Box::new(Derivative::new(input, *unit, partition)?),
        WindowFunction::Integral(input, unit) => Box::new(SlidingWindow::new(Integral::new(input, *unit, partition)?)),
        WindowFunction::MovingAverage(input, alpha) => Box::new(MovingAverage::new(input, *alpha, partition)?),
        WindowFunction::Covariance(input, sampled) => {
            Box::new(SlidingWindow::new(MomentsWindow::new(Statistic::Covariance, input, *sampled, keeps, partition)?))
        }
        WindowFunction::LinearFill(input) => Box::new(LinearFill::new(input, partition)?),
        WindowFunction::LastKnown(input) => Box::new(LastKnown::new(input, partition)?),
        WindowFunction::Scale(scale) => Box::new(ScalerWindow::new(scale, partition)?),
    })
}

fn accumulated<'a>(
    output: &'a WindowOutput,
    accumulator: &'a Accumulator,
    count: usize,
    keeps: bool,
    partition: &WindowPartition,
) -> Result<Box<dyn Computation<'a> + 'a>> {
    let input = accumulator.input();
    Ok(match accumulator.kind() {
        AccumulatorKind::Sum => Box::new(SlidingWindow::new(SumWindow::new(input, false, keeps, partition)?)),
        AccumulatorKind::Average => Box::new(SlidingWindow::new(SumWindow::new(input, true, keeps, partition)?)),
        AccumulatorKind::Deviation(sampled) => {
            Box::new(SlidingWindow::new(MomentsWindow::new(Statistic::Deviation, input, *sampled, keeps, partition)?))
        }
        AccumulatorKind::MergeObjects => {
            Box::new(SlidingWindow::new(MergeObjectsWindow::new(input, keeps, partition)?))
        }
        AccumulatorKind::Extreme(direction) => {
            Box::new(SlidingWindow::new(Extreme::new(input, *direction, partition)?))
        }
        AccumulatorKind::First => Box::new(EdgeWindow::first(input, partition)?),
        AccumulatorKind::Last => Box::new(EdgeWindow::last(input, partition)?),
        AccumulatorKind::Edge(end, _) => Box::new(SlidingWindow::new(EdgeN::new(input, *end, count, partition)?)),
        AccumulatorKind::Push => Box::new(SlidingWindow::new(ListWindow::new(input, false, partition)?)),
        AccumulatorKind::ConcatArrays => Box::new(SlidingWindow::new(ListWindow::new(input, true, partition)?)),
        AccumulatorKind::AddToSet => Box::new(SlidingWindow::new(SetWindow::new(input, false, partition)?)),
        AccumulatorKind::SetUnion => Box::new(SlidingWindow::new(SetWindow::new(input, true, partition)?)),
        AccumulatorKind::ExtremeN(..)
        | AccumulatorKind::Ranked(..)
        | AccumulatorKind::Percentiles(_)
        | AccumulatorKind::Median => {
            Box::new(SlidingWindow::new(RankWindow::new(accumulator, count, &output.bounds, partition)?))
        }
    })
}
