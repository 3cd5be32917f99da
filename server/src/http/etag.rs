//! Entity tags for versions, and the request headers `If-Match` and `If-None-Match`.

use foldwork_engine::Error;
use foldwork_engine::model::event::Expected;

/// Returns the version that an `If-Match` header expects.
pub fn expected(if_match: Option<&str>) -> Result<Expected, Error> {
    let Some(value) = if_match.map(str::trim) else { return Ok(Expected::Any) };
    match value {
        "*" => Ok(Expected::Exists),
        quoted => {
            let version = quoted.trim_start_matches("W/").trim_matches('"').parse();
            version.map(Expected::Version).map_err(|_| Error::invalid("If-Match must be a version in quotes, or *"))
        }
    }
}

/// Returns the entity tag of a version.
pub fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns whether an `If-None-Match` header names this tag. If so, the client already has this version.
pub fn is_known(if_none_match: Option<&str>, tag: &str) -> bool {
    if_none_match.is_some_and(|known| {
        known.split(',').map(|known| known.trim().trim_start_matches("W/")).any(|known| known == tag || known == "*")
    })
}
