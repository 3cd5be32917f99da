//! Checks whether a store in a folder accepts writes, by writing a record. A write is necessary, because only a
//! successful write shows that a failed disk works again.

use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, timeout};

use super::{Database, Error, Result, Store};

/// The time for which a result is reused, so that frequent checks do not keep the disk busy.
const CACHE_DURATION: Duration = Duration::from_secs(1);
/// The maximum time for one write of the health-check record. A store that takes longer is not healthy.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A health check that writes one small record.
#[derive(Default)]
pub struct Probe {
    control: OnceCell<Database>,
    last: Mutex<Option<(Instant, Option<String>)>>,
}

impl Probe {
    /// Writes the health-check record, or returns the result of a recent write. Concurrent calls share one write.
    pub async fn check(&self, store: &Store) -> Result<()> {
        let mut last = self.last.lock().await;
        let cached = last.as_ref().filter(|(at, _)| at.elapsed() < CACHE_DURATION).map(|(_, failure)| failure.clone());
        let failure = match cached {
            Some(failure) => failure,
            None => {
                let failure = match timeout(WRITE_TIMEOUT, self.write(store)).await {
                    Ok(written) => written.err().map(|error| error.to_string()),
                    Err(_) => Some(format!("a write took longer than {} s", WRITE_TIMEOUT.as_secs())),
                };
                *last = Some((Instant::now(), failure.clone()));
                failure
            }
        };
        failure.map_or(Ok(()), |failure| Err(Error::Unwritable(failure)))
    }

    async fn write(&self, store: &Store) -> Result<()> {
        let control = self.control.get_or_try_init(|| store.control()).await?;
        match control.query("UPSERT probe:write SET at = time::now() RETURN NONE", []).await {
            // A conflict means that another process wrote the record, so the store accepts writes.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
