//! The right to append to the log of a workspace. Only the handle that was opened last has the right.
//!
//! If other processes write to the store too, each append of events checks the head of the log. If this process is the
//! only writer, that check would double the cost of an append. The append right then replaces the check: a handle that
//! was opened earlier may have an outdated head and cannot append.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use crate::store::{Error, Result};

/// The append rights for the databases of one store.
#[derive(Default)]
pub struct AppendRights {
    /// The number of times that each database has been opened.
    latest: Mutex<HashMap<String, Arc<tokio::sync::Mutex<u64>>>>,
}

/// The append right of one handle on a database.
pub struct AppendRight {
    latest: Arc<tokio::sync::Mutex<u64>>,
    number: u64,
}

impl AppendRights {
    /// Claims the append right for a new handle and revokes the right of all earlier handles. Waits for any commit in
    /// progress, so that later reads see every event that earlier handles committed.
    pub async fn claim(&self, database: &str) -> AppendRight {
        let latest = self.latest.lock().entry(database.to_owned()).or_default().clone();
        let number = {
            let mut number = latest.lock().await;
            *number += 1;
            *number
        };
        AppendRight { latest, number }
    }
}

impl AppendRight {
    /// Locks the append right for the duration of a commit. Fails with [`Error::Closing`] if the database was opened
    /// again.
    pub async fn begin(&self) -> Result<MutexGuard<'_, u64>> {
        let latest = self.latest.lock().await;
        if *latest == self.number { Ok(latest) } else { Err(Error::Closing) }
    }
}
