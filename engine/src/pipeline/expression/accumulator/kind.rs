//! What an accumulator computes, with its settings.

use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::sort_by::Sort;

/// What the accumulator computes.
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
    /// `$firstN` and `$lastN`.
    Edge(End, Expr),
    /// `$minN` and `$maxN`.
    ExtremeN(Direction, Expr),
    /// `$top`, `$bottom`, `$topN` and `$bottomN`; without a count one value instead of an array.
    Ranked(End, Sort, Option<Expr>),
    Percentiles(Vec<f64>),
    Median,
}

/// Which values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Least,
    Greatest,
}

/// The end of an order, or of the rows, from which values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// What the numbers of a deviation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    Population,
    Sample,
}
