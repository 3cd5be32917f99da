//! One-time sign-in codes. A code can be exchanged once for a key, so users do not have to type keys on devices.

use std::sync::Arc;

use super::Access;
use super::credential_cache::hash_of;
use super::keys::{CreatedKey, NewKey, record_of, refused};
use crate::error::{Error, Result};
use crate::model::access::{self, Caller, KeyRecord, SignInCode};
use crate::store::control::members::AccessFault;

const PREFIX: &str = "sic_";
const NOT_VALID: Error = Error::Unauthenticated("the sign-in code is not valid");

/// A created sign-in code.
pub struct CreatedCode {
    /// The code. Only the hash of a code is stored, so the code cannot be retrieved later.
    pub code: String,
    /// The expiry time of the code, in milliseconds since the epoch.
    pub expires_at: i64,
}

impl Access {
    /// Creates a sign-in code for a new key. If the caller uses a key, the new key is derived from that key, and
    /// stops working when that key is revoked, unless the revocation keeps the new key.
    pub async fn create_sign_in_code(&self, caller: &Caller, new: NewKey, lives_ms: i64) -> Result<CreatedCode> {
        let now = self.clock.now_ms();
        let code = format!("{PREFIX}{}", hex::encode(self.clock.random()));
        let record = SignInCode {
            hash: hash_of(&code),
            workspace_id: caller.workspace_id.clone(),
            user_id: caller.user_id.clone(),
            derived_from: caller.origin(),
            name: new.name,
            scopes: new.scopes,
            key_expires_at: new.expires_at,
            expires_at: now.saturating_add(lives_ms),
        };
        let _turn = self.change_locks.lock(&caller.user_id).await;
        self.control.write_sign_in_code(&record, now).await?.map_err(refused)?;
        Ok(CreatedCode { code, expires_at: record.expires_at })
    }

    /// Exchanges a code for a new key. `name` replaces the name that was set when the code was created. Only the first
    /// exchange succeeds.
    pub async fn exchange_sign_in_code(&self, code: &str, name: Option<String>) -> Result<CreatedKey> {
        let hash = Some(code).filter(|code| code.starts_with(PREFIX)).map(hash_of).ok_or(NOT_VALID)?;
        let now = self.clock.now_ms();
        let found = self.control.find_sign_in_code(&hash).await?.filter(|code| code.expires_at > now);
        // Codes of different users use different locks. A request with an invalid code takes no lock, and therefore
        // does not delay other requests.
        let found = found.ok_or(NOT_VALID)?;
        let _turn = self.change_locks.lock(&found.user_id).await;
        if found.key_expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(NOT_VALID);
        }
        let secret = access::key_from(self.clock.random());
        let id: Arc<str> = self.clock.new_id().to_string().into();
        let (name, expires_at) = (name.unwrap_or(found.name), found.key_expires_at);
        let new = NewKey { name, scopes: found.scopes, expires_at, ..NewKey::default() };
        let record = record_of(&secret, id, found.workspace_id, found.user_id, new, now);
        let record = KeyRecord { derived_from: Some(found.derived_from), ..record };
        match self.control.exchange_sign_in_code(&hash, &record).await? {
            Ok(record) => Ok(CreatedKey { record, secret: Some(secret) }),
            Err(AccessFault::Gone) => Err(NOT_VALID),
            Err(other) => Err(refused(other)),
        }
    }
}
