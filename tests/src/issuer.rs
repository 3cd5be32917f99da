//! An identity provider for tests. The provider publishes keys, signs tokens, and counts requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as RsaPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use foldwork_engine::{AccessSettings, FetchKeys, Fetched, IssuerSettings, Trust};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The claim `iss` of valid tokens.
pub const ISSUER: &str = "https://id.example.com";
/// The claim `aud` of valid tokens.
pub const AUDIENCE: &str = "foldwork";
/// The issuer whose tokens test servers accept by default. The tokens are signed with [`SECRET`].
pub const SECRET_ISSUER: &str = "https://project.example.com/auth/v1";
/// The shared secret of [`SECRET_ISSUER`].
pub const SECRET: &[u8] = b"a secret that only tests have, of 40 bytes";

/// A private key with the id under which its public key is published.
#[derive(Clone)]
pub struct SigningKey {
    pub id: String,
    pub algorithm: Algorithm,
    private: EncodingKey,
    pub public: Value,
}

impl SigningKey {
    /// Creates a key for ES256, RS256 or EdDSA.
    pub fn new(id: &str, algorithm: Algorithm) -> SigningKey {
        let (private, mut public) = match algorithm {
            Algorithm::EdDSA => {
                let pair = Ed25519KeyPair::generate().expect("a pair of keys");
                let private = pem(pair.to_pkcs8v1().expect("the private key").as_ref());
                let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
                let private = EncodingKey::from_ed_pem(private.as_bytes()).expect("an Ed25519 key");
                (private, json!({"kty": "OKP", "crv": "Ed25519", "x": x}))
            }
            Algorithm::RS256 => {
                let pair = RsaPair::generate(KeySize::Rsa2048).expect("a pair of keys");
                let der: Pkcs8V1Der<'_> = pair.as_der().expect("the private key");
                let private = EncodingKey::from_rsa_pem(pem(der.as_ref()).as_bytes()).expect("an RSA key");
                let public = Jwk::from_encoding_key(&private, algorithm).expect("the public key");
                (private, serde_json::to_value(public).expect("JSON"))
            }
            _ => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a pair of keys");
                let private = pem(pair.to_pkcs8v1().expect("the private key").as_ref());
                let private = EncodingKey::from_ec_pem(private.as_bytes()).expect("a key of P-256");
                let public = Jwk::from_encoding_key(&private, Algorithm::ES256).expect("the public key");
                (private, serde_json::to_value(public).expect("JSON"))
            }
        };
        public["kid"] = id.into();
        public["use"] = "sig".into();
        SigningKey { id: id.into(), algorithm, private, public }
    }

    /// Returns a token with these claims, signed by this key.
    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.private).expect("a token")
    }
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

/// Returns a token signed with a secret.
pub fn signed_with(secret: &[u8], claims: &Value) -> String {
    encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(secret)).expect("a token")
}

/// Returns a token with the given header, claims and signature. The signature need not be valid.
pub fn forged(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode(signature))
}

/// An identity provider that publishes a key set and counts the requests for the key set.
#[derive(Default)]
pub struct Provider {
    published: Mutex<Vec<u8>>,
    requests: AtomicUsize,
    is_out: AtomicBool,
}

impl Provider {
    /// Creates a provider that publishes these keys.
    pub fn with(keys: &[&SigningKey]) -> Arc<Provider> {
        let provider = Provider::default();
        provider.publish(keys);
        Arc::new(provider)
    }

    /// Publishes these keys instead of the current keys.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<&Value> = keys.iter().map(|key| &key.public).collect();
        self.publish_text(json!({"keys": keys}).to_string().into_bytes());
    }

    /// Publishes a text, which need not be a valid key set.
    pub fn publish_text(&self, text: Vec<u8>) {
        *self.published.lock() = text;
    }

    /// Sets whether the provider fails every request.
    pub fn fail_requests(&self, is_out: bool) {
        self.is_out.store(is_out, Ordering::SeqCst);
    }

    /// Returns the number of requests for the key set.
    pub fn request_count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns settings that accept tokens from this provider if the tokens are signed with one of these algorithms.
    pub fn settings(algorithms: &[&str]) -> AccessSettings {
        let issuer = IssuerSettings {
            issuer: ISSUER.into(),
            audience: AUDIENCE.into(),
            trust: Trust::KeySet { url: "https://id.example.com/jwks".into() },
            algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
            trusts_email: false,
        };
        AccessSettings { issuers: vec![issuer, secret_issuer()], ..AccessSettings::default() }
    }
}

/// Returns the settings for an issuer like that of a Supabase project. The tokens are signed with a secret. If a token
/// does not contain the claim `email_verified`, the e-mail address in the token counts as verified.
pub fn secret_issuer() -> IssuerSettings {
    IssuerSettings {
        issuer: SECRET_ISSUER.into(),
        audience: "authenticated".into(),
        trust: Trust::Secret(SECRET.to_vec()),
        algorithms: vec!["HS256".into()],
        trusts_email: true,
    }
}

impl FetchKeys for Provider {
    fn fetch<'a>(&'a self, _: &'a str, _: usize) -> Fetched<'a> {
        Box::pin(async {
            self.requests.fetch_add(1, Ordering::SeqCst);
            match self.is_out.load(Ordering::SeqCst) {
                true => Err("nobody answers".to_owned()),
                false => Ok(self.published.lock().clone()),
            }
        })
    }
}
