//! Rewrites URLs of files, so that clients need not encode the slashes in a file's path.

use poem::Request;
use poem::http::Uri;
use poem::http::uri::PathAndQuery;

use crate::http::routes::API;
use crate::http::routes::DOWNLOADS;

/// Encodes the slashes in the path of a file, in URLs below `/files/` and in URLs of downloads. The router then sees
/// the path of the file as one segment. Clients may also encode the slashes themselves.
pub async fn one_segment(mut request: Request) -> poem::Result<Request> {
    if let Some(uri) = rewritten(request.uri()) {
        *request.uri_mut() = uri;
    }
    Ok(request)
}

fn rewritten(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let files = path.strip_prefix(API).and_then(|rest| rest.strip_prefix("/files/"));
    let rest = files.or_else(|| path.strip_prefix(DOWNLOADS).and_then(|rest| rest.strip_prefix('/')))?;
    if !rest.contains('/') {
        return None;
    }
    let begin = &path[..path.len() - rest.len()];
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = PathAndQuery::try_from(format!("{begin}{}{query}", rest.replace('/', "%2F"))).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_encoded_in_file_paths_but_not_in_other_paths() {
        for (from, to) in [
            ("/api/v1/files/w/_/_/_/x%2520.txt?a=b/c", Some("/api/v1/files/w%2F_%2F_%2F_%2Fx%2520.txt?a=b/c")),
            ("/files-dl/w/x?exp=1", Some("/files-dl/w%2Fx?exp=1")),
            ("http://h:1/api/v1/files/w/x", Some("http://h:1/api/v1/files/w%2Fx")),
            ("/api/v1/files/w%2Fx", None),
            ("/api/v1/files/delete", None),
            ("/api/v1/files", None),
            ("/api/v1/filesystem/a/b", None),
            ("/api/v1/articles/a/b", None),
        ] {
            let uri: Uri = from.parse().expect("a URI");
            assert_eq!(rewritten(&uri).map(|uri| uri.to_string()).as_deref(), to, "{from}");
        }
    }
}
