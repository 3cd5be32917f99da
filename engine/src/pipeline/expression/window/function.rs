//! The functions that `$setWindowFields` computes, with their parsed arguments.

use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorKind, DeviationKind};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::path::FieldPath;

/// A window function.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    /// An accumulator over the rows of the window, and the value of the argument `n`: the number of values to keep. The
    /// number is 1 if the accumulator has no `n`. The number is `None` if the value of `n` is known only when the stage
    /// runs.
    Accumulate(Accumulator, Option<usize>),
    /// `$count`.
    Count,
    Rank(Ranking),
    /// `$shift`: the value of the row at a distance from the current row.
    Shift {
        output: Expr,
        by: i64,
        default: Value,
    },
    /// `$derivative`, with the length of the unit in milliseconds. With a unit, the sort values are dates, and the
    /// result is the change per unit.
    Derivative(Expr, Option<i64>),
    /// `$integral`, with the length of the unit in milliseconds, or `None` if there is no unit. With a unit, the sort
    /// values are dates, and time is counted in this unit.
    Integral(Expr, Option<i64>),
    /// `$expMovingAvg`, with the weight of the current row.
    MovingAverage(Expr, f64),
    Covariance(Expr, DeviationKind),
    LinearFill(Expr),
    /// `$locf`: the last value up to the current row that is neither null nor missing.
    LastKnown(Expr),
    Scale(Scale),
}

/// The functions that number the rows of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// `$rank`: the number of a row is the position of the first row with the same sort values. Rows with equal sort
    /// values have the same number, so the numbers may have gaps.
    Rank,
    /// `$denseRank`: rows with equal sort values have the same number, and the numbers have no gaps.
    Dense,
    /// `$documentNumber`: the number of every row is the position of the row in the sorted partition.
    Number,
}

/// `$minMaxScaler`: maps the values of the window linearly to the interval from `min` to `max`.
#[derive(Debug, Clone)]
pub struct Scale {
    pub input: Expr,
    pub min: Value,
    pub max: Value,
}

impl WindowFunction {
    /// Returns the name of the data structure that computes the function, for `explain`.
    pub fn structure(&self) -> &'static str {
        match self {
            WindowFunction::Accumulate(accumulator, _) => match accumulator.kind() {
                AccumulatorKind::Sum
                | AccumulatorKind::Average
                | AccumulatorKind::Deviation(_)
                | AccumulatorKind::MergeObjects => "two stacks",
                AccumulatorKind::Extreme(_) => "monotone deque",
                AccumulatorKind::First | AccumulatorKind::Last | AccumulatorKind::Edge(..) => "ends of the window",
                AccumulatorKind::Push | AccumulatorKind::ConcatArrays => "slice of the window",
                AccumulatorKind::AddToSet | AccumulatorKind::SetUnion => "positions by value",
                AccumulatorKind::ExtremeN(..)
                | AccumulatorKind::Ranked(..)
                | AccumulatorKind::Percentiles(_)
                | AccumulatorKind::Median => "tree of ranks",
            },
            WindowFunction::Covariance(..) => "two stacks",
            WindowFunction::Count | WindowFunction::Shift { .. } | WindowFunction::Derivative(..) => {
                "ends of the window"
            }
            WindowFunction::Integral(..) => "prefix sums",
            WindowFunction::Scale(_) => "monotone deque",
            WindowFunction::Rank(_)
            | WindowFunction::MovingAverage(..)
            | WindowFunction::LinearFill(_)
            | WindowFunction::LastKnown(_) => "one pass",
        }
    }

    /// Returns the expression that the function evaluates over rows, if any.
    pub fn input(&self) -> Option<&Expr> {
        match self {
            WindowFunction::Accumulate(accumulator, _) => Some(accumulator.input()),
            WindowFunction::Shift { output: input, .. }
            | WindowFunction::Derivative(input, _)
            | WindowFunction::Integral(input, _)
            | WindowFunction::MovingAverage(input, _)
            | WindowFunction::Covariance(input, _)
            | WindowFunction::LinearFill(input)
            | WindowFunction::LastKnown(input)
            | WindowFunction::Scale(Scale { input, .. }) => Some(input),
            WindowFunction::Count | WindowFunction::Rank(_) => None,
        }
    }

    /// Visits the paths of the row that the function reads.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        match self {
            WindowFunction::Accumulate(accumulator, _) => accumulator.visit_paths(visit),
            _ => self.input().into_iter().for_each(|input| input.visit_paths(visit)),
        }
    }

    /// Returns the expression whose values the function returns unchanged: for `$min`, `$max`, `$first`, `$last`,
    /// `$shift` and `$locf`. Returns `None` for all other functions. A `$shift` may also return its
    /// [`default`](Self::default_value).
    pub fn returned(&self) -> Option<&Expr> {
        match self {
            WindowFunction::Accumulate(accumulator, _) => match accumulator.name() {
                "$min" | "$max" | "$first" | "$last" => accumulator.value_input(),
                _ => None,
            },
            WindowFunction::Shift { output: input, .. } | WindowFunction::LastKnown(input) => Some(input),
            _ => None,
        }
    }

    /// Returns the constant that a `$shift` returns if the partition has no row at the distance. Returns `None` for the
    /// constant null and for all other functions.
    pub fn default_value(&self) -> Option<&Value> {
        match self {
            WindowFunction::Shift { default, .. } => Some(default).filter(|value| !matches!(value, Value::Null)),
            _ => None,
        }
    }
}
