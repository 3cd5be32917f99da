//! The graph of a workspace: projection, checkpoints, settling after redefinitions, and rebuilds.

pub(super) mod checkpointer;
pub(super) mod mirror;
pub(super) mod project;
pub mod rebuild;
pub(super) mod settling;
