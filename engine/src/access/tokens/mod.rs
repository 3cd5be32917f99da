//! Tokens of identity providers: verifies them and returns the users they identify.
//!
//! A verified token is cached until it expires or its issuer's keys change, so that later requests cost only a hash.

mod claims;
mod issuer;
pub mod key_set;

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use claims::Claims;
use issuer::{Issuer, Refused};
use key_set::FetchKeys;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::settings::IssuerSettings;
use crate::error::{Error, Result};

/// The maximum length of a token, in bytes.
const MAX_LENGTH: usize = 16 << 10;
/// The maximum number of cached tokens.
const MAX_CACHED: usize = 20_000;

const INVALID: Error = Error::Unauthenticated("the bearer token is not valid");

/// The trusted issuers, and the cache of verified tokens.
#[derive(Default)]
pub struct Tokens {
    issuers: Vec<Issuer>,
    verified: Mutex<HashMap<[u8; 32], Arc<Identity>>>,
}

/// The user that a valid token identifies.
#[derive(Debug)]
pub struct Identity {
    /// The id of the user, derived from issuer and subject, so that the id is the same on every server.
    pub user_id: Arc<str>,
    pub email: Option<Arc<str>>,
    pub email_verified: bool,
    pub name: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
    /// The expiry time of the token, in milliseconds since the epoch.
    pub expires_at: i64,
    valid_from: i64,
    issuer: usize,
    generation: u64,
}

impl Tokens {
    /// Creates a verifier for tokens of these issuers. Returns a message if the settings of an issuer are invalid.
    pub fn new(issuers: &[IssuerSettings], fetch: &Arc<dyn FetchKeys>) -> Result<Tokens, String> {
        let issuers = issuers.iter().map(|issuer| Issuer::new(issuer, fetch)).collect::<Result<_, _>>()?;
        Ok(Tokens { issuers, verified: Mutex::default() })
    }

    /// Verifies a token and returns its user.
    pub async fn verify(&self, token: &str, now: i64) -> Result<Arc<Identity>> {
        if self.issuers.is_empty() || token.len() > MAX_LENGTH {
            return Err(INVALID);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let known = self.verified().get(&hash).cloned();
        if let Some(identity) = known.filter(|identity| self.is_current(identity, now)) {
            return identity.at(now);
        }
        let identity = Arc::new(self.check(token, now).await?);
        let current = identity.at(now)?;
        let mut verified = self.verified();
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
    fn is_current(&self, identity: &Identity, now: i64) -> bool {
        self.issuers.get(identity.issuer).is_some_and(|issuer| issuer.generation(now) == identity.generation)
    }

    async fn check(&self, token: &str, now: i64) -> Result<Identity> {
        let named = named_issuer(token).ok_or(INVALID)?;
        let mut is_silent = false;
        for (place, issuer) in self.issuers.iter().enumerate().filter(|(_, issuer)| issuer.name == named) {
            // The generation is read before the verification: if the keys change meanwhile, the token is verified
            // again.
            let generation = issuer.generation(now);
            match issuer.verify(token, now).await {
                Ok(claims) if !claims.is_user() => {
                    return Err(Error::Unauthenticated("the bearer token does not identify a user"));
                }
                Ok(claims) => return Ok(Identity::new(&claims, place, issuer, generation)),
                Err(Refused::Invalid) => {}
                Err(Refused::Silent) => is_silent = true,
            }
        }
        Err(if is_silent { Error::IssuerSilent } else { INVALID })
    }

    fn verified(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Identity>>> {
        self.verified.lock()
    }
}

impl Identity {
    fn new(claims: &Claims, place: usize, issuer: &Issuer, generation: u64) -> Identity {
        let name = format!("{}\n{}", issuer.name, claims.sub);
        let email = claims.email();
        // `trust_email` replaces a missing claim, but not a negative one.
        let is_verified = claims.email_verified().unwrap_or(issuer.trusts_email);
        let validity = claims.validity();
        Identity {
            user_id: Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).to_string().into(),
            email_verified: email.is_some() && is_verified,
            email: email.map(Arc::from),
            name: claims.name().map(Arc::from),
            session: claims.session().map(Arc::from),
            expires_at: validity.end,
            valid_from: validity.start,
            issuer: place,
            generation,
        }
    }

    /// Returns the identity if its token is valid at this time.
    fn at(self: &Arc<Self>, now: i64) -> Result<Arc<Identity>> {
        if self.expires_at <= now {
            return Err(Error::Unauthenticated("the bearer token has expired"));
        }
        if now < self.valid_from {
            return Err(Error::Unauthenticated("the bearer token is not valid yet"));
        }
        Ok(self.clone())
    }

    /// Returns the address if the issuer has verified it.
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }
}

/// Returns the issuer that a token names. The name is not verified yet, and only selects the keys to verify the token
/// with.
fn named_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        iss: String,
    }
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice::<Named>(&payload).ok().map(|named| named.iss)
}
