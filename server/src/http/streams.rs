//! Limits the number of open event streams or sockets per workspace.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use poem::http::{HeaderValue, StatusCode, header};

use super::error::ApiError;

/// The time after which a rejected client may retry, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Counts the open streams of every workspace.
#[derive(Clone)]
pub struct Streams {
    /// The name of the streams in error messages.
    what: &'static str,
    allowed: usize,
    open: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// The permit for one open stream of a workspace.
pub struct StreamPermit {
    workspace: Arc<str>,
    streams: Streams,
}

impl Streams {
    /// Creates a counter that allows `allowed` streams per workspace. `what` names the streams in error messages.
    pub fn new(allowed: usize, what: &'static str) -> Streams {
        Streams { what, allowed, open: Arc::default() }
    }

    /// Returns a permit for one more stream of a workspace, or an error if the limit is reached.
    pub fn enter(&self, workspace: &Arc<str>) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock();
        let count = open.get(workspace).copied().unwrap_or(0);
        if count >= self.allowed {
            let message = format!("the workspace has {count} open {}; the limit is {}", self.what, self.allowed);
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message);
            return Err(error.with_header(header::RETRY_AFTER, RETRY_AFTER));
        }
        open.insert(workspace.clone(), count + 1);
        Ok(StreamPermit { workspace: workspace.clone(), streams: self.clone() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        if let Some(count) = open.get_mut(&self.workspace) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.workspace);
            }
        }
    }
}
