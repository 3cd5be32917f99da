//! The functions that `$setWindowFields` computes, with their parsed arguments.

use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, Kind, Sampled};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::path::FieldPath;

/// A window function.
#[derive(Debug, Clone)]
pub enum Function {
    /// An accumulator over the rows of the window. The number of values to keep is 1 if the accumulator has no `n`.
    Accumulate(Accumulator, usize),
    /// `$count`.
    Count,
    Rank(Ranking),
    /// `$shift`: the value of the row at a distance from the current row.
    Shift {
        output: Expr,
        by: i64,
        default: Value,
    },
    /// `$derivative`. With a unit, the sort values are dates and the result is per unit of this many milliseconds.
    Derivative(Expr, Option<i64>),
    /// `$integral`. With a unit, the sort values are dates and the result is per unit of this many milliseconds.
    Integral(Expr, Option<i64>),
    /// `$expMovingAvg`, with the weight of the current row.
    MovingAverage(Expr, f64),
    Covariance(Expr, Sampled),
    LinearFill(Expr),
    /// `$locf`: the last value that is neither null nor missing.
    LastKnown(Expr),
    Scale(Scale),
}

/// The functions that number the rows of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// `$rank`: equal rows have the same number, and the next row has its place in the order.
    Rank,
    /// `$denseRank`: equal rows have the same number, and the next row has the next number.
    Dense,
    /// `$documentNumber`: every row has its place in the order.
    Number,
}

/// `$minMaxScaler`: maps the values of the window linearly to the interval from `min` to `max`.
#[derive(Debug, Clone)]
pub struct Scale {
    pub input: Expr,
    pub min: Value,
    pub max: Value,
}

impl Function {
    /// Returns the name of the data structure that computes the function, for `explain`.
    pub fn structure(&self) -> &'static str {
        match self {
            Function::Accumulate(accumulator, _) => match accumulator.kind() {
                Kind::Sum | Kind::Average | Kind::Deviation(_) | Kind::MergeObjects => "two stacks",
                Kind::Extreme(_) => "monotone deque",
                Kind::First | Kind::Last | Kind::Edge(..) => "ends of the window",
                Kind::Push | Kind::ConcatArrays => "slice of the window",
                Kind::AddToSet | Kind::SetUnion => "positions by value",
                Kind::ExtremeN(..) | Kind::Ranked(..) | Kind::Percentiles(_) | Kind::Median => "tree of ranks",
            },
            Function::Covariance(..) => "two stacks",
            Function::Count | Function::Shift { .. } | Function::Derivative(..) => "ends of the window",
            Function::Integral(..) => "prefix sums",
            Function::Scale(_) => "monotone deque",
            Function::Rank(_) | Function::MovingAverage(..) | Function::LinearFill(_) | Function::LastKnown(_) => {
                "one pass"
            }
        }
    }

    /// Visits the paths of the row that the function reads.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        match self {
            Function::Accumulate(accumulator, _) => accumulator.visit_paths(visit),
            Function::Shift { output: input, .. }
            | Function::Derivative(input, _)
            | Function::Integral(input, _)
            | Function::MovingAverage(input, _)
            | Function::Covariance(input, _)
            | Function::LinearFill(input)
            | Function::LastKnown(input)
            | Function::Scale(Scale { input, .. }) => input.visit_paths(visit),
            Function::Count | Function::Rank(_) => {}
        }
    }

    /// Returns the expression whose values the function returns unchanged, if it returns nothing else.
    pub fn returned(&self) -> Option<&Expr> {
        match self {
            Function::Accumulate(accumulator, _) => match accumulator.name() {
                "$min" | "$max" | "$first" | "$last" => accumulator.value_input(),
                _ => None,
            },
            Function::Shift { output: input, .. } | Function::LastKnown(input) => Some(input),
            _ => None,
        }
    }
}
