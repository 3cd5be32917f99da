//! The times of the last maintenance of the archive on this server.

use std::collections::HashMap;
use std::sync::Arc;

/// When this server last did what is due at intervals, by workspace, in milliseconds since the epoch.
#[derive(Default)]
pub struct MaintenanceTimes {
    pub hourly: HashMap<Arc<str>, i64>,
    pub daily: HashMap<Arc<str>, i64>,
    pub control: i64,
}
