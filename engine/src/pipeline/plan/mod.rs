//! What is to be done, in which order and by whom: from stages to a program that runs.

pub mod explain;
pub mod logical;
pub mod lower;
pub mod optimize;
pub mod options;
mod vectorize;
pub mod visible;
