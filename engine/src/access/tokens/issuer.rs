//! A token issuer: verifies the signatures and claims of its tokens.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, TokenData, Validation, decode};

use super::claims::TokenClaims;
use super::denial::TokenRefusal;
use super::key_set::{FetchKeys, KeySet};
use crate::access::settings::{IssuerSettings, Trust};

/// The minimum length of a secret, in bytes: the output length of SHA-256.
const MIN_SECRET_BYTES: usize = 32;
const REQUIRED: [&str; 4] = ["exp", "iss", "aud", "sub"];

/// A configured issuer that can verify tokens.
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

impl Issuer {
    /// Creates an issuer. Returns an error message if its settings are invalid.
    pub fn new(settings: &IssuerSettings, fetch: &Arc<dyn FetchKeys>) -> Result<Issuer, String> {
        let IssuerSettings { issuer, audience, trust, algorithms, trusts_email } = settings;
        if issuer.is_empty() || audience.is_empty() {
            return Err("a token issuer needs `issuer` and `audience`".into());
        }
        let parse = |name: &String| {
            name.parse::<Algorithm>().map_err(|_| {
                format!(
                    "{issuer}: unknown algorithm {name}; allowed: HS256, HS384, HS512, RS256, RS384, RS512, PS256, \
                     PS384, PS512, ES256, ES384, EdDSA"
                )
            })
        };
        let algorithms: Vec<Algorithm> = algorithms.iter().map(parse).collect::<Result<_, _>>()?;
        let Some(family) = algorithms.first().map(|first| first.family()) else {
            return Err(format!("{issuer}: expected at least one algorithm"));
        };
        if algorithms.iter().any(|algorithm| algorithm.family() != family) {
            return Err(format!("{issuer}: all algorithms must be of one family: HS, RS/PS, ES or EdDSA"));
        }
        let verifier = match trust {
            Trust::Secret(_) if family != AlgorithmFamily::Hmac => {
                return Err(format!("{issuer}: a secret needs an HMAC algorithm, such as HS256"));
            }
            Trust::Secret(secret) if secret.len() < MIN_SECRET_BYTES => {
                return Err(format!("{issuer}: the secret must have at least {MIN_SECRET_BYTES} bytes"));
            }
            Trust::Secret(secret) => Verifier::Secret(DecodingKey::from_secret(secret)),
            Trust::KeySet { .. } if family == AlgorithmFamily::Hmac => {
                return Err(format!(
                    "{issuer}: HMAC algorithms such as HS256 need a secret from the environment, not keys at a URL"
                ));
            }
            Trust::KeySet { url } => Verifier::KeySet(KeySet::new(url.clone(), fetch.clone())),
        };
        let (name, audience, trusts_email) = (issuer.clone(), audience.clone(), *trusts_email);
        Ok(Issuer { name, audience, algorithms, verifier, trusts_email })
    }

    /// Returns the claims of a token if its signature, algorithm, issuer and audience are valid. Does not check the
    /// token's validity period.
    pub async fn verify(&self, token: &str, now: i64) -> Result<TokenClaims, TokenRefusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|error| TokenRefusal::Invalid(reason_of(&error)))?;
        if header.crit.is_some() {
            return Err(TokenRefusal::Invalid("the token has critical header extensions, which are not supported"));
        }
        if !self.algorithms.contains(&header.alg) {
            return Err(TokenRefusal::Invalid("the token's algorithm is not allowed for its issuer"));
        }
        let mut rules = Validation::new(header.alg);
        rules.set_issuer(&[&self.name]);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&REQUIRED);
        // Validity periods are checked with the engine's clock.
        (rules.validate_exp, rules.validate_nbf) = (false, false);
        let key = match &self.verifier {
            Verifier::Secret(secret) => secret.clone(),
            Verifier::KeySet(keys) => keys.find(header.kid.as_deref(), header.alg, now).await?,
        };
        let checked: TokenData<TokenClaims> =
            decode(token, &key, &rules).map_err(|error| TokenRefusal::Invalid(reason_of(&error)))?;
        Ok(checked.claims)
    }

    /// Returns the number of changes to the issuer's keys. Starts a refresh if the keys are old.
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

/// Returns the reason why a token is not valid. The reason contains no data of the token.
fn reason_of(error: &jsonwebtoken::errors::Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSignature => "the token's signature is not valid",
        ErrorKind::InvalidAudience => "the claim `aud` does not contain the configured audience",
        ErrorKind::InvalidIssuer => "the claim `iss` is not the configured issuer",
        ErrorKind::InvalidAlgorithm => "the token's algorithm does not match the key",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks one of the claims `exp`, `iss`, `aud` and `sub`",
        ErrorKind::Json(_) | ErrorKind::Base64(_) | ErrorKind::Utf8(_) => "the token cannot be decoded",
        _ => "the token is not valid",
    }
}
