//! Settings of backups.

use foldwork_engine::archive::BackupSettings;
use serde::{Deserialize, Serialize};

use super::units::TimeSpan;

/// The minimum and the maximum of `flush`, in milliseconds.
const FLUSH_MS: (u64, u64) = (100, 60_000);

/// Settings of the archive to which a server copies the logs and the files of workspaces, and dumps of the control
/// database. Without a URL, the server keeps no archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    pub url: String,
    pub flush: TimeSpan,
    pub retention: TimeSpan,
    pub verify: Verify,
}

/// The frequency with which a server verifies its archives. A verification checks that every segment is intact, that
/// the states in the archive match a digest of the states in the store, and that the archive has the files of these
/// states with the right sizes. The hashes of the files are checked for a limited number of files. If the states need
/// more than 512 MiB, or if the archive has no digest from this version of the program, only the segments are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    #[default]
    Daily,
    Off,
}

impl Backup {
    /// Returns whether the server archives the log, which requires a URL.
    pub fn is_enabled(&self) -> bool {
        !self.url.is_empty()
    }

    /// Returns the settings of the archiver.
    pub fn settings(&self) -> BackupSettings {
        let (min, max) = FLUSH_MS;
        BackupSettings {
            flush_ms: self.flush.millis().clamp(min, max),
            retention_ms: self.retention.signed_millis(),
            verify: self.verify == Verify::Daily,
        }
    }

    /// Returns the URL of the archive without the parts that may contain credentials: the user, the password, the query
    /// and the fragment.
    pub fn shown_url(&self) -> String {
        let url = self.url.split(['?', '#']).next().unwrap_or_default();
        let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{scheme}://{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn shown(url: &str) -> String {
        Backup { url: url.into(), ..Config::default().backup }.shown_url()
    }

    #[test]
    fn the_shown_url_has_no_credentials() {
        assert_eq!(shown(""), "");
        assert_eq!(shown("s3://key:secret@bucket/prefix?token=x"), "s3://bucket/prefix");
        assert_eq!(shown("s3://bucket"), "s3://bucket");
        assert_eq!(shown("file:///srv/a@b"), "file:///srv/a@b");
        assert_eq!(shown("file://data/backup"), "file://data/backup");
    }

    #[test]
    fn the_flush_interval_is_limited_and_verification_can_be_turned_off() {
        let flush_ms = |flush| {
            let flush = TimeSpan(std::time::Duration::from_millis(flush));
            Backup { flush, ..Config::default().backup }.settings().flush_ms
        };
        assert_eq!([0, 100, 1_000, 60_000, u64::MAX].map(flush_ms), [100, 100, 1_000, 60_000, 60_000]);
        assert!(Config::default().backup.settings().verify);
        assert!(!Backup { verify: Verify::Off, ..Config::default().backup }.settings().verify);
    }
}
