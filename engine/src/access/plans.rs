//! Plans of users, and the limits of workspaces under the plans of their owners.

use super::Access;
use super::credential_cache::{default_plan, plan_of};
use crate::error::{Error, Result};
use crate::model::access::UserRecord;
use crate::model::plan::{PlanLimits, PlanStatus, UserPlan};
use crate::store;

/// The maximum number of attempts to change a plan that other servers change at the same time.
const ATTEMPTS: usize = 16;

/// A plan to set. If `id` is `None` or the current id, fields that are `None` keep their current values. If the id
/// changes, fields that are `None` get the values configured for the new plan, or for the default plan if the new plan
/// is not in the settings.
#[derive(Debug, Clone, Default)]
pub struct NewPlan {
    pub id: Option<String>,
    pub status: Option<PlanStatus>,
    /// The end of the trial, in milliseconds since the epoch. If the new status is not a trial, this field is ignored,
    /// and the plan has no end of a trial.
    pub trial_ends_at: Option<i64>,
    pub limits: Option<PlanLimits>,
}

impl Access {
    /// Returns the limits of a workspace, which are the limits of its owner's plan. All checks of a workspace's limits
    /// use this function. The function reads the owner from the store, because the owner may have changed since the
    /// workspace was opened.
    pub async fn limits_of(&self, workspace_id: &str) -> Result<PlanLimits> {
        let owner = self.workspace(workspace_id).await?.owner_id;
        Ok(self.plan_of_user(&owner).await?.limits)
    }

    /// Returns the plan of a user.
    pub async fn plan_of_user(&self, user_id: &str) -> Result<UserPlan> {
        if let Some(user) = self.known.user(user_id) {
            return Ok(UserPlan::clone(&user.plan));
        }
        let user = self.user(user_id).await?;
        Ok(plan_of(&user, &self.policy().settings))
    }

    /// Returns the record of a user. Fails if no user has this id.
    pub async fn user(&self, user_id: &str) -> Result<UserRecord> {
        let found = self.control.find_user(user_id).await?;
        Ok(found.ok_or_else(|| Error::not_found("user", user_id))?.user)
    }

    /// Sets the plan of a user. A plan id that is not in the settings creates an individual plan.
    pub async fn set_plan(&self, user_id: &str, new: NewPlan) -> Result<UserPlan> {
        let _turn = self.change_locks.lock(user_id).await;
        // Another server may change the plan at the same time, including fields that this request does not set.
        for _ in 0..ATTEMPTS {
            let user = self.user(user_id).await?;
            let plan = self.changed_plan(plan_of(&user, &self.policy().settings), new.clone());
            if self.forgetting(self.control.write_plan(user_id, user.plan.as_ref(), &plan)).await? {
                return Ok(plan);
            }
        }
        Err(store::Error::Conflict.into())
    }

    /// Returns the plan that results from a change of the current plan.
    fn changed_plan(&self, current: UserPlan, new: NewPlan) -> UserPlan {
        let settings = &self.policy().settings;
        let id = new.id.unwrap_or_else(|| current.id.clone());
        let offered = settings.plans.iter().find(|plan| plan.id == id).map(|plan| plan.begun_at(self.clock.now_ms()));
        let base = match offered {
            _ if id == current.id => current,
            Some(plan) => plan,
            None => UserPlan { name: id.clone(), id, ..default_plan(settings).begun_at(self.clock.now_ms()) },
        };
        let status = new.status.unwrap_or(base.status);
        // If the request sets no end, a trial keeps its end or gets the end that is configured for the plan.
        let trial_ends_at = new.trial_ends_at.or(base.trial_ends_at).filter(|_| status == PlanStatus::Trialing);
        UserPlan { status, trial_ends_at, limits: new.limits.unwrap_or(base.limits), ..base }
    }

    /// Returns whether a workspace is the first of the store. The owners of the first workspace manage the
    /// installation.
    pub async fn is_first(&self, workspace_id: &str) -> Result<bool> {
        Ok(self.control.first_workspace_id().await?.as_deref() == Some(workspace_id))
    }
}
