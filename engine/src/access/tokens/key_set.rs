//! An issuer's public keys: fetched on demand at a limited rate, and kept while the issuer is unavailable.

use std::pin::Pin;
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use parking_lot::Mutex;
use serde::Deserialize;

use super::denial::TokenRefusal;

/// The maximum size of a key set, in bytes.
pub const MAX_BYTES: usize = 256 << 10;
/// The maximum number of keys in a key set.
const MAX_KEYS: usize = 64;
/// The minimum time between two fetches from an issuer, in milliseconds.
pub const FETCH_INTERVAL_MS: i64 = 30_000;
/// The time for which fetched keys are used without a refresh, in milliseconds.
const FRESH_MS: i64 = 600_000;

/// A running fetch, which returns the bytes of the document or an error message.
pub type Fetched<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// An interface for fetching key sets. Implemented outside the engine, which has no HTTP client.
pub trait FetchKeys: Send + Sync + 'static {
    /// Fetches the document at a URL. Fails if the document is larger than `limit` bytes.
    fn fetch<'a>(&'a self, url: &'a str, limit: usize) -> Fetched<'a>;
}

/// The keys of one issuer.
pub struct KeySet {
    url: String,
    fetch: Arc<dyn FetchKeys>,
    known: Mutex<KeySetCache>,
    /// The lock that is held during a fetch from the issuer.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KeySetCache {
    keys: Arc<[VerificationKey]>,
    /// The number of times that a fetched set differed from the previous set.
    generation: u64,
    text: Vec<u8>,
    attempted_at: Option<i64>,
    fetched_at: Option<i64>,
}

/// A key that verifies signatures.
struct VerificationKey {
    id: Option<String>,
    /// The only algorithm that the key may be used with, if the key set names one.
    algorithm: Option<String>,
    family: AlgorithmFamily,
    decoding: DecodingKey,
}

impl KeySet {
    pub fn new(url: String, fetch: Arc<dyn FetchKeys>) -> Arc<KeySet> {
        Arc::new(KeySet { url, fetch, known: Mutex::default(), fetching: tokio::sync::Mutex::default() })
    }

    /// Returns the key with this id. If `id` is `None`, returns the only key for the algorithm. If the known keys do
    /// not contain the key, fetches the issuer's keys first, at a limited rate. Refuses the token if the issuer has no
    /// such key, if several keys fit a token without a key id, or if the issuer's keys have never been fetched
    /// successfully.
    pub async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
        now: i64,
    ) -> Result<DecodingKey, TokenRefusal> {
        if let Some(key) = self.search(id, algorithm) {
            self.keep_fresh(now);
            return Ok(key);
        }
        let set = self.clone();
        // The fetch runs in a separate task, so that it completes for other waiters even if this request is canceled.
        if let Err(error) = tokio::spawn(async move { set.refresh(now).await }).await {
            tracing::error!(%error, url = %self.url, "the task that fetches the keys of an issuer failed");
        }
        let reason = match id {
            Some(_) => "the issuer has no key for the token",
            None => "the token has no key id, and the issuer does not have exactly one key for the algorithm",
        };
        self.search(id, algorithm).ok_or(match self.known.lock().fetched_at {
            Some(_) => TokenRefusal::Invalid(reason),
            None => TokenRefusal::Unavailable,
        })
    }

    /// Returns the number of changes to the keys. Tokens verified with an older set must be verified again.
    pub fn generation(&self) -> u64 {
        self.known.lock().generation
    }

    /// Starts a refresh in the background if the keys are no longer fresh, unless the last fetch began less than
    /// [`FETCH_INTERVAL_MS`] ago.
    pub fn keep_fresh(self: &Arc<Self>, now: i64) {
        let is_due = {
            let known = self.known.lock();
            !is_within(known.fetched_at, FRESH_MS, now) && !is_within(known.attempted_at, FETCH_INTERVAL_MS, now)
        };
        if is_due {
            let set = self.clone();
            tokio::spawn(async move { set.refresh(now).await });
        }
    }

    fn search(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let keys = self.known.lock().keys.clone();
        let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            // A token without a key id is accepted only if exactly one key matches.
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        found.map(|key| key.decoding.clone())
    }

    async fn refresh(&self, now: i64) {
        let _fetching = self.fetching.lock().await;
        if is_within(self.known.lock().attempted_at, FETCH_INTERVAL_MS, now) {
            return;
        }
        self.known.lock().attempted_at = Some(now);
        let read = self.fetch.fetch(&self.url, MAX_BYTES).await.and_then(|text| Ok((read(&text)?, text)));
        match read {
            Ok((keys, text)) => {
                let mut known = self.known.lock();
                known.fetched_at = Some(now);
                if known.text != text {
                    (known.keys, known.text) = (keys.into(), text);
                    known.generation += 1;
                }
            }
            Err(error) => {
                tracing::warn!(%error, url = %self.url, "failed to fetch the keys of an issuer; keeping the known keys")
            }
        }
    }
}

/// Returns whether `at` is less than `span` milliseconds ago. Returns `false` if `at` is later than `now`, which
/// happens if the clock was set back.
fn is_within(at: Option<i64>, span: i64, now: i64) -> bool {
    at.is_some_and(|at| (at..at.saturating_add(span)).contains(&now))
}

impl VerificationKey {
    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_meant = |own: &String| own.parse() == Ok(algorithm);
        self.family == algorithm.family() && self.algorithm.as_ref().is_none_or(is_meant)
    }
}

/// Reads a key set, and returns the keys that can verify signatures. Skips keys of unknown kinds.
fn read(text: &[u8]) -> Result<Vec<VerificationKey>, String> {
    #[derive(Deserialize)]
    struct KeySetDocument {
        keys: Vec<serde_json::Value>,
    }
    if text.len() > MAX_BYTES {
        return Err(format!("the key set has more than {MAX_BYTES} bytes"));
    }
    let set: KeySetDocument = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if set.keys.len() > MAX_KEYS {
        return Err(format!("the key set has more than {MAX_KEYS} keys"));
    }
    Ok(set.keys.into_iter().filter_map(|key| usable(serde_json::from_value(key).ok()?)).collect())
}

fn usable(key: Jwk) -> Option<VerificationKey> {
    let common = &key.common;
    let is_for_signatures = common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature)
        && common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let family = match &key.algorithm {
        AlgorithmParameters::EllipticCurve(_) => AlgorithmFamily::Ec,
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa,
        AlgorithmParameters::OctetKeyPair(_) => AlgorithmFamily::Ed,
        // A published secret is not secret, so such keys are ignored.
        AlgorithmParameters::OctetKey(_) => return None,
    };
    if !is_for_signatures {
        return None;
    }
    let algorithm = common.key_algorithm.map(|algorithm| algorithm.to_string());
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    Some(VerificationKey { id: key.common.key_id, algorithm, family, decoding })
}
