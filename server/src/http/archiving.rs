//! Gives handlers access to the archiver of backups, or an error if the server has no archive.

use std::sync::Arc;

use foldwork_engine::archive::Backups;
use foldwork_engine::error::ErrorCode;
use poem::http::StatusCode;

use super::error::ApiError;
use crate::config::Config;

/// The server's archiver and the URL of the archive, available to handlers as request data. Empty if the server has no
/// archive.
#[derive(Clone)]
pub struct ServerArchive(Option<ArchiverHandle>);

/// A running archiver.
#[derive(Clone)]
pub struct ArchiverHandle {
    pub backups: Arc<Backups>,
    /// The URL of the archive, without credentials.
    pub url: Arc<str>,
}

impl ServerArchive {
    pub fn new(backups: Option<Arc<Backups>>, config: &Config) -> ServerArchive {
        ServerArchive(backups.map(|backups| ArchiverHandle { backups, url: config.backup.shown_url().into() }))
    }

    /// Returns the archiver. Fails if the server has no archive.
    pub fn enabled(&self) -> Result<&ArchiverHandle, ApiError> {
        self.0.as_ref().ok_or_else(|| {
            let message = "this server has no backup; set [backup] url in its configuration";
            ApiError::new(StatusCode::CONFLICT, ErrorCode::BackupDisabled, message)
        })
    }

    /// Returns the names of the archiver's current problems, or no names if the server has no archive.
    pub fn warnings(&self) -> Vec<&'static str> {
        self.0.as_ref().map(|enabled| enabled.backups.warnings()).unwrap_or_default()
    }
}
