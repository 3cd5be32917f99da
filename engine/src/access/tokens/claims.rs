//! The claims of a token about its user. Only claims that the issuer alone controls are used.

use serde::Deserialize;
use serde_json::Value;

use crate::model::address;

/// The claims of a token that this module reads. An address, a name, a role or a session of the wrong type is ignored.
#[derive(Debug, Deserialize)]
pub struct TokenClaims {
    pub sub: String,
    exp: f64,
    nbf: Option<f64>,
    email: Option<Value>,
    email_verified: Option<Value>,
    name: Option<Value>,
    role: Option<Value>,
    is_anonymous: Option<Value>,
    session_id: Option<Value>,
    sid: Option<Value>,
}

/// The tolerated difference between clocks, in milliseconds.
const LEEWAY_MS: i64 = 60_000;
/// The maximum length of a claim's text, in bytes.
const MAX_LENGTH: usize = 320;

impl TokenClaims {
    /// Returns whether the token identifies a user, as opposed to an anonymous visitor or a service.
    pub fn is_user(&self) -> bool {
        let is_anonymous = !matches!(self.is_anonymous, None | Some(Value::Bool(false)));
        let is_other = matches!(text(&self.role), Some("anon" | "service_role"));
        !self.sub.is_empty() && self.sub.len() <= MAX_LENGTH && !is_anonymous && !is_other
    }

    /// Returns the time range in which the token is valid, including the tolerance, in milliseconds since the epoch.
    pub fn validity(&self) -> std::ops::Range<i64> {
        let ms = |seconds: f64| (seconds * 1_000.0) as i64;
        let begin = self.nbf.map_or(i64::MIN, |nbf| ms(nbf).saturating_sub(LEEWAY_MS));
        begin..ms(self.exp).saturating_add(LEEWAY_MS)
    }

    /// Returns the address in its normal form, or `None` if the token has no usable address.
    pub fn email(&self) -> Option<String> {
        Some(address::normal(text(&self.email)?)).filter(|email| email.contains('@'))
    }

    /// Returns whether the issuer has verified the address, or `None` if the claim `email_verified` is missing or null.
    /// Every value other than null, `true` and the text `true` counts as not verified.
    pub fn email_verified(&self) -> Option<bool> {
        match &self.email_verified {
            None => None,
            Some(Value::Bool(verified)) => Some(*verified),
            Some(Value::String(verified)) => Some(verified == "true"),
            Some(_) => Some(false),
        }
    }

    pub fn name(&self) -> Option<&str> {
        text(&self.name)
    }

    pub fn session(&self) -> Option<&str> {
        text(&self.session_id).or_else(|| text(&self.sid))
    }
}

fn text(claim: &Option<Value>) -> Option<&str> {
    claim.as_ref()?.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_LENGTH)
}
