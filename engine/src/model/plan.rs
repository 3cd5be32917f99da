//! Plans of users: the status, the duration and the limits of a plan.

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::closed_set::closed_set;

closed_set!(PlanStatus);

/// The status of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PlanStatus {
    Trialing,
    Active,
    PastDue,
    Canceled,
}

/// The limits of a plan. `None` means that the plan sets no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanLimits {
    /// The maximum storage usage of a workspace, in bytes: all files, running uploads, and data that is yet to be
    /// removed.
    pub storage_bytes: Option<u64>,
    /// The maximum number of projects of a workspace.
    pub projects: Option<u64>,
    /// The maximum number of agents of a workspace.
    pub agents: Option<u64>,
    /// The maximum number of active devices of a user.
    pub activations: Option<u64>,
}

/// The plan of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPlan {
    pub id: String,
    pub name: String,
    pub status: PlanStatus,
    /// The time at which the trial ends, in milliseconds since the epoch. `None` if the plan has no trial, or if the
    /// trial has no end.
    pub trial_ends_at: Option<i64>,
    pub limits: PlanLimits,
}

impl UserPlan {
    /// Returns whether the plan has lapsed at `now_ms`. The paid features of a lapsed plan are not available.
    pub fn is_lapsed(&self, now_ms: i64) -> bool {
        match self.status {
            PlanStatus::Active => false,
            PlanStatus::Trialing => self.trial_ends_at.is_some_and(|end| end <= now_ms),
            PlanStatus::PastDue | PlanStatus::Canceled => true,
        }
    }
}

/// A plan that is offered to users. The settings define the offered plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPlan {
    pub id: String,
    pub name: String,
    pub status: PlanStatus,
    /// The length of the trial, in milliseconds, for plans that start with a trial.
    pub trial_ms: i64,
    pub limits: PlanLimits,
}

impl OfferedPlan {
    /// Returns a plan that includes every feature, has no limits, and never ends.
    pub fn unlimited() -> OfferedPlan {
        OfferedPlan {
            id: "unlimited".into(),
            name: "Unlimited".into(),
            status: PlanStatus::Active,
            trial_ms: 0,
            limits: PlanLimits::default(),
        }
    }

    /// Returns the plan that a user has after starting this offered plan at `now_ms`.
    pub fn begun_at(&self, now_ms: i64) -> UserPlan {
        let is_trial = self.status == PlanStatus::Trialing;
        UserPlan {
            id: self.id.clone(),
            name: self.name.clone(),
            status: self.status,
            trial_ends_at: is_trial.then(|| now_ms.saturating_add(self.trial_ms)),
            limits: self.limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_lapses_when_it_is_canceled_or_past_due_or_its_trial_ends() {
        let offered = OfferedPlan { status: PlanStatus::Trialing, trial_ms: 1_000, ..OfferedPlan::unlimited() };
        let plan = offered.begun_at(500);
        assert_eq!(plan.trial_ends_at, Some(1_500));
        assert!(!plan.is_lapsed(1_499));
        assert!(plan.is_lapsed(1_500));
        let paid = UserPlan { status: PlanStatus::Active, ..plan.clone() };
        assert!(!paid.is_lapsed(i64::MAX));
        assert!(UserPlan { status: PlanStatus::PastDue, ..plan.clone() }.is_lapsed(0));
        assert!(UserPlan { status: PlanStatus::Canceled, ..plan }.is_lapsed(0));
    }
}
