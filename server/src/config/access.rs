//! Settings of authentication and plans.

use serde::{Deserialize, Serialize};

/// Settings of identity providers, and of the users who sign in with tokens of these providers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    pub auto_provision: bool,
    pub allowed_email_domains: Vec<String>,
    pub issuers: Vec<Issuer>,
}

/// An identity provider whose tokens are accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Issuer {
    pub issuer: String,
    pub audience: String,
    pub jwks_url: String,
    pub hs256_secret_env: String,
    pub algorithms: Vec<String>,
    pub trust_email: bool,
}

/// The plans that users may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// The plans. The first one is the plan of users without an assigned plan.
    pub offered: Vec<OfferedPlan>,
}

/// A plan with its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfferedPlan {
    pub id: String,
    pub name: String,
    pub status: String,
    pub trial_days: u32,
    pub storage_bytes: u64,
    pub projects: u64,
    pub agents: u64,
    pub activations: u64,
}

impl Default for OfferedPlan {
    fn default() -> OfferedPlan {
        OfferedPlan {
            id: "unlimited".into(),
            name: "Unlimited".into(),
            status: "active".into(),
            trial_days: 0,
            storage_bytes: 0,
            projects: 0,
            agents: 0,
            activations: 0,
        }
    }
}
