//! Health checks: whether the process is alive, and whether the server can handle requests.

use std::sync::Arc;

use foldwork_engine::Engine;
use poem::http::StatusCode;
use poem::web::{Data, Json};
use poem::{IntoResponse, Response, handler};

use crate::http::archiving::ServerArchive;
use crate::http::shutdown::Shutdown;

/// Returns 200 while the process can respond.
#[handler]
pub fn healthz() -> Json<serde_json::Value> {
    Json(serde_json::json!({"status": "ok"}))
}

/// Returns 200 if the store responds and the server is not shutting down, and otherwise 503. If the store is in a
/// folder, 200 also means that the disk accepts writes.
#[handler]
pub async fn readyz(
    engine: Data<&Arc<Engine>>,
    shutdown: Data<&Shutdown>,
    archiving: Data<&ServerArchive>,
) -> Response {
    let unready = |reason: &str| {
        Json(serde_json::json!({"status": "unavailable", "reason": reason}))
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .into_response()
    };
    if shutdown.is_announced() {
        return unready("stopping");
    }
    match engine.health().await {
        Ok(()) => {
            let mut body = serde_json::json!({"status": "ok"});
            // Failed workspaces do not affect other workspaces, so the status stays 200, and the body contains the
            // number of failed workspaces.
            if let (failed @ 1.., Some(body)) = (engine.workspaces_failed(), body.as_object_mut()) {
                body.insert("workspaces_failed".into(), failed.into());
            }
            // A problem with backups does not affect requests either.
            let warnings = archiving.warnings();
            if let (false, Some(body)) = (warnings.is_empty(), body.as_object_mut()) {
                body.insert("warnings".into(), warnings.into());
            }
            Json(body).into_response()
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, "the server is not ready");
            unready("store")
        }
    }
}
