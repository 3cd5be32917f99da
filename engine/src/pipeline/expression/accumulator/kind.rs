//! The kinds of accumulators, with their settings.

use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::sort_by::SortSpec;

/// The function that an accumulator computes, with its settings.
#[derive(Debug, Clone)]
pub enum AccumulatorKind {
    Sum,
    Average,
    Extreme(Extremum),
    First,
    Last,
    Push,
    AddToSet,
    MergeObjects,
    Deviation(DeviationKind),
    SetUnion,
    ConcatArrays,
    /// `$firstN` and `$lastN`, with the number of values to keep.
    Edge(OrderEnd, Expr),
    /// `$minN` and `$maxN`, with the number of values to keep.
    ExtremeN(Extremum, Expr),
    /// `$top`, `$bottom`, `$topN` and `$bottomN`. Without a count, the result is one value instead of an array.
    Ranked(OrderEnd, SortSpec, Option<Expr>),
    Percentiles(Vec<f64>),
    Median,
}

/// The values that an accumulator keeps: the least or the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extremum {
    Least,
    Greatest,
}

/// The end from which an accumulator or a window function takes values: the front or the back of the input rows, or of
/// the sorted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderEnd {
    Front,
    Back,
}

/// Whether the numbers of a standard deviation are the whole population or a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviationKind {
    Population,
    Sample,
}
