//! Settings of the dashboard.

use anyhow::{Context as _, ensure};
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Settings of the dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    pub enabled: bool,
    /// The name of the installation in the header and the title of the pages. If empty, the pages show no name.
    pub name: String,
    /// The color of the installation in the header and the icon of the pages, as `#rrggbb`. If empty, no color is
    /// shown.
    pub color: String,
    /// The identity provider with which the dashboard signs users in. If empty, the dashboard has no identity provider.
    pub oidc_issuer: String,
    pub oidc_client_id: String,
}

/// The maximum number of characters of an installation's name.
const MAX_NAME: usize = 60;

/// The identity provider with which the dashboard signs users in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub issuer: String,
    pub client_id: String,
    /// The scheme, host and port of the issuer. The dashboard may connect to this origin.
    pub origin: String,
}

impl Dashboard {
    /// Checks the name and the color, and returns both without surrounding white space.
    pub fn appearance(&self) -> anyhow::Result<(&str, &str)> {
        let (name, color) = (self.name.trim(), self.color.trim());
        let length = name.chars().count();
        ensure!(length <= MAX_NAME, "[dashboard] name: expected at most {MAX_NAME} characters, found {length}");
        let digits = color.strip_prefix('#').unwrap_or_default();
        let is_color = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        ensure!(color.is_empty() || is_color, "[dashboard] color: expected a color such as #b3261e, found {color}");
        Ok((name, color))
    }

    /// Returns the identity provider, if the settings name one. Fails if only one of `oidc_issuer` and `oidc_client_id`
    /// is set, or if the issuer is not an HTTP or HTTPS URL.
    pub fn sign_in(&self) -> anyhow::Result<Option<SignIn>> {
        let (issuer, client_id) = (self.oidc_issuer.trim(), self.oidc_client_id.trim());
        ensure!(
            issuer.is_empty() == client_id.is_empty(),
            "[dashboard] oidc_issuer and oidc_client_id must be set together or not at all"
        );
        if issuer.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(issuer).with_context(|| format!("[dashboard] oidc_issuer: {issuer} is not a URL"))?;
        ensure!(
            matches!(url.scheme(), "https" | "http") && url.has_host(),
            "[dashboard] oidc_issuer: expected an http or https URL, found {issuer}"
        );
        let origin = url.origin().ascii_serialization();
        Ok(Some(SignIn { issuer: issuer.to_owned(), client_id: client_id.to_owned(), origin }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn sign_in(issuer: &str, client: &str) -> Result<Option<String>, String> {
        let settings =
            Dashboard { oidc_issuer: issuer.into(), oidc_client_id: client.into(), ..Config::default().dashboard };
        settings.sign_in().map(|found| found.map(|found| found.origin)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_identity_provider_requires_a_url_and_a_client_id() {
        assert_eq!(sign_in("", ""), Ok(None));
        let origin = "https://id.example.com:8443".to_owned();
        assert_eq!(sign_in("https://id.example.com:8443/realms/one", "dashboard"), Ok(Some(origin)));
        assert!(sign_in("https://id.example.com", "").is_err_and(|error| error.contains("together")));
        assert!(sign_in("id.example.com", "dashboard").is_err_and(|error| error.contains("not a URL")));
        assert!(sign_in("file:///etc", "dashboard").is_err_and(|error| error.contains("https URL")));
    }

    #[test]
    fn a_long_name_or_an_invalid_color_is_rejected() {
        let appearance = |name: &str, color: &str| {
            let settings = Dashboard { name: name.into(), color: color.into(), ..Config::default().dashboard };
            settings.appearance().map(|(name, color)| format!("{name}|{color}")).map_err(|error| error.to_string())
        };
        assert_eq!(appearance("", ""), Ok("|".to_owned()));
        assert_eq!(appearance(" Staging ", "#B3261e"), Ok("Staging|#B3261e".to_owned()));
        assert!(appearance("", "red").is_err_and(|error| error.contains("#b3261e, found red")));
        assert!(appearance("", "#12345é").is_err());
        assert!(appearance(&"n".repeat(61), "").is_err_and(|error| error.contains("at most 60 characters, found 61")));
    }
}
