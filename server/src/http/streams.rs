//! How many event streams or sockets are open for each workspace, and the bound on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use poem::http::{HeaderValue, StatusCode, header};

use super::error::ApiError;

/// When a client who was refused may try again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The open streams of every workspace.
#[derive(Clone)]
pub struct Streams {
    /// What they are called.
    what: &'static str,
    allowed: usize,
    open: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// A stream's place among those of its workspace. Whoever holds it may keep the stream open.
pub struct StreamPermit {
    workspace: Arc<str>,
    streams: Streams,
}

impl Streams {
    /// So many for each workspace.
    pub fn new(allowed: usize, what: &'static str) -> Streams {
        Streams { what, allowed, open: Arc::default() }
    }

    /// A place for one more stream of a workspace, while there is one.
    pub fn enter(&self, workspace: &Arc<str>) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(workspace).copied().unwrap_or(0);
        if count >= self.allowed {
            let message = format!("the workspace has {count} {} open; allowed are {}", self.what, self.allowed);
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message);
            return Err(error.with_header(header::RETRY_AFTER, RETRY_AFTER));
        }
        open.insert(workspace.clone(), count + 1);
        Ok(StreamPermit { workspace: workspace.clone(), streams: self.clone() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.workspace) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.workspace);
            }
        }
    }
}
