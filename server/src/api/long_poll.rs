//! Long polling: a request waits until a list has new items. Also contains the parts of the server's state that long
//! polling and streams use.

use std::time::Duration;

use foldwork_engine::{Error, Grant};
use poem::web::Data;
use poem::{FromRequest, Request, RequestBody};

use crate::http::shutdown::Shutdown;
use crate::http::streams::OpenStreams;
use crate::wire::page::{PageBytes, Whole};

/// The maximum value of `wait_ms` in milliseconds.
const MAX_WAIT_MS: u64 = 30_000;

/// The parts of the server's state that long polling and streams use.
pub struct LiveContext {
    pub shutdown: Shutdown,
    /// The permits for streams.
    pub streams: OpenStreams,
    /// The maximum size of a page, in bytes.
    pub page_bytes: usize,
}

impl<'a> FromRequest<'a> for LiveContext {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<LiveContext> {
        let shutdown = Data::<&Shutdown>::from_request(request, body).await?;
        let streams = Data::<&OpenStreams>::from_request(request, body).await?;
        let page_bytes = Data::<&PageBytes>::from_request(request, body).await?;
        Ok(LiveContext { shutdown: shutdown.clone(), streams: streams.clone(), page_bytes: page_bytes.0.0 })
    }
}

impl LiveContext {
    /// Returns the result of `page`, a future that waits up to `wait` for the first item. Fails if the caller's access
    /// ends during the wait. When the server shuts down, ends the wait and returns the result of `page_now`.
    pub async fn wait<T>(
        &self,
        mut grant: Grant,
        wait: Duration,
        page: impl Future<Output = Result<T, Error>>,
        page_now: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            page = page => page,
            () = grant.ended(), if !wait.is_zero() => Err(Error::Unauthenticated(
                "the key or token was revoked or has expired, or the user has left the workspace or has another role",
            )),
            () = self.shutdown.clone().begun() => page_now.await,
        }
    }
}

/// Returns the time that a request waits: the parameter `wait_ms`, at most 30 seconds.
pub fn wait_time(wait_ms: Option<Whole>) -> Duration {
    Duration::from_millis(wait_ms.map_or(0, u64::from).min(MAX_WAIT_MS))
}
