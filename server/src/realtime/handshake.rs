//! Reads the handshake of a socket: the client's credential and its serializer.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use foldwork_engine::Error;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::excerpt::excerpt_of;
use poem::Request;
use poem::http::{HeaderValue, StatusCode, header};

use super::frame::ProtocolVersion;
use crate::http::bearer::bearer;
use crate::http::error::ApiError;

/// The maximum length of a credential in bytes.
const MAX_CREDENTIAL: usize = 16 << 10;
/// The subprotocol that the server selects if a client offers this subprotocol. A Phoenix client can offer `phoenix`
/// together with a second subprotocol that contains the client's token.
pub const PROTOCOL: &str = "phoenix";
const TOKEN_PROTOCOL: &str = "base64url.bearer.phx.";

/// Returns the client's credential from the query, the subprotocols or the headers of the request.
pub fn credential(request: &Request) -> Result<String, Error> {
    const NONE: Error = Error::Unauthenticated(
        "a credential is required: parameter or header `apikey`, header `x-api-key`, a bearer token or a subprotocol",
    );
    let header = request.header("x-api-key").map(str::to_owned);
    let query = || parameter(request, "apikey").filter(|key| !key.is_empty());
    // Requests other than socket upgrades may send the credential in the header `apikey`.
    let own_header = || request.header("apikey").map(str::to_owned);
    let authorization = || bearer(request).map(str::to_owned);
    let found = header.or_else(query).or_else(authorization).or_else(own_header).or_else(|| protocol_token(request));
    let credential = found.ok_or(NONE)?;
    if credential.len() > MAX_CREDENTIAL {
        return Err(Error::Unauthenticated("the credential is longer than 16 KiB"));
    }
    Ok(credential)
}

/// Returns the serializer that the client requests.
pub fn version(request: &Request) -> Result<ProtocolVersion, ApiError> {
    let vsn = parameter(request, "vsn");
    let refused = || {
        let found = excerpt_of(vsn.as_deref().unwrap_or_default());
        let message = format!("`vsn` is '{found}'; expected a serializer version 1.x or 2.x, such as 2.0.0");
        ApiError::new(StatusCode::FORBIDDEN, ErrorCode::UnsupportedVersion, message)
    };
    ProtocolVersion::parse(vsn.as_deref()).ok_or_else(refused)
}

/// Returns the error for a request that is not a WebSocket upgrade.
pub fn upgrade_required() -> ApiError {
    let message = "this path serves a WebSocket; the request must be a WebSocket upgrade";
    ApiError::new(StatusCode::UPGRADE_REQUIRED, ErrorCode::UpgradeRequired, message)
        .with_header(header::UPGRADE, HeaderValue::from_static("websocket"))
}

fn parameter(request: &Request, name: &str) -> Option<String> {
    let query = request.uri().query()?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let value = value.replace('+', " ");
    percent_encoding::percent_decode_str(&value).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Returns the token among the subprotocols that the client offers.
fn protocol_token(request: &Request) -> Option<String> {
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let token = offered.find_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))?.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD.decode(token).or_else(|_| URL_SAFE_NO_PAD.decode(token)).ok()?;
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str, headers: &[(&'static str, &str)]) -> Request {
        let request = Request::builder().uri_str(format!("/realtime/v1/websocket?{query}"));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).finish()
    }

    #[test]
    fn the_credential_comes_from_the_first_part_of_the_request_that_has_a_credential() {
        let protocols = ("sec-websocket-protocol", "phoenix, base64url.bearer.phx.cHJvdG9jb2w");
        let all = [("x-api-key", "header"), ("authorization", "Bearer bearer"), protocols];
        let found = |query: &str, headers: &[(&'static str, &str)]| credential(&request(query, headers)).ok();
        assert_eq!(found("apikey=query", &all).as_deref(), Some("header"));
        assert_eq!(found("vsn=2.0.0&apikey=que%2Dry", &all[1..]).as_deref(), Some("que-ry"));
        assert_eq!(found("apikey=", &all[1..]).as_deref(), Some("bearer"));
        assert_eq!(found("", &all[2..]).as_deref(), Some("protocol"));
        assert_eq!(found("", &[]), None);
        assert_eq!(found(&format!("apikey={}", "x".repeat(MAX_CREDENTIAL + 1)), &[]), None);
    }

    #[test]
    fn the_parameter_vsn_selects_the_protocol_version() {
        assert!(matches!(version(&request("", &[])), Ok(ProtocolVersion::One)));
        assert!(matches!(version(&request("vsn=2.0.0", &[])), Ok(ProtocolVersion::Two)));
        let refused = version(&request("vsn=9.0.0", &[])).expect_err("an unknown version");
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}
