//! What a token says of its user. Only what the issuer alone can write counts.

use serde::Deserialize;
use serde_json::Value;

use crate::model::address;

/// The claims that are looked at. Those of no use are passed over, whatever their type is.
#[derive(Debug, Deserialize)]
pub struct Claims {
    pub sub: String,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    email: Value,
    #[serde(default)]
    email_verified: Value,
    #[serde(default)]
    name: Value,
    #[serde(default)]
    role: Value,
    #[serde(default)]
    is_anonymous: Value,
    #[serde(default)]
    session_id: Value,
    #[serde(default)]
    sid: Value,
}

/// How far clocks may be apart, in milliseconds.
const LEEWAY_MS: i64 = 60_000;
/// The longest text of a claim that is taken, in bytes.
const LONGEST: usize = 320;

impl Claims {
    /// Whether the token stands for a user, and not for nobody or for a service.
    pub fn is_user(&self) -> bool {
        let is_anonymous = !matches!(self.is_anonymous, Value::Null | Value::Bool(false));
        let is_other = matches!(self.role.as_str(), Some("anon" | "service_role"));
        !self.sub.is_empty() && self.sub.len() <= LONGEST && !is_anonymous && !is_other
    }

    /// From when to when it is valid, with the leeway; milliseconds since the epoch.
    pub fn validity(&self) -> std::ops::Range<i64> {
        let ms = |seconds: f64| (seconds * 1_000.0) as i64;
        let begin = self.nbf.map_or(i64::MIN, |nbf| ms(nbf).saturating_sub(LEEWAY_MS));
        begin..ms(self.exp).saturating_add(LEEWAY_MS)
    }

    /// The address in its normal form.
    pub fn email(&self) -> Option<String> {
        Some(address::normal(text(&self.email)?)).filter(|email| email.contains('@'))
    }

    /// Whether the issuer vouches for the address; `None` where the token has no such claim. A claim that is neither a
    /// boolean nor one of the texts `true` and `false` vouches for nothing.
    pub fn email_verified(&self) -> Option<bool> {
        match &self.email_verified {
            Value::Null => None,
            Value::Bool(verified) => Some(*verified),
            Value::String(verified) => Some(verified == "true"),
            _ => Some(false),
        }
    }

    pub fn name(&self) -> Option<&str> {
        text(&self.name)
    }

    pub fn session(&self) -> Option<&str> {
        text(&self.session_id).or_else(|| text(&self.sid))
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty() && text.len() <= LONGEST)
}
