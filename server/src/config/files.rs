//! Settings of files: their store and their limits.

use serde::{Deserialize, Serialize};

use super::units::DataSize;

/// Settings of files: the URL of the store, the quota of a workspace, and the limit on an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    pub url: String,
    pub quota: DataSize,
    pub upload_limit: DataSize,
}
