//! What an operator decides about access: whose tokens count, who gets a workspace, and which plans there are.

use crate::model::plan::OfferedPlan;

/// All of it.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    pub issuers: Vec<IssuerSettings>,
    /// Whether users get a workspace of their own with their first token. Where they do not, only invited users sign in.
    pub auto_provision: bool,
    /// Domains, in the normal form of addresses, one of which the verified address of whoever gets one has; none are all.
    pub allowed_email_domains: Vec<String>,
    pub plans: Vec<OfferedPlan>,
    /// The id of the plan that users begin with.
    pub default_plan: String,
}

impl Default for AccessSettings {
    fn default() -> AccessSettings {
        let plan = OfferedPlan::unlimited();
        AccessSettings {
            issuers: Vec::new(),
            auto_provision: true,
            allowed_email_domains: Vec::new(),
            default_plan: plan.id.clone(),
            plans: vec![plan],
        }
    }
}

/// Somebody whose tokens are taken.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// The claim `iss`, exactly.
    pub issuer: String,
    /// What the claim `aud` has in it.
    pub audience: String,
    pub trust: Trust,
    /// Names of signature algorithms, all of one family.
    pub algorithms: Vec<String>,
    /// Whether an address counts as verified though the token does not say so.
    pub trusts_email: bool,
}

/// What an issuer's signatures are checked with.
#[derive(Clone)]
pub enum Trust {
    /// Public keys under a URL.
    KeySet { url: String },
    /// A secret that is shared with the issuer.
    Secret(Vec<u8>),
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trust::KeySet { url } => f.debug_struct("KeySet").field("url", url).finish(),
            Trust::Secret(_) => f.write_str("Secret(…)"),
        }
    }
}
