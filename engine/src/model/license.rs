//! Devices on which a user has activated the apps.

use std::sync::Arc;

/// A device of a user. A revoked device is kept so that it cannot activate itself again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    pub id: Arc<str>,
    pub user_id: Arc<str>,
    /// The id that the device chose for itself, which always stays the same.
    pub instance_id: String,
    pub name: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
    /// Milliseconds since the epoch, like the other times.
    pub activated_at: i64,
    pub last_validated_at: i64,
    pub revoked_at: Option<i64>,
}

/// The result of validating a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    LimitReached,
    Revoked,
}
