//! The base of URLs in responses: the configured URL, or the scheme and host of the client's request. A trusted proxy
//! may report this scheme and host.

use std::sync::Arc;

use poem::Request;

use super::client_address::ForwardedOrigin;
use crate::config::Config;

/// The server's public URL, available to handlers as request data.
#[derive(Debug, Clone)]
pub struct PublicUrl {
    set: Option<Arc<str>>,
    listen: Arc<str>,
}

impl PublicUrl {
    pub fn of(config: &Config) -> PublicUrl {
        let set = config.http.public_url.trim_end_matches('/');
        PublicUrl { set: (!set.is_empty()).then(|| set.into()), listen: config.http.listen.as_str().into() }
    }

    /// Returns the base of URLs for this client, without a trailing slash: the configured URL, or the scheme and host
    /// of the request. If the request has no valid host, the address of the server replaces the host.
    pub fn base(&self, request: &Request) -> String {
        if let Some(set) = &self.set {
            return set.to_string();
        }
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let forwarded = request.data::<ForwardedOrigin>();
        let reported = forwarded.and_then(|origin| origin.host.as_deref()).filter(|host| is_host(host));
        let host = reported.or_else(|| request.header("host").or(authority).filter(|host| is_host(host)));
        let address = || request.local_addr().as_socket_addr().map(ToString::to_string);
        let host = host.map(str::to_owned).or_else(address).unwrap_or_else(|| self.listen.to_string());
        let is_secure = forwarded.is_some_and(|origin| origin.scheme.as_deref() == Some("https"));
        let scheme = if is_secure { "https" } else { "http" };
        format!("{scheme}://{host}")
    }
}

/// Returns whether a text has 1 to 255 characters, and only characters that the host and port of a URL may have.
fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 255
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_url_comes_from_the_settings_or_the_request() {
        let request = |host: &str| Request::builder().uri_str("/api/v1/agents/connect").header("host", host).finish();
        let mut config = Config::default();
        let reached = PublicUrl::of(&config);
        config.http.public_url = "https://example.org/".into();
        assert_eq!(PublicUrl::of(&config).base(&request("h")), "https://example.org");
        assert_eq!(reached.base(&request("localhost:8080")), "http://localhost:8080");
        assert_eq!(reached.base(&request("[::1]:80")), "http://[::1]:80");
        assert!(!reached.base(&request("evil/\"path")).contains("evil"));
        // The edge reads the header only from a trusted proxy, so the header alone has no effect.
        let mut forwarded = request("inner:8080");
        forwarded.headers_mut().insert("x-forwarded-proto", poem::http::HeaderValue::from_static("https"));
        assert_eq!(reached.base(&forwarded), "http://inner:8080");
        let origin = |host: &str| ForwardedOrigin { scheme: Some("https".into()), host: Some(host.into()) };
        forwarded.set_data(origin("example.org"));
        assert_eq!(reached.base(&forwarded), "https://example.org");
        forwarded.set_data(origin("evil/path"));
        assert_eq!(reached.base(&forwarded), "https://inner:8080");
    }
}
