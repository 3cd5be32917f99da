//! The kinds of accumulators, with their settings.

use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::sort_by::Sort;

/// The function that an accumulator computes, with its settings.
#[derive(Debug, Clone)]
pub enum Kind {
    Sum,
    Average,
    Extreme(Direction),
    First,
    Last,
    Push,
    AddToSet,
    MergeObjects,
    Deviation(Sampled),
    SetUnion,
    ConcatArrays,
    /// `$firstN` and `$lastN`, with the number of values to keep.
    Edge(End, Expr),
    /// `$minN` and `$maxN`, with the number of values to keep.
    ExtremeN(Direction, Expr),
    /// `$top`, `$bottom`, `$topN` and `$bottomN`. Without a count, the result is one value instead of an array.
    Ranked(End, Sort, Option<Expr>),
    Percentiles(Vec<f64>),
    Median,
}

/// The values that an accumulator keeps: the least or the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Least,
    Greatest,
}

/// The end of an order, or of the input rows, from which values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// The set that the numbers of a deviation represent: the whole population or a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    Population,
    Sample,
}
