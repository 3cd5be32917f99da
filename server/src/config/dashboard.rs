//! Settings of the dashboard.

use anyhow::{Context as _, ensure};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::access::Auth;

/// Settings of the dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    pub enabled: bool,
    /// The name of the installation in the header and the title of the pages. If empty, the pages show `Foldwork`.
    pub name: String,
    /// The color of the installation in the header and the icon of the pages, as `#rrggbb`. If empty, the header has no
    /// color, and the icon has its usual color.
    pub color: String,
    /// The id under which the dashboard is registered at the first identity provider of `[auth]`. If empty, the
    /// dashboard has no identity provider.
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

    /// Returns the identity provider with which the dashboard is registered, or `None` if `oidc_client_id` is empty. If
    /// `oidc_client_id` is set, fails if `[auth]` has no issuer, or if the first issuer is not an HTTP or HTTPS URL.
    pub fn sign_in(&self, auth: &Auth) -> anyhow::Result<Option<SignIn>> {
        let client_id = self.oidc_client_id.trim();
        if client_id.is_empty() {
            return Ok(None);
        }
        let first =
            auth.issuers.first().context("[dashboard] oidc_client_id requires an issuer in [[auth.issuers]]")?;
        let issuer = first.issuer.trim();
        let requires = "[dashboard] oidc_client_id requires that the first issuer in [[auth.issuers]] is";
        let url = Url::parse(issuer).with_context(|| format!("{requires} a URL, found {issuer}"))?;
        ensure!(
            matches!(url.scheme(), "https" | "http") && url.has_host(),
            "{requires} an http or https URL, found {issuer}"
        );
        let origin = url.origin().ascii_serialization();
        Ok(Some(SignIn { issuer: issuer.to_owned(), client_id: client_id.to_owned(), origin }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Issuer};

    fn sign_in(issuers: &[&str], client: &str) -> Result<Option<String>, String> {
        let Config { auth, dashboard, .. } = Config::default();
        let issuer = |url: &&str| Issuer { issuer: (*url).to_owned(), ..Issuer::default() };
        let auth = Auth { issuers: issuers.iter().map(issuer).collect(), ..auth };
        let settings = Dashboard { oidc_client_id: client.into(), ..dashboard };
        settings.sign_in(&auth).map(|found| found.map(|found| found.origin)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_issuer_is_the_identity_provider_of_the_dashboard() {
        let issuers = ["https://id.example.com:8443/realms/one", "https://two.example.com"];
        assert_eq!(sign_in(&[], ""), Ok(None));
        assert_eq!(sign_in(&issuers, ""), Ok(None));
        assert_eq!(sign_in(&issuers, "dashboard"), Ok(Some("https://id.example.com:8443".to_owned())));
        assert!(sign_in(&[], "dashboard").is_err_and(|error| error.contains("requires an issuer")));
        assert!(sign_in(&["id.example.com"], "dashboard").is_err_and(|error| error.contains("is a URL, found id.")));
        assert!(sign_in(&["file:///etc"], "dashboard").is_err_and(|error| error.contains("https URL")));
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
