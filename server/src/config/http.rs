//! Settings of the HTTP server: its address and the limits on connections and requests.

use anyhow::ensure;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::network::Network;
use super::units::{DataSize, TimeSpan};

/// Settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub listen: String,
    pub public_url: String,
    pub trusted_proxies: Vec<Network>,
    pub body_limit: DataSize,
    pub rate_limit_per_minute: u32,
    pub address_limit_per_minute: u32,
    pub wrong_token_limit_per_minute: u32,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    /// The maximum number of open event streams of a workspace. The sockets of the workspace's agents are counted
    /// separately, and have the same limit.
    pub streams_per_workspace: usize,
    pub idle_timeout: TimeSpan,
    pub stop_delay: TimeSpan,
    pub stop_timeout: TimeSpan,
}

impl Http {
    /// Fails if the public URL is set but is not an HTTP or HTTPS URL. URLs in responses begin with the public URL.
    /// Clients could not use these URLs without a scheme.
    pub fn check_public_url(&self) -> anyhow::Result<()> {
        let url = &self.public_url;
        let is_web = |url: Url| matches!(url.scheme(), "https" | "http") && url.has_host();
        ensure!(
            url.is_empty() || Url::parse(url).is_ok_and(is_web),
            "[http] public_url: expected a URL such as https://foldwork.example.org, found {url}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_public_url_has_a_scheme_and_a_host() {
        let check = |url: &str| Http { public_url: url.into(), ..Config::default().http }.check_public_url();
        for url in ["", "https://foldwork.example.org", "http://10.0.0.5:8080/sub/"] {
            assert!(check(url).is_ok(), "{url}");
        }
        for url in ["foldwork.example.org", "localhost:8080", "ftp://example.org", "https://"] {
            assert!(check(url).is_err_and(|error| error.to_string().contains("[http] public_url")), "{url}");
        }
    }
}
