//! The followers that keep the indexes of the search current.

pub(super) mod labels;
pub(super) mod vectors;
