//! The HTTP client of the commands: the server's address, the token, and the errors of a call.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::retry::CallRetries;

const TOKEN_VARIABLE: &str = "FOLDWORK_TOKEN";
/// The maximum number of characters of a response that an error message quotes, if the response has no field `error`
/// with a text.
const MAX_ERROR_CHARS: usize = 200;

/// An HTTP client with the address of a server and a bearer token.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Token,
    pub(super) retry_policy: CallRetries,
}

/// The server that a command connects to.
#[derive(clap::Args, Debug)]
pub struct ServerConnection {
    /// The address of the server. The bearer token is read from FOLDWORK_TOKEN.
    #[arg(
        long,
        global = true,
        env = "FOLDWORK_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL",
        hide_env_values = true
    )]
    pub server: String,
}

// A subcommand, and the server that the command connects to. `clap` would show a doc comment as the description of each
// command.
#[derive(clap::Args, Debug)]
pub struct ServerArguments<A: clap::Subcommand> {
    #[command(subcommand)]
    pub action: A,
    #[command(flatten)]
    pub connection: ServerConnection,
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server responded with an error status.
    #[error("{0}")]
    Refused(Box<ErrorReply>),
    /// The server could not be reached, or the response is incomplete.
    #[error("the server cannot be reached, or its response is incomplete")]
    Unreachable(#[source] reqwest::Error),
    /// The response has an unexpected format.
    #[error("the server's response has an unexpected format")]
    Unreadable(#[source] serde_json::Error),
}

/// An error response.
#[derive(Debug)]
pub struct ErrorReply {
    pub status: StatusCode,
    pub message: String,
    pub body: Value,
    pub retry_after: Option<Duration>,
}

/// A successful response.
#[derive(Debug)]
pub struct Success {
    pub replayed: bool,
    pub body: String,
}

#[derive(Clone)]
struct Token(String);

impl ServerConnection {
    /// Creates a client for this server with the token from the environment.
    pub fn client(&self) -> anyhow::Result<Client> {
        let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
        if token.trim().is_empty() {
            bail!("no access token: set {TOKEN_VARIABLE} to an API key, as in `export {TOKEN_VARIABLE}=sk_...`");
        }
        Client::new(&self.server, token.trim())
    }
}

impl Client {
    /// Creates a client for a server with a bearer token.
    pub fn new(server: &str, token: &str) -> anyhow::Result<Self> {
        let base = parse_base(server)?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .context("the access token contains characters that are not allowed in a header")?;
        bearer.set_sensitive(true);
        let mut builder = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
            .user_agent(concat!("foldwork/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(120));
        if is_loopback(&base) {
            // Ignores proxies from the environment, because a proxy cannot reach this machine's loopback addresses.
            builder = builder.no_proxy();
        }
        let http = builder.build().context("the HTTP client cannot be created")?;
        Ok(Self { http, base, token: Token(token.to_owned()), retry_policy: CallRetries::default() })
    }

    /// Returns the same client with another retry policy.
    #[cfg(test)]
    pub fn with_retry_policy(self, retry_policy: CallRetries) -> Self {
        Self { retry_policy, ..self }
    }

    /// Returns the server's address without a trailing slash.
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns the bearer token.
    pub fn token(&self) -> &str {
        &self.token.0
    }

    /// Creates a request to a path below the API's root. Each segment is percent-encoded.
    pub(super) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        self.http.request(method, url)
    }

    /// Sends a request once and reads the whole response.
    pub(super) async fn call(&self, request: RequestBuilder) -> Result<Success, CallError> {
        let response = request.send().await.map_err(CallError::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status, response).await);
        }
        let replayed = response.headers().get("idempotency-replayed").is_some_and(|value| value == "true");
        let body = response.text().await.map_err(CallError::Unreachable)?;
        Ok(Success { replayed, body })
    }

    /// Follows a link to the bytes of a file. The link is the credential, so the token is not sent.
    pub(super) async fn download(&self, url: &str) -> Result<Response, CallError> {
        let builder = reqwest::Client::builder().connect_timeout(Duration::from_secs(10));
        let is_here = Url::parse(url).is_ok_and(|url| is_loopback(&url));
        let http = if is_here { builder.no_proxy() } else { builder }.build().map_err(CallError::Unreachable)?;
        let response = http.get(url).send().await.map_err(CallError::Unreachable)?;
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(refusal(status, response).await) }
    }
}

impl Success {
    /// Parses the response's JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        foldwork_engine::model::json::read(self.body.as_bytes()).map_err(CallError::Unreadable)
    }
}

impl CallError {
    /// Returns whether the error is temporary, so that the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.status.is_server_error()
                    || refusal.status == StatusCode::TOO_MANY_REQUESTS
                    || refusal.status == StatusCode::REQUEST_TIMEOUT
            }
            Self::Unreachable(error) => !error.is_builder(),
            Self::Unreadable(_) => false,
        }
    }

    /// Returns whether the error is a response with this status.
    pub fn has_status(&self, status: StatusCode) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == status)
    }
}

/// Returns the result of a call, or `None` if the server has refused the call with this status.
pub fn unless_refused<T>(result: Result<T, CallError>, status: StatusCode) -> Result<Option<T>, CallError> {
    match result {
        Err(error) if error.has_status(status) => Ok(None),
        result => result.map(Some),
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (HTTP {}", self.message, self.status.as_u16())?;
        match self.body.get("code") {
            Some(Value::String(code)) => write!(f, " {code}")?,
            Some(Value::Number(code)) => write!(f, ", code {code}")?,
            _ => {}
        }
        if let Some(id) = self.body.get("request_id").and_then(Value::as_str) {
            write!(f, ", request {id}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

fn parse_base(server: &str) -> anyhow::Result<Url> {
    let base = Url::parse(server)
        .with_context(|| format!("`{server}` is not a server address such as http://127.0.0.1:8080"))?;
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
        bail!("`{server}` is not a server address: it must begin with http:// or https://");
    }
    Ok(base)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn refusal(status: StatusCode, response: Response) -> CallError {
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(parse_wait);
    let text = response.text().await.unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let message = match body.get("error").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None if text.trim().is_empty() => "the server gave no reason".to_owned(),
        None => text.trim().chars().take(MAX_ERROR_CHARS).collect(),
    };
    CallError::Refused(Box::new(ErrorReply { status, message, body, retry_after }))
}

/// Parses a `Retry-After` value, which is a number of seconds or a date.
fn parse_wait(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_keeps_its_path_and_path_segments_are_escaped() {
        let client = Client::new("https://example.org/sub/", "sk_1").expect("valid address");
        let request = client.request(Method::DELETE, &["keys", "a/b c"]).build().expect("valid request");
        assert_eq!(request.url().as_str(), "https://example.org/sub/api/v1/keys/a%2Fb%20c");
        assert_eq!(client.server(), "https://example.org/sub");
    }

    #[test]
    fn an_address_without_http_or_https_is_rejected() {
        for server in ["localhost:8080", "ftp://example.org", "8080", ""] {
            assert!(Client::new(server, "sk_1").is_err(), "{server}");
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (server, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(server).expect("valid address")), expected, "{server}");
        }
    }

    #[test]
    fn the_text_of_a_rejection_has_the_message_the_error_code_and_the_request_id() {
        let body = serde_json::json!({"error": "no such project", "code": "invalid", "request_id": "r-1"});
        let status = StatusCode::BAD_REQUEST;
        let refusal = ErrorReply { status, message: "no such project".into(), body, retry_after: None };
        assert_eq!(refusal.to_string(), "no such project (HTTP 400 invalid, request r-1)");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(parse_wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse_wait("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(parse_wait("soon"), None);
    }

    #[test]
    fn debug_output_hides_the_token() {
        let client = Client::new("http://127.0.0.1:1", "sk_secret").expect("valid address");
        assert!(!format!("{client:?}").contains("sk_secret"));
    }
}
