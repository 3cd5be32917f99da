//! Settings of files: their store and their limits.

use serde::{Deserialize, Serialize};

use super::units::DataSize;

/// Settings of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    pub url: String,
    pub quota: DataSize,
    pub upload_limit: DataSize,
}
