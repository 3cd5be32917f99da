//! Entity tags for versions, and the request headers `If-Match` and `If-None-Match`.

use foldwork_engine::Error;
use foldwork_engine::model::event::StreamExpectation;

/// Returns the version that a request expects. The request may state the version as `expected_version`, in the header
/// `If-Match`, in both, or not at all. Fails if `If-Match` is neither a version nor `*`. Also fails if the two versions
/// differ, because the server would check only one of the two versions.
pub fn expected(stated: Option<StreamExpectation>, if_match: Option<&str>) -> Result<StreamExpectation, Error> {
    let header = if_match.map(version_of).transpose()?;
    match (stated, header) {
        (Some(stated), Some(header)) if stated != header => {
            Err(Error::invalid_at("/expected_version", "differs from the version in If-Match"))
        }
        (stated, header) => Ok(stated.or(header).unwrap_or_default()),
    }
}

/// Returns the version that a request expects, from the parameter `expected_version` and the header `If-Match`.
pub fn expected_at(version: Option<impl Into<u64>>, if_match: Option<&str>) -> Result<StreamExpectation, Error> {
    expected(version.map(|version| StreamExpectation::at(version.into())), if_match)
}

fn version_of(if_match: &str) -> Result<StreamExpectation, Error> {
    match if_match.trim() {
        "*" => Ok(StreamExpectation::Exists),
        quoted => {
            let version = quoted.trim_start_matches("W/").trim_matches('"').parse();
            version.map(StreamExpectation::at).map_err(|_| Error::invalid("If-Match must be a version in quotes, or *"))
        }
    }
}

/// Returns the entity tag of a version.
pub fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns whether an `If-None-Match` header contains this tag or `*`. If so, the response can be 304 without
/// a body.
pub fn is_known(if_none_match: Option<&str>, tag: &str) -> bool {
    if_none_match.is_some_and(|known| {
        known.split(',').map(|known| known.trim().trim_start_matches("W/")).any(|known| known == tag || known == "*")
    })
}
