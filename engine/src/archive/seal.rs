//! Encrypts the dumps of the control database in the archive. A dump contains the hashes of keys and the secrets that
//! sign links and licenses.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The first bytes of a sealed object.
const MAGIC: &[u8] = b"foldwork-sealed-1\n";
const KEY_BYTES: usize = 32;

/// The key that seals the dumps of the control database with AES-256-GCM.
pub struct SealingKey(RandomizedNonceKey);

impl SealingKey {
    /// Reads a key: 32 bytes in base64. Returns an error message if the key is invalid.
    pub fn parse(text: &str) -> Result<SealingKey, String> {
        let bytes = BASE64_STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == KEY_BYTES);
        let bytes = bytes.ok_or_else(|| format!("expected {KEY_BYTES} bytes in base64"))?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| "the key cannot be used".to_owned())?;
        Ok(SealingKey(key))
    }

    /// Returns a new key in the form that [`SealingKey::parse`] reads.
    pub fn generate() -> String {
        BASE64_STANDARD.encode(rand::random::<[u8; KEY_BYTES]>())
    }

    /// Seals bytes. The bytes can be opened only with the same `name`, which is the name of the object.
    pub(super) fn seal(&self, name: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let nonce = self.0.seal_in_place_append_tag(Aad::from(name.as_bytes()), &mut bytes).ok()?;
        Some([MAGIC, nonce.as_ref(), &bytes].concat())
    }

    /// Opens sealed bytes. Returns `None` if the key or the name is wrong, or if the bytes were changed or cut off.
    pub(super) fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, bytes) = sealed.strip_prefix(MAGIC)?.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = bytes.to_vec();
        let length = self.0.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes).ok()?.len();
        bytes.truncate(length);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decryption_requires_unchanged_bytes_and_the_same_key_and_name() {
        let key = || SealingKey::parse(&SealingKey::generate()).expect("a key");
        let (key, other) = (key(), key());
        let sealed = key.seal("a", b"secret".to_vec()).expect("sealed");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(key.open("a", &sealed).as_deref(), Some(b"secret".as_slice()));
        assert!(key.open("b", &sealed).is_none() && other.open("a", &sealed).is_none());
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(key.open("a", &changed).is_none() && key.open("a", &sealed[..index]).is_none(), "byte {index}");
        }
        assert!(SealingKey::parse("too short").is_err());
    }
}
