//! The header `Foldwork-Durability` of append requests. With the value `archived`, the server delays the response until
//! the events are in the archive of backups.

use std::sync::Arc;

use foldwork_engine::archive::Backups;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::{AppendOutcome, Error, Writer};
use poem::http::{HeaderValue, StatusCode, header};

use crate::http::archiving::ServerArchive;
use crate::http::error::{ApiError, ApiResult};

/// The durability that an append waits for.
pub enum Durability {
    /// The events are stored. Every append waits at least for this durability.
    Stored,
    /// The events are stored, and are in the archive of backups.
    Archived(Arc<Backups>),
}

impl Durability {
    /// Returns the durability that the header requests. Fails for an unknown value, and for `archived` if the server
    /// has no backup.
    pub fn of(header: Option<&str>, archiving: &ServerArchive) -> ApiResult<Durability> {
        match header.map(str::trim) {
            None => Ok(Durability::Stored),
            Some("archived") => Ok(Durability::Archived(archiving.enabled()?.backups.clone())),
            Some(other) => {
                let other = excerpt_of(other);
                let message = format!("Foldwork-Durability: unknown value '{other}'; expected archived");
                Err(Error::invalid(message).into())
            }
        }
    }

    /// Waits until the appended events have this durability. The events stay appended if the wait fails.
    pub async fn wait(&self, writer: &Writer, appended: &AppendOutcome) -> ApiResult<()> {
        let Durability::Archived(backups) = self else { return Ok(()) };
        // The last event need not have the highest position, because an earlier request may have appended some events.
        let last = appended.events.iter().map(|event| event.position).max().unwrap_or(0);
        backups.archived(writer.caller().workspace_id(), last).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(
                %error,
                cause,
                workspace = writer.caller().workspace_id(),
                "the events of a request are appended, but not archived yet"
            );
            let message = "the events are appended, but not archived yet; repeat the request with the same \
                           Idempotency-Key or the same event ids to wait again";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::NotArchived, message)
                .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
        })
    }
}
