//! Whether a store in a folder takes writes: it is asked to take one. What the store thinks of its disk is not asked, since
//! a disk that failed is known to work again only by a write that succeeds.

use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, timeout};

use super::{Database, Error, Result, Store};

/// An answer serves for so long: whoever asks in a loop does not keep the disk busy.
const SERVES: Duration = Duration::from_secs(1);
/// A store that takes longer for one small write is not one that serves.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Writes one small record, again and again.
#[derive(Default)]
pub struct Probe {
    control: OnceCell<Database>,
    last: Mutex<Option<(Instant, Option<String>)>>,
}

impl Probe {
    /// Asks for a write, unless one was asked for just now. One asks at a time, others wait for the answer.
    pub async fn ask(&self, store: &Store) -> Result<()> {
        let mut last = self.last.lock().await;
        let known = last.as_ref().filter(|(at, _)| at.elapsed() < SERVES).map(|(_, failure)| failure.clone());
        let failure = match known {
            Some(failure) => failure,
            None => {
                let failure = match timeout(ANSWERS_WITHIN, self.write(store)).await {
                    Ok(written) => written.err().map(|error| error.to_string()),
                    Err(_) => Some(format!("a write takes longer than {} s", ANSWERS_WITHIN.as_secs())),
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
            // Another process was faster: so there was a write.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
