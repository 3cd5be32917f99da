//! A plan and its limits, as responses show them.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::plan::{Limits, Plan};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{PlanStates, Word};

/// The limits of a plan. Null means no limit.
#[derive(Object, Serialize, Deserialize, Default)]
#[oai(rename = "Limits")]
#[serde(default)]
pub struct LimitsBody {
    /// Bytes of files per workspace.
    #[oai(nullable)]
    pub storage_bytes: Option<u64>,
    /// Projects per workspace.
    #[oai(nullable)]
    pub projects: Option<u64>,
    /// Agents per workspace.
    #[oai(nullable)]
    pub agents: Option<u64>,
    /// Devices per user.
    #[oai(nullable)]
    pub activations: Option<u64>,
}

impl From<Limits> for LimitsBody {
    fn from(limits: Limits) -> LimitsBody {
        let Limits { storage_bytes, projects, agents, activations } = limits;
        LimitsBody { storage_bytes, projects, agents, activations }
    }
}

/// The plan of a user.
#[derive(Object, Serialize)]
#[oai(rename = "Plan")]
pub struct PlanBody {
    id: String,
    name: String,
    status: Word<PlanStates>,
    #[oai(nullable)]
    trial_ends_at: Option<String>,
    limits: LimitsBody,
}

impl From<&Plan> for PlanBody {
    fn from(plan: &Plan) -> PlanBody {
        PlanBody {
            id: plan.id.clone(),
            name: plan.name.clone(),
            status: plan.status.name().into(),
            trial_ends_at: plan.trial_ends_at.map(format_date),
            limits: plan.limits.into(),
        }
    }
}
