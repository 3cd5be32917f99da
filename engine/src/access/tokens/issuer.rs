//! An issuer of tokens: which signatures and claims of its tokens count.

use std::sync::Arc;

use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, TokenData, Validation, decode};

use super::claims::Claims;
use super::key_set::{FetchKeys, KeySet, Missing};
use crate::access::settings::{IssuerSettings, Trust};

/// The shortest secret that is taken, in bytes: as long as what SHA-256 gives.
const SHORTEST_SECRET: usize = 32;
const REQUIRED: [&str; 4] = ["exp", "iss", "aud", "sub"];

/// An issuer, ready to check tokens.
pub struct Issuer {
    pub name: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    verifier: Verifier,
    pub trusts_email: bool,
}

enum Verifier {
    KeySet(Arc<KeySet>),
    Secret(DecodingKey),
}

/// Why a token of an issuer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Invalid,
    Silent,
}

impl Issuer {
    /// An issuer as it is set, or what is wrong with that.
    pub fn new(settings: &IssuerSettings, fetch: &Arc<dyn FetchKeys>) -> Result<Issuer, String> {
        let IssuerSettings { issuer, audience, trust, algorithms, trusts_email } = settings;
        if issuer.is_empty() || audience.is_empty() {
            return Err("an issuer of tokens needs `issuer` and `audience`".into());
        }
        let parse =
            |name: &String| name.parse::<Algorithm>().map_err(|_| format!("{issuer}: unknown algorithm {name}"));
        let algorithms: Vec<Algorithm> = algorithms.iter().map(parse).collect::<Result<_, _>>()?;
        let Some(family) = algorithms.first().map(|first| first.family()) else {
            return Err(format!("{issuer}: no algorithm is named"));
        };
        if algorithms.iter().any(|algorithm| algorithm.family() != family) {
            return Err(format!("{issuer}: its algorithms are not of one family"));
        }
        let verifier = match trust {
            Trust::Secret(_) if family != AlgorithmFamily::Hmac => {
                return Err(format!("{issuer}: a secret is for HS256 and its like alone"));
            }
            Trust::Secret(secret) if secret.len() < SHORTEST_SECRET => {
                return Err(format!("{issuer}: its secret is shorter than {SHORTEST_SECRET} bytes"));
            }
            Trust::Secret(secret) => Verifier::Secret(DecodingKey::from_secret(secret)),
            Trust::KeySet { .. } if family == AlgorithmFamily::Hmac => {
                return Err(format!(
                    "{issuer}: HS256 and its like need a secret of the environment, and no keys under a URL"
                ));
            }
            Trust::KeySet { url } => Verifier::KeySet(KeySet::new(url.clone(), fetch.clone())),
        };
        let (name, audience, trusts_email) = (issuer.clone(), audience.clone(), *trusts_email);
        Ok(Issuer { name, audience, algorithms, verifier, trusts_email })
    }

    /// The claims of a token that the issuer has signed, whenever that is valid.
    pub async fn verify(&self, token: &str, now: i64) -> Result<Claims, Refused> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| Refused::Invalid)?;
        // What a token says must be understood is understood by nobody here.
        if header.crit.is_some() || !self.algorithms.contains(&header.alg) {
            return Err(Refused::Invalid);
        }
        let mut rules = Validation::new(header.alg);
        rules.set_issuer(&[&self.name]);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&REQUIRED);
        // Times are compared with the engine's clock.
        (rules.validate_exp, rules.validate_nbf) = (false, false);
        let key = match &self.verifier {
            Verifier::Secret(secret) => secret.clone(),
            Verifier::KeySet(keys) => {
                let found = keys.find(header.kid.as_deref(), header.alg, now).await;
                found.map(|key| key.decoding).map_err(|missing| match missing {
                    Missing::Unknown => Refused::Invalid,
                    Missing::Silent => Refused::Silent,
                })?
            }
        };
        let checked: TokenData<Claims> = decode(token, &key, &rules).map_err(|_| Refused::Invalid)?;
        Ok(checked.claims)
    }

    /// How often the issuer's keys have changed, which are asked for anew when they are old.
    pub fn generation(&self, now: i64) -> u64 {
        match &self.verifier {
            Verifier::Secret(_) => 0,
            Verifier::KeySet(keys) => {
                keys.keep_fresh(now);
                keys.generation()
            }
        }
    }
}
