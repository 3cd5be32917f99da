//! An issuer's public keys: fetched when they are wanted, rarely, and kept while the issuer is out.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;

/// The most bytes that a set of keys may have, and the most keys.
pub const MOST_BYTES: usize = 256 << 10;
const MOST_KEYS: usize = 64;
/// How often, at most, an issuer is asked, in milliseconds.
pub const ASK_MS: i64 = 30_000;
/// For how long keys are taken as they were fetched, in milliseconds.
const FRESH_MS: i64 = 600_000;

/// What a fetch gives.
pub type Fetched<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// Who fetches sets of keys: the engine knows no HTTP.
pub trait FetchKeys: Send + Sync + 'static {
    /// Gets what is under a URL; an error where that has more bytes than the limit.
    fn fetch<'a>(&'a self, url: &'a str, limit: usize) -> Fetched<'a>;
}

/// The keys of one issuer.
pub struct KeySet {
    url: String,
    fetch: Arc<dyn FetchKeys>,
    known: Mutex<Known>,
    /// Held by whoever asks the issuer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Arc<[Key]>,
    /// Counts the sets that were unlike the one before.
    generation: u64,
    text: Vec<u8>,
    asked_at: Option<i64>,
    fetched_at: Option<i64>,
}

/// A key that checks signatures.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    /// The one algorithm that it is for, where the set says so.
    algorithm: Option<String>,
    family: AlgorithmFamily,
    pub decoding: DecodingKey,
}

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The issuer has no such key.
    Unknown,
    /// The issuer has never told its keys.
    Silent,
}

impl KeySet {
    pub fn new(url: String, fetch: Arc<dyn FetchKeys>) -> Arc<KeySet> {
        Arc::new(KeySet { url, fetch, known: Mutex::default(), asking: tokio::sync::Mutex::default() })
    }

    /// The key with which a token says it was signed. One that is not known is asked for, but not again and again.
    pub async fn find(self: &Arc<Self>, id: Option<&str>, algorithm: Algorithm, now: i64) -> Result<Key, Missing> {
        if let Some(key) = self.search(id, algorithm) {
            self.keep_fresh(now);
            return Ok(key);
        }
        let set = self.clone();
        // A task of its own: whoever goes away does not leave it undone for those who wait.
        if let Err(error) = tokio::spawn(async move { set.ask(now).await }).await {
            tracing::error!(%error, "asking for keys failed");
        }
        self.search(id, algorithm).ok_or(match self.known().fetched_at {
            Some(_) => Missing::Unknown,
            None => Missing::Silent,
        })
    }

    /// How often the keys have changed: what was verified with an older set is verified again.
    pub fn generation(&self) -> u64 {
        self.known().generation
    }

    /// Has keys that are no longer fresh asked for, beside whoever uses them.
    pub fn keep_fresh(self: &Arc<Self>, now: i64) {
        let is_due = {
            let known = self.known();
            !is_within(known.fetched_at, FRESH_MS, now) && !is_within(known.asked_at, ASK_MS, now)
        };
        if is_due {
            let set = self.clone();
            tokio::spawn(async move { set.ask(now).await });
        }
    }

    fn search(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Key> {
        let keys = self.known().keys.clone();
        let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)).cloned(),
            // Who names none means the only one there is.
            None => fitting.next().filter(|_| fitting.next().is_none()).cloned(),
        }
    }

    async fn ask(&self, now: i64) {
        let _asking = self.asking.lock().await;
        if is_within(self.known().asked_at, ASK_MS, now) {
            return;
        }
        self.known().asked_at = Some(now);
        let read = self.fetch.fetch(&self.url, MOST_BYTES).await.and_then(|text| Ok((read(&text)?, text)));
        match read {
            Ok((keys, text)) => {
                let mut known = self.known();
                known.fetched_at = Some(now);
                if known.text != text {
                    (known.keys, known.text) = (keys.into(), text);
                    known.generation += 1;
                }
            }
            Err(error) => {
                tracing::warn!(%error, url = %self.url, "the keys of an issuer were not got; those known stay")
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something that happened is so recent still. A clock that was set back makes nothing recent.
fn is_within(at: Option<i64>, span: i64, now: i64) -> bool {
    at.is_some_and(|at| (at..at.saturating_add(span)).contains(&now))
}

impl Key {
    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_meant = |own: &String| own.parse() == Ok(algorithm);
        self.family == algorithm.family() && self.algorithm.as_ref().is_none_or(is_meant)
    }
}

/// The keys of a set that check signatures. What is of an unknown kind is passed over.
fn read(text: &[u8]) -> Result<Vec<Key>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    if text.len() > MOST_BYTES {
        return Err(format!("the set has more than {MOST_BYTES} bytes"));
    }
    let set: Set = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if set.keys.len() > MOST_KEYS {
        return Err(format!("the set has more than {MOST_KEYS} keys"));
    }
    Ok(set.keys.into_iter().filter_map(|key| usable(serde_json::from_value(key).ok()?)).collect())
}

fn usable(key: Jwk) -> Option<Key> {
    let common = &key.common;
    let is_for_signatures = common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature)
        && common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let family = match &key.algorithm {
        AlgorithmParameters::EllipticCurve(_) => AlgorithmFamily::Ec,
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa,
        AlgorithmParameters::OctetKeyPair(_) => AlgorithmFamily::Ed,
        // A secret that is published is none.
        AlgorithmParameters::OctetKey(_) => return None,
    };
    if !is_for_signatures {
        return None;
    }
    let algorithm = common.key_algorithm.map(|algorithm| algorithm.to_string());
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    Some(Key { id: key.common.key_id, algorithm, family, decoding })
}
