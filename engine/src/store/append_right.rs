//! Which handle on the log of a workspace may append: the one that was opened last.
//!
//! Where other processes write to the store too, each transaction is guarded by the head of the log. Where this process
//! is alone, that guard would double the cost of an append, and this right takes its place: a handle of an earlier
//! opening, which may have an old head, cannot commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::MutexGuard;

use super::{Error, Result};

/// The rights to append to the databases of one store.
#[derive(Default)]
pub struct AppendRights {
    /// The number of the last opening, by database.
    latest: Mutex<HashMap<String, Arc<tokio::sync::Mutex<u64>>>>,
}

/// The right that one opening of a database has.
pub struct AppendRight {
    latest: Arc<tokio::sync::Mutex<u64>>,
    number: u64,
}

impl AppendRights {
    /// Takes the right away from all earlier openings. Returns after a commit of theirs that is under way: what is read
    /// from now on holds every event that they committed.
    pub async fn claim(&self, database: &str) -> AppendRight {
        let latest = {
            let mut all = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(database.to_owned()).or_default().clone()
        };
        let number = {
            let mut number = latest.lock().await;
            *number += 1;
            *number
        };
        AppendRight { latest, number }
    }
}

impl AppendRight {
    /// Held during a commit; [`Error::Closing`] where the database was opened again.
    pub async fn begin(&self) -> Result<MutexGuard<'_, u64>> {
        let latest = self.latest.lock().await;
        if *latest == self.number { Ok(latest) } else { Err(Error::Closing) }
    }
}
