//! Devices on which a user has activated the apps.

use std::sync::Arc;

/// A device of a user. The most recently revoked devices of a user stay stored, so that these devices cannot be
/// activated again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    pub id: Arc<str>,
    pub user_id: Arc<str>,
    /// The id that the device chose. A device must always send the same id.
    pub instance_id: String,
    pub name: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
    /// The time of the activation, in milliseconds since the epoch. The other times have the same unit.
    pub activated_at: i64,
    pub last_validated_at: i64,
    pub revoked_at: Option<i64>,
}

/// The result of validating a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LicenseVerdict {
    Valid,
    LimitReached,
    Revoked,
}
