//! Selects the data structure that computes a window function.

use super::computation::Computation;
use super::ends::{CountWindow, Derivative, EdgeN, EdgeWindow, ListWindow, Shift};
use super::extremes::{Extreme, ScalerWindow};
use super::integral::Integral;
use super::moments::{MomentsWindow, Statistic};
use super::partition::{InputColumn, WindowPartition};
use super::ranks::RankWindow;
use super::sets::SetWindow;
use super::single_pass::{LastKnown, LinearFill, MovingAverage, Rank};
use super::slide::{Slide, SlidingWindow};
use super::stacks::{MergeObjectsWindow, SumWindow};
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorKind, OrderEnd};
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
        WindowFunction::Integral(input, unit) => sliding(Integral::new(input, *unit, partition)?),
        WindowFunction::MovingAverage(input, alpha) => Box::new(MovingAverage::new(input, *alpha, partition)?),
        WindowFunction::Covariance(input, sampled) => {
            sliding(MomentsWindow::new(Statistic::Covariance, input, *sampled, keeps, partition)?)
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
    let column = || InputColumn::new(input, partition);
    Ok(match accumulator.kind() {
        AccumulatorKind::Sum => sliding(SumWindow::new(input, false, keeps, partition)?),
        AccumulatorKind::Average => sliding(SumWindow::new(input, true, keeps, partition)?),
        AccumulatorKind::Deviation(sampled) => {
            sliding(MomentsWindow::new(Statistic::Deviation, input, *sampled, keeps, partition)?)
        }
        AccumulatorKind::MergeObjects => sliding(MergeObjectsWindow::new(input, keeps, partition)?),
        AccumulatorKind::Extreme(direction) => sliding(Extreme::new(input, *direction, partition)?),
        AccumulatorKind::First => Box::new(EdgeWindow { column: column()?, end: OrderEnd::Front }),
        AccumulatorKind::Last => Box::new(EdgeWindow { column: column()?, end: OrderEnd::Back }),
        AccumulatorKind::Edge(end, _) => sliding(EdgeN { column: column()?, end: *end, count }),
        AccumulatorKind::Push => sliding(ListWindow { column: column()?, concatenates: false }),
        AccumulatorKind::ConcatArrays => sliding(ListWindow { column: column()?, concatenates: true }),
        AccumulatorKind::AddToSet => sliding(SetWindow::new(input, false, partition)?),
        AccumulatorKind::SetUnion => sliding(SetWindow::new(input, true, partition)?),
        AccumulatorKind::ExtremeN(..)
        | AccumulatorKind::Ranked(..)
        | AccumulatorKind::Percentiles(_)
        | AccumulatorKind::Median => sliding(RankWindow::new(accumulator, count, &output.bounds, partition)?),
    })
}

/// Returns the computation of a function that moves its window over the partition.
fn sliding<'a>(slide: impl Slide + 'a) -> Box<dyn Computation<'a> + 'a> {
    Box::new(SlidingWindow::new(slide))
}
