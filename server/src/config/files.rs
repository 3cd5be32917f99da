//! Settings of files: their store and their limits.

use serde::{Deserialize, Serialize};

/// Settings of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    pub url: String,
    pub quota_bytes: u64,
    pub json_limit_bytes: usize,
    pub upload_limit_bytes: u64,
}

impl Default for Files {
    fn default() -> Files {
        Files {
            url: "file://data/files".into(),
            quota_bytes: 0,
            json_limit_bytes: 32 << 20,
            upload_limit_bytes: 5 << 30,
        }
    }
}
