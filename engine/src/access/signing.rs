//! Signatures on data with a limited lifetime, such as links to files. Every server of the store can verify the
//! signatures.
//!
//! The secrets are in the control database and rotate automatically. A replaced secret still verifies its earlier
//! signatures for the maximum lifetime of signed data.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use strum::IntoStaticStr;

use super::Access;
use crate::error::{Error, Result};
use crate::model::closed_set::named;
use crate::shared_check::SharedCheck;
use crate::store::control::signing_keys::SigningKeyRecord;

/// The time during which a key makes new signatures, in milliseconds.
const SIGNING_PERIOD_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum lifetime of signed data, in milliseconds.
pub const MAX_LIFETIME_MS: i64 = 24 * 60 * 60 * 1_000;
/// The time for which a key is kept after its creation, in milliseconds. The time is longer than the signing period, so
/// that the key's last signatures stay valid until the signatures expire.
const RETENTION_MS: i64 = SIGNING_PERIOD_MS + MAX_LIFETIME_MS;
/// The minimum time between two lookups of unknown keys in the store, in milliseconds. If no key in use is older than
/// this time, every unknown key is looked up.
const LOOKUP_INTERVAL_MS: i64 = 1_000;
/// The time before the end of a key's signing period, in milliseconds, in which the next key may be created. The time
/// is much longer than [`LOOKUP_INTERVAL_MS`], so every server can look up the new key before the old key stops
/// signing.
const ROTATION_LEAD_MS: i64 = 60_000;
/// The maximum length of a text with signed claims, in bytes.
const MAX_LENGTH: usize = 8 << 10;

named!(Purpose);

/// The purpose of a signature. A signature for one purpose is not valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Purpose {
    /// A link that allows reading a file without a token.
    FileLink,
    /// A link that allows storing a file without a token.
    UploadLink,
    /// The credential for listening to agent feeds.
    Realtime,
}

/// A signature and the id of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub key_id: String,
    /// The HMAC-SHA256 of purpose and message.
    pub mac: Vec<u8>,
}

/// The signing keys cached in this process.
#[derive(Default)]
pub struct SigningKeys {
    known: Mutex<SecretCache>,
    /// The lock that is held while a key is created. Other tasks wait for the new key.
    creating: tokio::sync::Mutex<()>,
    /// Lets concurrent lookups of unknown keys share one query.
    lookups: SharedCheck,
}

#[derive(Default)]
struct SecretCache {
    /// The keys, newest first.
    keys: Vec<SigningKeyRecord>,
    read_at: Option<i64>,
}

impl SecretCache {
    /// Adds the keys read from the store. Keeps known keys that were not read, since concurrent reads may finish in any
    /// order. Removes keys that are older than [`RETENTION_MS`].
    fn add(&mut self, read: Vec<SigningKeyRecord>, now: i64) {
        let unknown: Vec<_> = read.into_iter().filter(|key| self.find(&key.id).is_none()).collect();
        self.keys.extend(unknown);
        self.keys.retain(|key| key.created_at >= now.saturating_sub(RETENTION_MS));
        self.keys.sort_unstable_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        self.read_at = self.read_at.max(Some(now));
    }

    fn find(&self, id: &str) -> Option<&SigningKeyRecord> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Returns whether the newest key will still be in use after [`ROTATION_LEAD_MS`].
    fn is_ahead(&self, now: i64) -> bool {
        self.keys.first().is_some_and(|key| key.created_at.saturating_add(SIGNING_PERIOD_MS - ROTATION_LEAD_MS) > now)
    }

    /// Returns the key to sign with: the newest key that every server can already look up, otherwise the oldest key in
    /// use.
    fn signing(&self, now: i64) -> Option<&SigningKeyRecord> {
        self.settled(now).or_else(|| self.in_use(now).next_back())
    }

    /// Returns the newest key in use that every server can already look up.
    fn settled(&self, now: i64) -> Option<&SigningKeyRecord> {
        self.in_use(now).find(|key| key.created_at.saturating_add(LOOKUP_INTERVAL_MS) < now)
    }

    fn in_use(&self, now: i64) -> impl DoubleEndedIterator<Item = &SigningKeyRecord> {
        self.keys.iter().filter(move |key| key.created_at.saturating_add(SIGNING_PERIOD_MS) > now)
    }

    /// Returns whether an unknown key must be looked up in the store.
    ///
    /// If every server can already look up one of the keys in use, an unknown key is looked up only if the last read is
    /// at least [`LOOKUP_INTERVAL_MS`] ago. Newer keys do not sign yet in this case. If there is no such key, every
    /// unknown key is looked up, because a new key then signs immediately. Concurrent lookups share one query.
    fn is_stale(&self, now: i64) -> bool {
        let lookup = |at: i64| (at..at.saturating_add(LOOKUP_INTERVAL_MS)).contains(&now);
        self.settled(now).is_none() || !self.read_at.is_some_and(lookup)
    }
}

impl Access {
    /// Signs a message with a key that is in use.
    pub async fn sign(&self, purpose: Purpose, message: &[u8]) -> Result<Signature> {
        let key = self.signing_key().await?;
        let mac = hmac::sign(&keyed(&key.secret)?, &signed(purpose, message)).as_ref().to_vec();
        Ok(Signature { key_id: key.id, mac })
    }

    /// Returns whether a server of this store made the signature for this purpose and message.
    pub async fn verify(&self, purpose: Purpose, message: &[u8], signature: &Signature) -> Result<bool> {
        let Some(key) = self.find_signing_key(&signature.key_id).await? else { return Ok(false) };
        Ok(hmac::verify(&keyed(&key.secret)?, &signed(purpose, message), &signature.mac).is_ok())
    }

    /// Returns claims with their signature, as text that can be part of a URL. A change of the claims invalidates the
    /// signature.
    pub async fn sign_claims(&self, purpose: Purpose, claims: &impl Serialize) -> Result<String> {
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).map_err(Error::internal)?);
        let Signature { key_id, mac } = self.sign(purpose, claims.as_bytes()).await?;
        Ok(format!("{claims}.{key_id}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Returns the claims in a signed text, if the signature is valid for this purpose.
    pub async fn verified_claims<C: DeserializeOwned>(&self, purpose: Purpose, text: &str) -> Result<Option<C>> {
        let mut parts = text.splitn(3, '.');
        let (Some(claims), Some(key_id), Some(mac)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let Some(mac) = URL_SAFE_NO_PAD.decode(mac).ok().filter(|_| text.len() <= MAX_LENGTH) else { return Ok(None) };
        let signature = Signature { key_id: key_id.to_owned(), mac };
        if !self.verify(purpose, claims.as_bytes(), &signature).await? {
            return Ok(None);
        }
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(Error::internal)?;
        serde_json::from_slice(&claims).map(Some).map_err(Error::internal)
    }

    /// Returns the key to sign with. Creates the next key if there is none, or if the newest key stops signing soon.
    async fn signing_key(&self) -> Result<SigningKeyRecord> {
        let now = self.clock.now_ms();
        let known = || {
            let known = self.signing.known.lock();
            known.signing(now).filter(|_| known.is_ahead(now)).cloned()
        };
        if let Some(key) = known() {
            return Ok(key);
        }
        let _creating = self.signing.creating.lock().await;
        self.read_signing_keys(now).await?;
        if let Some(key) = known() {
            return Ok(key);
        }
        // If two servers create a key at the same time, both keys sign, and both are in the store.
        let (id, secret) = (self.clock.new_id().to_string(), hex::encode(self.clock.random()));
        let key = SigningKeyRecord { id, secret, created_at: now };
        self.control.write_signing_key(&key, now.saturating_sub(RETENTION_MS)).await?;
        let mut known = self.signing.known.lock();
        known.add(vec![key.clone()], now);
        Ok(known.signing(now).cloned().unwrap_or(key))
    }

    /// Returns the key with this id. Limits how often unknown ids are looked up in the store, because clients choose
    /// the ids.
    async fn find_signing_key(&self, id: &str) -> Result<Option<SigningKeyRecord>> {
        let now = self.clock.now_ms();
        let is_stale = {
            let known = self.signing.known.lock();
            if let Some(key) = known.find(id) {
                return Ok(Some(key.clone()));
            }
            known.is_stale(now)
        };
        if is_stale {
            self.signing.lookups.share(|| self.read_signing_keys(now)).await?;
        }
        // Another task may have read the key since the first check.
        Ok(self.signing.known.lock().find(id).cloned())
    }

    async fn read_signing_keys(&self, now: i64) -> Result<()> {
        let keys = self.control.read_signing_keys().await?;
        self.signing.known.lock().add(keys, now);
        Ok(())
    }
}

fn keyed(secret: &str) -> Result<hmac::Key> {
    let secret = hex::decode(secret).map_err(Error::internal)?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret))
}

/// Returns the bytes to sign: the purpose and the message, with a separator that no purpose contains.
fn signed(purpose: Purpose, message: &[u8]) -> Vec<u8> {
    [purpose.name().as_bytes(), b"\n", message].concat()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use super::*;
    use crate::clock::Clock;
    use crate::store::Store;

    /// A clock that the test sets.
    struct Hand {
        now_ms: AtomicI64,
        drawn: AtomicU64,
    }

    impl Clock for Hand {
        fn now_ms(&self) -> i64 {
            self.now_ms.load(Ordering::SeqCst)
        }

        fn monotonic_us(&self) -> u64 {
            0
        }

        fn random(&self) -> [u8; 32] {
            let mut drawn = [0; 32];
            drawn[..8].copy_from_slice(&self.drawn.fetch_add(1, Ordering::SeqCst).to_be_bytes());
            drawn
        }
    }

    fn hand() -> Arc<Hand> {
        Arc::new(Hand { now_ms: AtomicI64::new(1_700_000_000_000), drawn: AtomicU64::new(1) })
    }

    async fn opened(store: &Store, clock: &Arc<Hand>) -> Access {
        Access::open(&store.share(), clock.clone()).await.expect("access")
    }

    #[tokio::test]
    async fn another_server_accepts_a_signature_only_for_the_signed_message_and_purpose() {
        let (store, clock) = (Store::connect("mem://").await.expect("a store"), hand());
        let (here, there) = (opened(&store, &clock).await, opened(&store, &clock).await);
        let signature = here.sign(Purpose::FileLink, b"a/b").await.expect("signed");
        assert!(there.verify(Purpose::FileLink, b"a/b", &signature).await.expect("verified"));
        assert!(!there.verify(Purpose::FileLink, b"a/c", &signature).await.expect("verified"));
        assert!(!there.verify(Purpose::Realtime, b"a/b", &signature).await.expect("verified"));
        let unknown = Signature { key_id: "unknown".into(), ..signature };
        assert!(!there.verify(Purpose::FileLink, b"a/b", &unknown).await.expect("verified"));
    }

    #[tokio::test]
    async fn concurrent_first_signatures_create_only_one_key() {
        let (store, clock) = (Store::connect("mem://").await.expect("a store"), hand());
        let access = Arc::new(opened(&store, &clock).await);
        let signed = |number: u64| {
            let access = access.clone();
            tokio::spawn(async move {
                let message = number.to_be_bytes();
                let signature = access.sign(Purpose::Realtime, &message).await.expect("signed");
                access.verify(Purpose::Realtime, &message, &signature).await.expect("verified")
            })
        };
        let signed: Vec<_> = (0..50).map(signed).collect();
        for verified in signed {
            assert!(verified.await.expect("the task ended normally"));
        }
        assert_eq!(store.control().await.expect("a database").read_signing_keys().await.expect("keys").len(), 1);
    }

    #[tokio::test]
    async fn a_lookup_of_an_unknown_key_does_not_delay_the_acceptance_of_the_first_key() {
        let (store, clock) = (Store::connect("mem://").await.expect("a store"), hand());
        let (here, there) = (opened(&store, &clock).await, opened(&store, &clock).await);
        let unknown = Signature { key_id: "unknown".into(), mac: Vec::new() };
        assert!(!there.verify(Purpose::Realtime, b"one", &unknown).await.expect("verified"));
        let signature = here.sign(Purpose::Realtime, b"one").await.expect("signed");
        assert!(there.verify(Purpose::Realtime, b"one", &signature).await.expect("verified"));
    }

    #[tokio::test]
    async fn a_new_key_signs_only_after_every_server_can_have_read_it() {
        let (store, clock) = (Store::connect("mem://").await.expect("a store"), hand());
        let (here, there) = (opened(&store, &clock).await, opened(&store, &clock).await);
        let first = here.sign(Purpose::Realtime, b"one").await.expect("signed");
        clock.now_ms.fetch_add(SIGNING_PERIOD_MS - ROTATION_LEAD_MS, Ordering::SeqCst);
        // The other server looks up an unknown key, and therefore does not read the store again for a while.
        let unknown = Signature { key_id: "unknown".into(), ..first.clone() };
        assert!(!there.verify(Purpose::Realtime, b"one", &unknown).await.expect("verified"));
        let second = here.sign(Purpose::Realtime, b"one").await.expect("signed");
        assert_eq!(second.key_id, first.key_id);
        assert!(there.verify(Purpose::Realtime, b"one", &second).await.expect("verified"));
        clock.now_ms.fetch_add(LOOKUP_INTERVAL_MS + 1, Ordering::SeqCst);
        let third = here.sign(Purpose::Realtime, b"one").await.expect("signed");
        assert_ne!(third.key_id, first.key_id);
        assert!(there.verify(Purpose::Realtime, b"one", &third).await.expect("verified"));
    }

    #[tokio::test]
    async fn a_key_stops_signing_before_servers_stop_accepting_its_signatures() {
        let (store, clock) = (Store::connect("mem://").await.expect("a store"), hand());
        let access = opened(&store, &clock).await;
        let first = access.sign(Purpose::Realtime, b"one").await.expect("signed");
        clock.now_ms.fetch_add(SIGNING_PERIOD_MS, Ordering::SeqCst);
        let second = access.sign(Purpose::Realtime, b"one").await.expect("signed");
        assert_ne!(first.key_id, second.key_id);
        assert!(access.verify(Purpose::Realtime, b"one", &first).await.expect("verified"));
        clock.now_ms.fetch_add(SIGNING_PERIOD_MS + MAX_LIFETIME_MS, Ordering::SeqCst);
        access.sign(Purpose::Realtime, b"one").await.expect("signed");
        assert!(!access.verify(Purpose::Realtime, b"one", &first).await.expect("verified"));
    }
}
