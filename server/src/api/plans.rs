//! `/users/:user_id/plan`: setting the plan of a user.

use foldwork_engine::Error;
use foldwork_engine::model::plan::{PlanLimits, PlanStatus};
use foldwork_engine::workspace::members::NewPlan;
use poem_openapi::param::Path;
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::OperatorWrite;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{OneOf, PlanStates};
use crate::wire::page::time_at;
use crate::wire::plan::{LimitsBody, PlanBody};

pub struct Api;

/// A plan to set. If `id` is absent or the id of the current plan, absent fields keep their current values. Otherwise
/// absent fields get the values from the server's settings for the new plan. If the settings do not contain the new
/// plan, absent fields get the values of the default plan.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPlan {
    id: Option<String>,
    status: Option<OneOf<PlanStates>>,
    /// The end of the trial, RFC 3339. Ignored if the new status is not `trialing`.
    trial_ends_at: Option<String>,
    /// The new limits, which replace all current limits. A limit that is absent in this object means no limit.
    limits: Option<LimitsBody>,
}

#[OpenApi(tag = "Section::Members")]
impl Api {
    /// Sets the plan of a user.
    ///
    /// Only owners of the installation's first workspace can set plans (`operator_required`). These owners can set
    /// plans even after their own plan has lapsed.
    #[oai(path = "/users/:user_id/plan", method = "put", operation_id = "set_plan")]
    async fn set_plan(
        &self,
        access: OperatorWrite,
        user_id: Path<String>,
        body: Body<SetPlan>,
    ) -> ApiResult<JsonResponse<PlanBody>> {
        let new = new_plan(&body)?;
        let plan = access.0.set_plan(&user_id, new).await?;
        Ok(JsonResponse::new(&PlanBody::from(&plan)))
    }
}

fn new_plan(body: &SetPlan) -> Result<NewPlan, Error> {
    let wrong = || Error::invalid_at("/status", "expected trialing, active, past_due or canceled");
    let status = body.status.as_deref().map(|name| PlanStatus::parse(name).ok_or_else(wrong)).transpose()?;
    let trial_ends_at = time_at("/trial_ends_at", body.trial_ends_at.as_deref())?;
    let limits = body.limits.as_ref().map(|limits| {
        let LimitsBody { storage_bytes, projects, agents, activations } = *limits;
        PlanLimits { storage_bytes, projects, agents, activations }
    });
    if body.id.as_ref().is_some_and(|id| id.is_empty() || id.chars().count() > 64) {
        return Err(Error::invalid_at("/id", "expected 1 to 64 characters"));
    }
    Ok(NewPlan { id: body.id.clone(), status, trial_ends_at, limits })
}
