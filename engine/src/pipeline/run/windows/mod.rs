//! `$setWindowFields`: computes fields of a row from the rows around this row.
//!
//! The rows are gathered into partitions and sorted. Then the rows are returned, one partition after the other. Most
//! functions update a data structure as their windows move, instead of reading the whole window for each row. `$push`
//! and `$concatArrays` read the whole window, because their results contain all values of the window.
//!
//! The data structure depends on the function. Two stacks compute sums, deviations and merged objects, because these
//! results can be merged, but a value that leaves the window cannot be removed exactly from a merged result. A sum over
//! a column of integers is an exception and needs no stacks: the integers that leave the window are subtracted exactly.
//! A monotone deque finds extremes, a tree of ranks finds medians and the first values in an order, and prefix sums
//! compute areas.
//!
//! `$fill` is translated into a `$setWindowFields`, a `$set`, or both. A filter on the partition key moves before the
//! stage.
//!
//! The partitions come from rows (`operator`) or from the columns of a table (`run/vectorized`).

mod computation;
mod ends;
mod extremes;
mod frames;
mod function;
mod integral;
mod moments;
mod operator;
mod partition;
mod ranks;
mod sets;
mod single_pass;
mod slide;
mod stacks;
mod stage;
mod values;

pub use operator::WindowsOperator;
pub use partition::PartitionRows;
pub use stage::WindowStage;
pub use values::TypedValues;
