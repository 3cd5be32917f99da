//! Callers and their permissions: scopes, roles, workspaces, keys, users, memberships, invitations and sign-in codes.

use std::sync::Arc;

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::closed_set::closed_set;
use super::plan::UserPlan;

closed_set!(Scope, Role);

/// A permission that a credential grants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, IntoStaticStr, VariantArray,
)]
pub enum Scope {
    #[strum(serialize = "profile:read")]
    ProfileRead,
    #[strum(serialize = "email:read")]
    EmailRead,
    #[strum(serialize = "api:read")]
    ApiRead,
    #[strum(serialize = "api:write")]
    ApiWrite,
    #[strum(serialize = "mcp:read")]
    McpRead,
    #[strum(serialize = "mcp:write")]
    McpWrite,
    #[strum(serialize = "extension:unlock")]
    ExtensionUnlock,
    #[strum(serialize = "content:read")]
    ContentRead,
}

impl Scope {
    /// Returns whether the scope requires a plan that has not lapsed.
    pub fn is_paid(self) -> bool {
        matches!(self, Scope::ApiWrite | Scope::McpWrite | Scope::ExtensionUnlock)
    }
}

/// The permissions of a member in a workspace. Each role includes the permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    Viewer,
    Editor,
    Owner,
}

/// The authenticated sender of a request. Outside the engine, the only way to get a caller is to authenticate a bearer
/// token.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) user_id: Arc<str>,
    pub(crate) workspace_id: Arc<str>,
    pub(crate) key_id: Option<Arc<str>>,
    /// The id of the session in the presented token, if the token names a session.
    pub(crate) session: Option<Arc<str>>,
    pub(crate) scopes: Arc<[Scope]>,
    /// Whether the presented credential grants access to every workspace of the user. This is the case for tokens, and
    /// for keys that were created for all workspaces.
    pub(crate) opens_all: bool,
    /// The agents to which the presented key is bound. `None` if the key is not bound.
    pub(crate) agents: Option<Arc<[Arc<str>]>>,
    /// The credentials from which the presented key was derived: the key's ancestors, then its origin. Empty if the
    /// presented credential is not a key.
    pub(crate) above: Arc<[Arc<str>]>,
    /// The time at which the presented credential expires, in milliseconds since the epoch. `None` if the credential
    /// never expires.
    pub(crate) expires_at: Option<i64>,
    pub(crate) role: Role,
    pub(crate) plan: Arc<UserPlan>,
    /// Whether the plan had lapsed when the caller was authenticated.
    pub(crate) is_lapsed: bool,
}

impl Caller {
    pub fn holds(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Returns the given scopes that the caller does not have.
    pub fn lacking(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| !self.holds(*scope)).collect()
    }

    /// Returns the given scopes that require a paid plan, if the caller's plan has lapsed. Otherwise returns an empty
    /// list.
    pub fn unpaid(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| self.is_lapsed && scope.is_paid()).collect()
    }

    /// Returns whether a key or invitation with this expiry (`None` for never) would outlive the caller's key.
    ///
    /// Always returns `false` for sessions, because a key or invitation created in a session may outlast the session.
    pub fn is_outlived_by(&self, expires_at: Option<i64>) -> bool {
        let own = self.expires_at.filter(|_| self.key_id.is_some());
        own.is_some_and(|own| expires_at.is_none_or(|other| other > own))
    }

    /// Returns the origin to record for keys and invitations that the caller creates: the id of the presented key, or,
    /// without a key, the session or the user. If a key ends, the invitations that were created with the key end as
    /// well. The keys that were created with the key also end, unless a revocation keeps these keys.
    pub fn origin(&self) -> Arc<str> {
        match (&self.key_id, &self.session) {
            (Some(key), _) => key.clone(),
            (None, Some(session)) => format!("session:{session}").into(),
            (None, None) => format!("user:{}", self.user_id).into(),
        }
    }

    /// Returns the caller's origin (see [`Caller::origin`]), followed by the credentials from which the presented key
    /// was derived, and by the user. The user is part of the list because the user stays the same when another key
    /// replaces a revoked key.
    pub fn lineage(&self) -> Vec<Arc<str>> {
        let user = format!("user:{}", self.user_id).into();
        std::iter::once(self.origin()).chain(self.above.iter().cloned()).chain([user]).collect()
    }

    /// Returns the agents to which the presented key is bound, or `None` if the key is not bound. A bound key only acts
    /// for its agents.
    pub fn agents(&self) -> Option<&Arc<[Arc<str>]>> {
        self.agents.as_ref()
    }

    /// Returns whether the presented credential grants access to every workspace of the user.
    pub fn opens_all(&self) -> bool {
        self.opens_all
    }

    /// Returns the caller's role in the workspace.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the caller's plan.
    pub fn plan(&self) -> &UserPlan {
        &self.plan
    }

    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    pub fn user_id(&self) -> &str {
        &self.user_id
    }

    pub fn workspace_id(&self) -> &str {
        &self.workspace_id
    }

    /// Returns the time at which the presented credential expires, in milliseconds since the epoch, or `None` if the
    /// credential never expires.
    pub fn expires_at(&self) -> Option<i64> {
        self.expires_at
    }

    /// Returns the id of the presented key, or `None` if the credential is not a key.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }
}

/// The record of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    pub id: Arc<str>,
    pub name: String,
    pub slug: String,
    pub owner_id: Arc<str>,
    /// The creation time, in milliseconds since the epoch.
    pub created_at: i64,
}

#[cfg(test)]
impl WorkspaceRecord {
    /// Returns the record of a workspace for tests.
    pub fn sample() -> WorkspaceRecord {
        WorkspaceRecord { id: "0-1".into(), name: "w".into(), slug: "w".into(), owner_id: "u".into(), created_at: 0 }
    }
}

/// The stored record of a key. The record contains only a hash of the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: Arc<str>,
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The abbreviated secret that may be displayed, such as `sk_ab12…9f`.
    pub display: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub hash: String,
    /// Whether the key grants access to every workspace of its user, instead of only the workspace in which the key was
    /// created.
    pub opens_all: bool,
    /// The agents to which the key is bound. A bound key only acts for its agents. `None` if the key is not bound.
    pub agents: Option<Arc<[Arc<str>]>>,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    /// The origin of the key. For a key that was created with another key, the origin is the id of the other key, or of
    /// its replacement. For a key that was created in a session, the origin is `session:…` or `user:…`. If the origin
    /// is revoked, the key stops working, unless the revocation keeps the derived keys. A kept key gets the origin of
    /// the revoked key, or `user:…` if the revoked key has no origin. `None` if no origin is recorded.
    pub derived_from: Option<Arc<str>>,
    /// The ids of the keys that this key was derived from, oldest first. The key works only while all of these keys
    /// exist. A revocation that keeps the derived keys removes the revoked key from this list.
    pub ancestors: Vec<Arc<str>>,
}

/// A user who was removed from a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedMember {
    pub user_id: Arc<str>,
    /// The time of the last removal, in milliseconds since the epoch. The user may have joined again after this time.
    pub removed_at: i64,
}

impl KeyRecord {
    /// Returns whether the key has expired at a time in milliseconds since the epoch.
    pub fn has_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// A user. A user can be a member of any number of workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRecord {
    pub id: Arc<str>,
    /// The normalized email address that the issuer of the user's tokens reported last.
    pub email: Option<Arc<str>>,
    /// Whether the issuer has verified the email address.
    pub email_verified: bool,
    pub name: Option<Arc<str>>,
    /// The user's plan, or `None` if the default plan from the settings applies.
    pub plan: Option<UserPlan>,
}

impl UserRecord {
    /// Returns the email address if the issuer has verified the address.
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }
}

/// The membership of a user in a workspace, with the user's role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    pub role: Role,
    /// The time at which the user joined the workspace, in milliseconds since the epoch.
    pub joined_at: i64,
}

/// An invitation to join a workspace. Only a user with the verified address `email` may accept or decline the
/// invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: Arc<str>,
    pub workspace_id: Arc<str>,
    /// The normalized email address of the invited user.
    pub email: Arc<str>,
    pub role: Role,
    /// The creation time, in milliseconds since the epoch.
    pub created_at: i64,
    /// The time at which the invitation expires, in milliseconds since the epoch. The invitation expires together with
    /// the key that created the invitation. `None` if the invitation never expires.
    pub expires_at: Option<i64>,
    /// The origin of the invitation. For an invitation that was created with a key, the origin is the id of the key, or
    /// of its replacement. If this key stops working, the invitation ends. For an invitation that was created in a
    /// session, the origin is `session:…` or `user:…`. `None` for invitations that were created before this field
    /// existed.
    pub derived_from: Option<Arc<str>>,
}

/// A short-lived code that can be exchanged once for a key. The record contains only the hash of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInCode {
    /// SHA-256 of the code, in hexadecimal.
    pub hash: String,
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    /// The origin that the new key gets when the code is exchanged: the id of the key with which the code was created,
    /// or, without a key, `session:…` or `user:…`.
    pub derived_from: Arc<str>,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub key_expires_at: Option<i64>,
    /// The time at which the code expires, in milliseconds since the epoch.
    pub expires_at: i64,
}

const PREFIX: &str = "sk_";

/// Returns whether `text` has the form of a key: `sk_` and 64 hexadecimal characters.
pub fn is_key(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == 64 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the text of the key with the given 32 random bytes.
pub fn key_from(secret: [u8; 32]) -> String {
    format!("{PREFIX}{}", hex::encode(secret))
}

/// Returns the abbreviated form of a key that may be displayed.
pub fn display_of(key: &str) -> String {
    let shown = |range: std::ops::Range<usize>| key.get(range).unwrap_or_default();
    format!("{}…{}", shown(0..7), shown(key.len().saturating_sub(2)..key.len()))
}
