//! Who asks, and what they may do: scopes, keys and callers.

use std::fmt;
use std::sync::Arc;

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
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asks: made by authenticating a bearer token, and by nothing else outside the engine.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) user_id: Arc<str>,
    pub(crate) workspace_id: Arc<str>,
    pub(crate) key_id: Option<Arc<str>>,
    pub(crate) scopes: Arc<[Scope]>,
    /// When what was shown ends; milliseconds since the epoch.
    pub(crate) expires_at: Option<i64>,
}

impl Caller {
    pub fn holds(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Those of some scopes that the caller lacks.
    pub fn lacking(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| !self.holds(*scope)).collect()
    }

    /// Whether something that expires then, or never, goes on when what was shown has ended.
    pub fn is_outlived_by(&self, expires_at: Option<i64>) -> bool {
        self.expires_at.is_some_and(|own| expires_at.is_none_or(|other| other > own))
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
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
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
