//! The times of the last maintenance of the archive on this server.

use std::collections::HashMap;
use std::sync::Arc;

/// The times at which this server last did the hourly and daily maintenance of each workspace's archive, and the
/// maintenance of the control database's dumps, in milliseconds since the epoch.
#[derive(Default)]
pub struct MaintenanceTimes {
    pub hourly: HashMap<Arc<str>, i64>,
    pub daily: HashMap<Arc<str>, i64>,
    pub control: i64,
}
