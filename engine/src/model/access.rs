//! Who asks, and what they may do: scopes, roles, keys and callers.

use std::fmt;
use std::sync::Arc;

use super::plan::Plan;

/// A permission that a key carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    ProfileRead,
    EmailRead,
    ApiRead,
    ApiWrite,
    McpRead,
    McpWrite,
    ExtensionUnlock,
    ContentRead,
}

impl Scope {
    pub const ALL: [Scope; 8] = [
        Scope::ProfileRead,
        Scope::EmailRead,
        Scope::ApiRead,
        Scope::ApiWrite,
        Scope::McpRead,
        Scope::McpWrite,
        Scope::ExtensionUnlock,
        Scope::ContentRead,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scope::ProfileRead => "profile:read",
            Scope::EmailRead => "email:read",
            Scope::ApiRead => "api:read",
            Scope::ApiWrite => "api:write",
            Scope::McpRead => "mcp:read",
            Scope::McpWrite => "mcp:write",
            Scope::ExtensionUnlock => "extension:unlock",
            Scope::ContentRead => "content:read",
        }
    }

    /// The scope of this name.
    pub fn parse(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// Whether it takes a plan that has not lapsed.
    pub fn is_paid(self) -> bool {
        matches!(self, Scope::ApiWrite | Scope::McpWrite | Scope::ExtensionUnlock)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a member may do in a workspace: each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Viewer,
    Editor,
    Owner,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Editor, Role::Owner];

    pub fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Editor => "editor",
            Role::Owner => "owner",
        }
    }

    /// The role of this name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// Who asks: made by authenticating a bearer token, and by nothing else outside the engine.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) user_id: Arc<str>,
    pub(crate) workspace_id: Arc<str>,
    pub(crate) key_id: Option<Arc<str>>,
    /// The session of the token that was shown, where it names one.
    pub(crate) session: Option<Arc<str>>,
    pub(crate) scopes: Arc<[Scope]>,
    /// Whether what was shown opens every workspace of the user: a token, or a key that was made for all.
    pub(crate) opens_all: bool,
    /// When what was shown ends; milliseconds since the epoch.
    pub(crate) expires_at: Option<i64>,
    pub(crate) role: Role,
    pub(crate) plan: Arc<Plan>,
    /// Whether the plan had lapsed when the caller came.
    pub(crate) is_lapsed: bool,
}

impl Caller {
    pub fn holds(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Those of some scopes that the caller lacks.
    pub fn lacking(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| !self.holds(*scope)).collect()
    }

    /// Those of some scopes that the caller's plan has to pay for, where it has lapsed.
    pub fn unpaid(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| self.is_lapsed && scope.is_paid()).collect()
    }

    /// Whether something that expires then, or never, goes on when the key that was shown has ended. A session is no
    /// measure: what its user makes is to last.
    pub fn is_outlived_by(&self, expires_at: Option<i64>) -> bool {
        let own = self.expires_at.filter(|_| self.key_id.is_some());
        own.is_some_and(|own| expires_at.is_none_or(|other| other > own))
    }

    /// What is made by this caller ends with: the key that was shown, or else the session or the user is named.
    pub fn origin(&self) -> Arc<str> {
        match (&self.key_id, &self.session) {
            (Some(key), _) => key.clone(),
            (None, Some(session)) => format!("session:{session}").into(),
            (None, None) => format!("user:{}", self.user_id).into(),
        }
    }

    /// Whether what was shown opens every workspace of the user.
    pub fn opens_all(&self) -> bool {
        self.opens_all
    }

    /// What the caller is in the workspace.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The caller's own plan.
    pub fn plan(&self) -> &Plan {
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

    /// When what was shown expires, if it does; milliseconds since the epoch.
    pub fn expires_at(&self) -> Option<i64> {
        self.expires_at
    }

    /// The key that was shown, if it was one.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }
}

/// A workspace as its users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    pub id: Arc<str>,
    pub name: String,
    pub slug: String,
    pub owner_id: Arc<str>,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

/// A key as it is kept: the secret itself is not in it, nor anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: Arc<str>,
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// What may be shown of the secret, as `sk_ab12…9f`.
    pub display: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub hash: String,
    /// Whether it opens every workspace of its user, and not only the one that it was made in.
    pub opens_all: bool,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    /// The key that made it, by its id; `session:` and `user:` name who made it in a session. What a key made ends with it.
    pub derived_from: Option<Arc<str>>,
    /// That key, the one which it was derived from, and so on; the first one first. It opens while all of them are there.
    pub ancestors: Vec<Arc<str>>,
}

/// Somebody who may be a member of workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRecord {
    pub id: Arc<str>,
    /// In its normal form, as the issuer of the user's tokens said it last.
    pub email: Option<Arc<str>>,
    /// Whether the issuer vouches for the address.
    pub email_verified: bool,
    pub name: Option<Arc<str>>,
    /// `None` where the settings' default plan holds.
    pub plan: Option<Plan>,
}

impl UserRecord {
    /// The address, where the issuer vouches for it.
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }
}

/// That a user is in a workspace, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    pub role: Role,
    /// Milliseconds since the epoch.
    pub joined_at: i64,
}

/// A proposal to join a workspace, which the user with this verified address accepts or declines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: Arc<str>,
    pub workspace_id: Arc<str>,
    /// In its normal form.
    pub email: Arc<str>,
    pub role: Role,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// When the key that made it expires, if it does: the invitation ends then.
    pub expires_at: Option<i64>,
    /// The key that made it, by its id: the invitation ends with that key. `session:` and `user:` name who made it in a
    /// session. `None` for invitations that were made before this was recorded.
    pub derived_from: Option<Arc<str>>,
}

/// A code by which a key is got, once, soon. The code itself is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInCode {
    /// SHA-256 of the code, in hexadecimal.
    pub hash: String,
    pub workspace_id: Arc<str>,
    pub user_id: Arc<str>,
    /// What the key is derived from.
    pub derived_from: Arc<str>,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub key_expires_at: Option<i64>,
    /// When the code ends; milliseconds since the epoch.
    pub expires_at: i64,
}

const PREFIX: &str = "sk_";

/// Whether a text has the form of a key: `sk_` and 64 hexadecimal characters.
pub fn is_key(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == 64 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The key that 32 random bytes make.
pub fn key_from(secret: [u8; 32]) -> String {
    format!("{PREFIX}{}", hex::encode(secret))
}

/// What may be shown of a key.
pub fn display_of(key: &str) -> String {
    let shown = |range: std::ops::Range<usize>| key.get(range).unwrap_or_default();
    format!("{}…{}", shown(0..7), shown(key.len().saturating_sub(2)..key.len()))
}
