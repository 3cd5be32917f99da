//! Verifies tokens of identity providers, and returns the users that the tokens identify.
//!
//! Verified tokens are cached, so a later request with the same token usually only computes a hash. A token is verified
//! again if its issuer's keys have changed, or if the cache was cleared because it was full.

mod claims;
mod denial;
mod issuer;
pub mod key_set;

use std::collections::HashMap;
use std::sync::Arc;

use claims::TokenClaims;
use denial::{Denials, TokenDenial, TokenRefusal, named_issuer};
use issuer::Issuer;
use key_set::FetchKeys;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::settings::IssuerSettings;
use crate::error::{Error, Result};
use crate::model::access::UserRecord;

/// The maximum length of a token, in bytes.
const MAX_LENGTH: usize = 16 << 10;
/// The maximum number of cached tokens.
const MAX_CACHED: usize = 20_000;

/// Returns the denial of a token that is not valid, with the reason for the log.
fn invalid(reason: &'static str) -> Box<TokenDenial> {
    TokenDenial::new(Error::Unauthenticated("the bearer token is not valid"), reason)
}

/// The trusted issuers, and the cache of verified tokens.
#[derive(Default)]
pub struct Tokens {
    issuers: Vec<Issuer>,
    verified: Mutex<HashMap<[u8; 32], Arc<TokenIdentity>>>,
    denials: Denials,
}

/// The user that a valid token identifies.
#[derive(Debug)]
pub struct TokenIdentity {
    /// The user's record, always without a plan. The user's id is derived from issuer and subject, so that the id is
    /// the same on every server.
    pub user: UserRecord,
    pub session: Option<Arc<str>>,
    /// The expiry time of the token plus the tolerance for clock skew, in milliseconds since the epoch.
    pub expires_at: i64,
    valid_from: i64,
    issuer: usize,
    generation: u64,
}

impl Tokens {
    /// Creates a verifier for tokens of these issuers. Returns an error message if the settings of an issuer are
    /// invalid.
    pub fn new(issuers: &[IssuerSettings], fetch: &Arc<dyn FetchKeys>) -> Result<Tokens, String> {
        let issuers = issuers.iter().map(|issuer| Issuer::new(issuer, fetch)).collect::<Result<_, _>>()?;
        Ok(Tokens { issuers, ..Tokens::default() })
    }

    /// Verifies a token and returns its user. Logs the reason if the token is denied.
    pub async fn verify(&self, token: &str, now: i64) -> Result<Arc<TokenIdentity>> {
        self.try_verify(token, now).await.map_err(|denied| {
            self.denials.log(token, &denied, now);
            denied.error
        })
    }

    async fn try_verify(&self, token: &str, now: i64) -> Result<Arc<TokenIdentity>, Box<TokenDenial>> {
        if self.issuers.is_empty() {
            return Err(invalid("the token is not a key, and no token issuer is configured"));
        }
        if token.len() > MAX_LENGTH {
            return Err(invalid("the token is longer than 16 KiB"));
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let known = self.verified.lock().get(&hash).cloned();
        if let Some(identity) = known.filter(|identity| self.is_current(identity, now)) {
            return identity.at(now);
        }
        let identity = Arc::new(self.check(token, now).await?);
        let current = identity.at(now)?;
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_CACHED {
            verified.retain(|_, identity| identity.expires_at > now);
        }
        if verified.len() >= MAX_CACHED {
            verified.clear();
        }
        verified.insert(hash, identity);
        Ok(current)
    }

    /// Returns whether the issuer's keys are the same as when the token was verified.
    fn is_current(&self, identity: &TokenIdentity, now: i64) -> bool {
        self.issuers.get(identity.issuer).is_some_and(|issuer| issuer.generation(now) == identity.generation)
    }

    async fn check(&self, token: &str, now: i64) -> Result<TokenIdentity, Box<TokenDenial>> {
        let named =
            named_issuer(token).ok_or_else(|| invalid("the token is neither a key nor a JWT with the claim `iss`"))?;
        let mut denied = invalid("the claim `iss` names no configured issuer");
        for (place, issuer) in self.issuers.iter().enumerate().filter(|(_, issuer)| issuer.name == named) {
            // The generation is read before the verification: if the keys change during the verification, the token is
            // verified again.
            let generation = issuer.generation(now);
            match issuer.verify(token, now).await {
                Ok(claims) if !claims.is_user() => {
                    let error = Error::Unauthenticated("the bearer token does not identify a user");
                    return Err(TokenDenial::new(error, "the token does not identify a user"));
                }
                Ok(claims) => return Ok(TokenIdentity::new(&claims, place, issuer, generation)),
                Err(TokenRefusal::Unavailable) => {
                    let error = Error::IssuerUnavailable(issuer.name.clone());
                    denied = TokenDenial::new(error, "the keys of the issuer cannot be fetched");
                }
                // Another issuer of the same name may accept the token when its keys can be fetched.
                Err(TokenRefusal::Invalid(_)) if matches!(denied.error, Error::IssuerUnavailable(_)) => {}
                Err(TokenRefusal::Invalid(reason)) => denied = invalid(reason),
            }
        }
        Err(denied)
    }
}

impl TokenIdentity {
    fn new(claims: &TokenClaims, place: usize, issuer: &Issuer, generation: u64) -> TokenIdentity {
        let name = format!("{}\n{}", issuer.name, claims.sub);
        let email = claims.email();
        // `trust_email` replaces a missing claim, but not a negative claim.
        let is_verified = claims.email_verified().unwrap_or(issuer.trusts_email);
        let validity = claims.validity();
        let user = UserRecord {
            id: Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).to_string().into(),
            email_verified: email.is_some() && is_verified,
            email: email.map(Arc::from),
            name: claims.name().map(Arc::from),
            plan: None,
        };
        TokenIdentity {
            user,
            session: claims.session().map(Arc::from),
            expires_at: validity.end,
            valid_from: validity.start,
            issuer: place,
            generation,
        }
    }

    /// Returns the identity if its token is valid at this time.
    fn at(self: &Arc<Self>, now: i64) -> Result<Arc<TokenIdentity>, Box<TokenDenial>> {
        if self.expires_at <= now {
            let error = Error::Unauthenticated("the bearer token has expired");
            return Err(TokenDenial::new(error, "the token has expired"));
        }
        if now < self.valid_from {
            let error = Error::Unauthenticated("the bearer token is not valid yet");
            return Err(TokenDenial::new(error, "the token is not valid yet"));
        }
        Ok(self.clone())
    }
}
