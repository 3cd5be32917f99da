//! Plans: what a user's is, and what a workspace has room for by that of whose it is.

use super::Access;
use super::known::{default_plan, plan_of};
use crate::error::{Error, Result};
use crate::model::access::{UserRecord, WorkspaceRecord};
use crate::model::plan::{Limits, Plan, PlanStatus};

/// A plan that a user is to have; what is `None` is as it is set for that plan.
#[derive(Debug, Clone, Default)]
pub struct NewPlan {
    pub id: Option<String>,
    pub status: Option<PlanStatus>,
    /// Milliseconds since the epoch.
    pub trial_ends_at: Option<i64>,
    pub limits: Option<Limits>,
}

impl Access {
    /// What a workspace has room for: the plan of whose it is says so. This is the one place that decides it.
    pub async fn limits_of(&self, workspace: &WorkspaceRecord) -> Result<Limits> {
        Ok(self.plan_of_user(&workspace.owner_id).await?.limits)
    }

    /// The plan of a user.
    pub async fn plan_of_user(&self, user_id: &str) -> Result<Plan> {
        if let Some(user) = self.known.user(user_id) {
            return Ok(Plan::clone(&user.plan));
        }
        let user = self.user(user_id).await?;
        Ok(plan_of(&user, &self.policy().settings))
    }

    /// A user, whatever workspace they are in.
    pub async fn user(&self, user_id: &str) -> Result<UserRecord> {
        let found = self.control.find_user(user_id).await?;
        Ok(found.ok_or_else(|| Error::not_found("user", user_id))?.user)
    }

    /// Gives a user a plan. One that the settings do not name is a plan of its own.
    pub async fn set_plan(&self, user_id: &str, new: NewPlan) -> Result<Plan> {
        let settings = &self.policy().settings;
        let present = plan_of(&self.user(user_id).await?, settings);
        let id = new.id.unwrap_or_else(|| present.id.clone());
        let offered = settings.plans.iter().find(|plan| plan.id == id).map(|plan| plan.begun_at(self.clock.now_ms()));
        let base = match offered {
            _ if id == present.id => present,
            Some(plan) => plan,
            None => Plan { name: id.clone(), id, ..default_plan(settings).begun_at(self.clock.now_ms()) },
        };
        let status = new.status.unwrap_or(base.status);
        // A trial that no end is given for goes on as it was, or as it is set for the plan.
        let trial_ends_at = new.trial_ends_at.or(base.trial_ends_at).filter(|_| status == PlanStatus::Trialing);
        let plan = Plan { status, trial_ends_at, limits: new.limits.unwrap_or(base.limits), ..base };
        let _turn = self.turns.take(user_id).await;
        let written = self.control.write_plan(user_id, &plan).await;
        self.known.forget();
        match written? {
            true => Ok(plan),
            false => Err(Error::not_found("user", user_id)),
        }
    }

    /// Whether a workspace is the one that the first start made: its owners run this installation.
    pub async fn is_first(&self, workspace_id: &str) -> Result<bool> {
        Ok(self.control.first_workspace_id().await?.as_deref() == Some(workspace_id))
    }
}
