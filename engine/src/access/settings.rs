//! The operator's settings for access: token issuers, workspaces of new users, and plans.

use crate::model::plan::OfferedPlan;

/// The access settings.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    pub issuers: Vec<IssuerSettings>,
    /// Whether users get a workspace of their own. If `allowed_email_domains` is not empty, only users with these
    /// domains get a workspace. A new user who gets no workspace can sign in only with an invitation.
    pub auto_provision: bool,
    /// The email domains whose users get a workspace, in the normal form of addresses. Only verified addresses are
    /// compared with the domains. An empty list allows all domains, and users without a verified address.
    pub allowed_email_domains: Vec<String>,
    pub plans: Vec<OfferedPlan>,
    /// The id of the plan of new users, and of users without a stored plan.
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

/// A trusted token issuer.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// The required value of the claim `iss`.
    pub issuer: String,
    /// The value that the claim `aud` must contain.
    pub audience: String,
    pub trust: Trust,
    /// The names of the accepted signature algorithms, all of one family.
    pub algorithms: Vec<String>,
    /// Whether an address counts as verified if the token does not contain the claim `email_verified`.
    pub trusts_email: bool,
}

/// The keys that verify an issuer's signatures.
#[derive(Clone)]
pub enum Trust {
    /// Public keys, fetched from a URL.
    KeySet { url: String },
    /// A secret shared with the issuer.
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
