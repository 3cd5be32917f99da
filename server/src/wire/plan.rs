//! The JSON of a plan and its limits in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::plan::{PlanLimits, UserPlan};
use serde::Deserialize;

use super::closed_sets::{OneOf, PlanStates};
use super::shown::shown;

shown! {
    /// The limits of a plan. Null means that the plan sets no limit.
    #[derive(Deserialize, Default)]
    #[oai(rename = "Limits")]
    #[serde(default, deny_unknown_fields)]
    pub struct LimitsBody from limits: PlanLimits;

    /// The maximum storage of a workspace in bytes: the files, running uploads, and data that is yet to be removed.
    pub storage_bytes: Option<u64> = limits.storage_bytes,
    /// The maximum number of projects per workspace.
    pub projects: Option<u64> = limits.projects,
    /// The maximum number of agents per workspace.
    pub agents: Option<u64> = limits.agents,
    /// The maximum number of active devices per user. More than 1,000 devices are never allowed.
    pub activations: Option<u64> = limits.activations,
}

shown! {
    /// The plan of a user.
    #[oai(rename = "Plan")]
    pub struct PlanBody from plan: &UserPlan;

    id: String = plan.id.clone(),
    name: String = plan.name.clone(),
    status: OneOf<PlanStates> = plan.status.name().into(),
    trial_ends_at: Option<String> = plan.trial_ends_at.map(format_date),
    limits: LimitsBody = plan.limits.into(),
}
