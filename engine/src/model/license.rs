//! Devices on which a user has activated the apps.

use std::sync::Arc;

/// A device of a user. One that was revoked is kept: it must not come back by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    pub id: Arc<str>,
    pub user_id: Arc<str>,
    /// What the device calls itself, the same each time.
    pub instance_id: String,
    pub name: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
    /// Milliseconds since the epoch, as the other times.
    pub activated_at: i64,
    pub last_validated_at: i64,
    pub revoked_at: Option<i64>,
}

/// What came of a device's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    LimitReached,
    Revoked,
}
