//! The steps of plugins: enrichment, routing, dispatch and scripted agents, with their retries, circuits and replays.

pub mod agent_registration;
pub(super) mod attempt;
pub mod circuit;
pub(super) mod circuits;
pub(super) mod dispatch;
pub mod dry_run;
pub(super) mod enrich;
pub(super) mod late_retries;
pub mod late_steps;
pub(super) mod mentions;
pub(super) mod parking;
pub(super) mod pending_calls;
pub mod replay;
pub(super) mod replay_work;
pub(super) mod retries;
pub(super) mod roster;
pub(super) mod route;
pub(super) mod scripted_agents;
pub(super) mod step_end;
pub(super) mod work;
