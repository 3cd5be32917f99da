//! Tokens of identity providers: which are valid, and whom they stand for.
//!
//! A token that was verified is remembered until it ends or its issuer's keys change, so that the next request costs a hash.

mod claims;
mod issuer;
pub mod key_set;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use claims::Claims;
use issuer::{Issuer, Refused};
use key_set::FetchKeys;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::settings::IssuerSettings;
use crate::error::{Error, Result};

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 16 << 10;
/// Tokens that are remembered, at most.
const MOST: usize = 20_000;

const INVALID: Error = Error::Unauthenticated("the bearer token is not valid");

/// The issuers whose tokens are taken, and the tokens that were verified.
#[derive(Default)]
pub struct Tokens {
    issuers: Vec<Issuer>,
    verified: Mutex<HashMap<[u8; 32], Arc<Identity>>>,
}

/// Whom a valid token stands for.
#[derive(Debug)]
pub struct Identity {
    /// Made of issuer and subject, so that it is the same on every server.
    pub user_id: Arc<str>,
    pub email: Option<Arc<str>>,
    pub email_verified: bool,
    pub name: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
    /// When the token ends; milliseconds since the epoch.
    pub expires_at: i64,
    valid_from: i64,
    issuer: usize,
    generation: u64,
}

impl Tokens {
    /// Takes the tokens of these issuers, or says what is wrong with one of them.
    pub fn new(issuers: &[IssuerSettings], fetch: &Arc<dyn FetchKeys>) -> Result<Tokens, String> {
        let issuers = issuers.iter().map(|issuer| Issuer::new(issuer, fetch)).collect::<Result<_, _>>()?;
        Ok(Tokens { issuers, verified: Mutex::default() })
    }

    /// Whom a token stands for.
    pub async fn verify(&self, token: &str, now: i64) -> Result<Arc<Identity>> {
        if self.issuers.is_empty() || token.len() > LONGEST {
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
        if verified.len() >= MOST {
            verified.retain(|_, identity| identity.expires_at > now);
        }
        if verified.len() >= MOST {
            verified.clear();
        }
        verified.insert(hash, identity);
        Ok(current)
    }

    /// Whether the keys are those that the token was verified with.
    fn is_current(&self, identity: &Identity, now: i64) -> bool {
        self.issuers.get(identity.issuer).is_some_and(|issuer| issuer.generation(now) == identity.generation)
    }

    async fn check(&self, token: &str, now: i64) -> Result<Identity> {
        let named = named_issuer(token).ok_or(INVALID)?;
        let mut is_silent = false;
        for (place, issuer) in self.issuers.iter().enumerate().filter(|(_, issuer)| issuer.name == named) {
            // Keys that change meanwhile have it verified again.
            let generation = issuer.generation(now);
            match issuer.verify(token, now).await {
                Ok(claims) if !claims.is_user() => {
                    return Err(Error::Unauthenticated("the bearer token stands for no user"));
                }
                Ok(claims) => return Ok(Identity::new(&claims, place, issuer, generation)),
                Err(Refused::Invalid) => {}
                Err(Refused::Silent) => is_silent = true,
            }
        }
        Err(if is_silent { Error::IssuerSilent } else { INVALID })
    }

    fn verified(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Identity>>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Identity {
    fn new(claims: &Claims, place: usize, issuer: &Issuer, generation: u64) -> Identity {
        let name = format!("{}\n{}", issuer.name, claims.sub);
        let email = claims.email();
        // `trust_email` stands in for a claim that is missing, never for one that says no.
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

    /// The identity, if the token is valid at a time.
    fn at(self: &Arc<Self>, now: i64) -> Result<Arc<Identity>> {
        if self.expires_at <= now {
            return Err(Error::Unauthenticated("the bearer token has expired"));
        }
        if now < self.valid_from {
            return Err(Error::Unauthenticated("the bearer token is not valid yet"));
        }
        Ok(self.clone())
    }

    /// The address, where the issuer vouches for it.
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }
}

/// The issuer that a token names. It is checked with the signature; here it only tells whom to ask.
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
