//! Limits the number of open event streams or sockets per workspace.

use std::collections::HashMap;
use std::sync::Arc;

use foldwork_engine::error::ErrorCode;
use foldwork_engine::metric::{GaugeGuard, Metric};
use parking_lot::Mutex;
use poem::http::{HeaderValue, StatusCode, header};

use super::error::ApiError;

/// The time after which a rejected client may retry, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The counts of open streams per workspace, and their limit.
#[derive(Clone)]
pub struct OpenStreams {
    /// The plural name of the streams in error messages, such as `event streams`.
    what: &'static str,
    allowed: usize,
    /// The gauge of all open streams.
    gauge: &'static Metric,
    open: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// The permit for one open stream of a workspace.
pub struct StreamPermit {
    workspace: Arc<str>,
    streams: OpenStreams,
    _counted: GaugeGuard,
}

impl OpenStreams {
    /// Creates a counter that allows `allowed` streams per workspace. `what` names the streams in error messages, and
    /// `gauge` counts the streams of all workspaces.
    pub fn new(allowed: usize, what: &'static str, gauge: &'static Metric) -> OpenStreams {
        OpenStreams { what, allowed, gauge, open: Arc::default() }
    }

    /// Returns a permit for one more stream of a workspace, or an error if the limit is reached.
    pub fn enter(&self, workspace: &Arc<str>) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock();
        let count = open.get(workspace).copied().unwrap_or(0);
        if count >= self.allowed {
            let what = self.what;
            let message =
                format!("the workspace has {count} open {what}, as many as `http.streams_per_workspace` allows");
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManyStreams, message);
            return Err(error.with_header(header::RETRY_AFTER, RETRY_AFTER));
        }
        open.insert(workspace.clone(), count + 1);
        let (streams, counted) = (self.clone(), GaugeGuard::begin(self.gauge));
        Ok(StreamPermit { workspace: workspace.clone(), streams, _counted: counted })
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
