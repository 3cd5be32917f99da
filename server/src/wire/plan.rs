//! The JSON of a plan and its limits in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::plan::{PlanLimits, UserPlan};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{OneOf, PlanStates};
use super::shown::shown;

/// The limits of a plan. Null means no limit.
#[derive(Object, Serialize, Deserialize, Default)]
#[oai(rename = "Limits")]
#[serde(default, deny_unknown_fields)]
pub struct LimitsBody {
    /// The maximum number of bytes of files per workspace.
    pub storage_bytes: Option<u64>,
    /// The maximum number of projects per workspace.
    pub projects: Option<u64>,
    /// The maximum number of agents per workspace.
    pub agents: Option<u64>,
    /// The maximum number of active devices per user.
    pub activations: Option<u64>,
}

impl From<PlanLimits> for LimitsBody {
    fn from(limits: PlanLimits) -> LimitsBody {
        let PlanLimits { storage_bytes, projects, agents, activations } = limits;
        LimitsBody { storage_bytes, projects, agents, activations }
    }
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
