//! Signed links to files, and the endpoint that serves a file or a range of its bytes to requests with such a link.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldwork_engine::Engine;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::file;
use foldwork_engine::workspace::files::{SignedLink, StoredFile, attachment};
use futures_util::TryStreamExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use poem::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use poem::web::{Path, Query};
use poem::{Body, FromRequest, Request, Response};
use serde::Deserialize;

use crate::http::error::ApiError;
use crate::http::etag::is_known;
use crate::http::public_url::PublicUrl;
use crate::http::routes::DOWNLOADS;

/// The characters that are percent-encoded in a path.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The query parameters of a signed link.
#[derive(Deserialize)]
struct LinkParameters {
    exp: i64,
    /// The restriction of the link: `published`, or absent for a link without a restriction.
    of: Option<String>,
    kid: String,
    sig: String,
}

/// Returns a path with percent-encoding for a URL.
pub fn encoded(path: &str) -> String {
    utf8_percent_encode(path, IN_PATH).to_string()
}

/// Returns the URL of a signed link on this server.
pub fn url(request: &Request, link: &SignedLink) -> String {
    let SignedLink { path, expires_s, published_only, key_id, signature } = link;
    let of = if *published_only { "&of=published" } else { "" };
    let base = request.data::<PublicUrl>().expect("the application adds its public URL to each request").base(request);
    let signature = URL_SAFE_NO_PAD.encode(signature);
    format!("{base}{DOWNLOADS}/{}?exp={expires_s}{of}&kid={key_id}&sig={signature}", encoded(path))
}

/// Handles a request with a signed link.
#[poem::handler]
pub async fn download(request: &Request) -> poem::Result<Response> {
    let engine = request.data::<Arc<Engine>>().expect("the application adds its engine to each request");
    let stored = engine.linked_file(&link(request).await?).await.map_err(ApiError::from)?;
    Ok(respond(request, &stored).await?)
}

/// Parses the requested link. A malformed link gets the same error as an invalid link.
async fn link(request: &Request) -> Result<SignedLink, ApiError> {
    let refused = || ApiError::new(StatusCode::FORBIDDEN, ErrorCode::InvalidLink, "the link is invalid or has expired");
    let Path(path) = Path::<String>::from_request_without_body(request).await.map_err(|_| refused())?;
    let Query(signed) = Query::<LinkParameters>::from_request_without_body(request).await.map_err(|_| refused())?;
    let signature = URL_SAFE_NO_PAD.decode(&signed.sig).map_err(|_| refused())?;
    let published_only = match signed.of.as_deref() {
        None => false,
        Some("published") => true,
        Some(_) => return Err(refused()),
    };
    Ok(SignedLink { path, expires_s: signed.exp, published_only, key_id: signed.kid, signature })
}

async fn respond(request: &Request, stored: &StoredFile) -> Result<Response, ApiError> {
    let size = file::size_bytes(&stored.file);
    let tag = format!("\"{}\"", file::text(&stored.file, file::SHA256).unwrap_or_default());
    let mut response = Response::builder().status(StatusCode::OK).finish();
    *response.headers_mut() = headers(stored, &tag);
    if is_known(request.header(header::IF_NONE_MATCH), &tag) {
        response.set_status(StatusCode::NOT_MODIFIED);
        return Ok(response);
    }
    // Only GET has ranges (RFC 9110, section 14.2). The response also contains the whole file if `If-Range` contains
    // anything other than the tag of this version, such as a date.
    let is_get = request.method() == Method::GET;
    let of_this = is_get && request.header(header::IF_RANGE).is_none_or(|known| known.trim() == tag);
    let range = match request.header(header::RANGE).filter(|_| of_this).and_then(|range| parse_range(range, size)) {
        None => 0..size,
        Some(Some(range)) => {
            response.set_status(StatusCode::PARTIAL_CONTENT);
            let content_range = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
            insert(response.headers_mut(), header::CONTENT_RANGE, &content_range);
            range
        }
        Some(None) => {
            let message = format!("the requested range is outside the file, which has {size} bytes");
            let error = ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, ErrorCode::RangeNotSatisfiable, message);
            return Err(error.with_header(header::CONTENT_RANGE, value(&format!("bytes */{size}"))));
        }
    };
    insert(response.headers_mut(), header::CONTENT_LENGTH, &(range.end - range.start).to_string());
    if is_get {
        let blocks = stored.read(range).await.map_err(ApiError::from)?;
        response.set_body(Body::from_bytes_stream(blocks.map_err(std::io::Error::other)));
    }
    Ok(response)
}

fn headers(stored: &StoredFile, tag: &str) -> HeaderMap {
    let text = |field| file::text(&stored.file, field).unwrap_or_default();
    let mut headers = HeaderMap::new();
    insert(&mut headers, header::CONTENT_TYPE, text(file::MIME_TYPE));
    insert(&mut headers, header::CONTENT_DISPOSITION, &attachment(text(file::FILENAME)));
    insert(&mut headers, header::ETAG, tag);
    insert(&mut headers, header::ACCEPT_RANGES, "bytes");
    insert(&mut headers, header::CACHE_CONTROL, "private");
    insert(&mut headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Uploaded content must not run scripts with the origin of this server.
    insert(&mut headers, header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
    headers
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    headers.insert(name, value(text));
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Parses a `Range` header. Returns `None` if the header is ignored, for example because the header contains several
/// ranges. The response then contains the whole file. Returns `Some(None)` if the range is outside the file (416).
fn parse_range(range: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        match text {
            "" => Some(None),
            // Reads a number that overflows as the largest number.
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(text.parse().unwrap_or(u64::MAX))),
            _ => None,
        }
    };
    match (number(first)?, number(last)?) {
        (None, None) => None,
        (None, Some(0)) => Some(None),
        (None, Some(_)) if size == 0 => Some(None),
        (None, Some(from_end)) => Some(Some(size.saturating_sub(from_end)..size)),
        (Some(first), Some(last)) if last < first => None,
        (Some(first), _) if first >= size => Some(None),
        (Some(first), None) => Some(Some(first..size)),
        (Some(first), Some(last)) => Some(Some(first..size.min(last.saturating_add(1)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_headers_are_parsed() {
        for (text, expected) in [
            ("bytes=0-0", Some(Some(0..1))),
            ("bytes=2-", Some(Some(2..10))),
            ("bytes=2-99", Some(Some(2..10))),
            ("bytes=-3", Some(Some(7..10))),
            ("bytes=-99", Some(Some(0..10))),
            ("BYTES=9-9", Some(Some(9..10))),
            ("bytes=0-99999999999999999999", Some(Some(0..10))),
            ("bytes=10-", Some(None)),
            ("bytes=99999999999999999999-", Some(None)),
            ("bytes=-0", Some(None)),
            // Invalid ranges and lists of ranges are ignored.
            ("bytes=3-2", None),
            ("bytes=-", None),
            ("bytes=0-1,4-5", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("lines=0-1", None),
            ("", None),
        ] {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Some(None));
        assert_eq!(parse_range("bytes=-1", 0), Some(None));
    }
}
