//! Log messages about denied tokens, limited in number. A message never contains the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::error::Error;
use crate::model::excerpt::excerpt_of;

/// The maximum number of messages in a period of [`PERIOD_MS`]. Clients can send any number of tokens.
const MAX_MESSAGES: u32 = 10;
const PERIOD_MS: i64 = 60_000;

/// A denied token: the error for the client, and the reason for the operator.
#[derive(Debug)]
pub struct TokenDenial {
    pub error: Error,
    pub reason: &'static str,
}

impl TokenDenial {
    /// Creates a denial. The denial is boxed, because it is much larger than the result of a successful verification.
    pub fn new(error: Error, reason: &'static str) -> Box<TokenDenial> {
        Box::new(TokenDenial { error, reason })
    }
}

/// The reason why a token was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The token is not valid. The reason is written only to the log.
    Invalid(&'static str),
    /// The token could not be checked, because the issuer's keys have never been fetched successfully.
    Unavailable,
}

/// A log of denied tokens, with a limited number of messages per period.
#[derive(Default)]
pub struct Denials {
    period: Mutex<Period>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Period {
    began_at: i64,
    messages: u32,
    omitted: u64,
}

impl Denials {
    /// Writes a message about a denied token, unless the current period already has [`MAX_MESSAGES`] messages.
    pub fn log(&self, token: &str, denied: &TokenDenial, now: i64) {
        let Some(omitted) = self.admit(now) else { return };
        // The issuer and the key id that the token names are not verified yet, and are shortened.
        let issuer = named_issuer(token).map(excerpt_of);
        let key_id = jsonwebtoken::decode_header(token).ok().and_then(|header| header.kid).map(excerpt_of);
        // Debug formatting escapes the issuer and the key id, because a client may have put any text into its token.
        tracing::warn!(?issuer, ?key_id, reason = denied.reason, omitted, "denied a token");
    }

    /// Decides whether to write a message. If so, returns the number of messages that were omitted since the last
    /// written message. Returns `None` if the message must be omitted.
    fn admit(&self, now: i64) -> Option<u64> {
        let mut period = self.period.lock();
        // The clock may have been set back.
        if !(period.began_at..period.began_at.saturating_add(PERIOD_MS)).contains(&now) {
            *period = Period { began_at: now, messages: 0, omitted: period.omitted };
        }
        if period.messages >= MAX_MESSAGES {
            period.omitted += 1;
            return None;
        }
        period.messages += 1;
        Some(std::mem::take(&mut period.omitted))
    }
}

/// Returns the issuer that a token names. The name is not verified yet. Use the name only to select the keys that
/// verify the token.
pub fn named_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct TokenPayload {
        iss: String,
    }
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice::<TokenPayload>(&payload).ok().map(|payload| payload.iss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_over_the_limit_are_omitted_but_counted() {
        let denials = Denials::default();
        let admitted = (0..100).filter_map(|_| denials.admit(PERIOD_MS)).count();
        assert_eq!(admitted, MAX_MESSAGES as usize);
        assert_eq!(denials.admit(2 * PERIOD_MS - 1), None);
        assert_eq!(denials.admit(2 * PERIOD_MS), Some(100 - u64::from(MAX_MESSAGES) + 1));
        assert_eq!(denials.admit(2 * PERIOD_MS), Some(0));
        // If the clock is set back, a new period begins, so messages are written again immediately.
        assert_eq!(denials.admit(0), Some(0));
    }
}
