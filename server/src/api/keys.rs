//! `/keys`.

use foldwork_engine::model::access::Scope;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::workspace::answers::RequestId;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::{Error, Owner};
use poem_openapi::param::{Header, Path};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::Section;
use super::body::{Body, Written};
use super::error::{ApiResult, answer};
use super::idempotent::{Created, Outcome, idempotent_kept, whole};
use super::page::PageBody;
use super::wire::KeyBody;
use super::words::{Scopes, Word};
use crate::auth::{ApiRead, OwnerWrite};

pub struct Api;

/// A key that is to be made.
#[derive(Object, Deserialize)]
struct CreateKey {
    name: String,
    /// Scopes that the caller holds too.
    #[oai(validator(min_items = 1))]
    scopes: Vec<Word<Scopes>>,
    /// RFC 3339; without it the key does not expire.
    #[oai(nullable)]
    expires_at: Option<String>,
}

/// A key just made, with its secret.
#[derive(Object, Serialize)]
struct CreatedKey {
    id: String,
    /// The key itself. It is shown here once and cannot be asked for again.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    name: String,
    scopes: Vec<Word<Scopes>>,
    display: String,
    created_at: String,
    #[oai(nullable)]
    last_used_at: Option<String>,
    #[oai(nullable)]
    expires_at: Option<String>,
}

impl CreatedKey {
    fn new(record: KeyBody, key: Option<String>) -> CreatedKey {
        let KeyBody { id, name, scopes, display, created_at, last_used_at, expires_at } = record;
        CreatedKey { id, key, name, scopes, display, created_at, last_used_at, expires_at }
    }

    /// What is kept for a repeat is the record: the secret is stored nowhere.
    fn without_secret(&self) -> Vec<u8> {
        let CreatedKey { id, key: _, name, scopes, display, created_at, last_used_at, expires_at } = self;
        whole(&KeyBody {
            id: id.clone(),
            name: name.clone(),
            scopes: scopes.clone(),
            display: display.clone(),
            created_at: created_at.clone(),
            last_used_at: last_used_at.clone(),
            expires_at: expires_at.clone(),
        })
    }
}

/// All keys of the workspace.
#[derive(Object)]
struct KeyPage {
    data: Vec<KeyBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

#[derive(ApiResponse)]
enum Revoked {
    /// The key opens nothing any more.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::Keys")]
impl Api {
    /// The keys of the workspace, newest first, without their secrets.
    ///
    /// All of them in one page: a workspace has few. What is shown of a key, as `sk_ab12…9f`, tells it from the others.
    #[oai(path = "/keys", method = "get", operation_id = "list_keys")]
    async fn list_keys(&self, access: ApiRead) -> ApiResult<Written<KeyPage>> {
        let keys = answer(access.0.list_keys().await)?;
        let data: Vec<KeyBody> = keys.iter().map(KeyBody::from).collect();
        Ok(Written::new(&PageBody { data, next_cursor: None }))
    }

    /// Makes a key. Its secret is in this answer and nowhere else.
    ///
    /// Only the workspace's owner makes keys (`owner_required`). A key makes none with a scope that it lacks
    /// (`insufficient_scope`), and none that outlives it (`outlives_caller`).
    #[oai(path = "/keys", method = "post", operation_id = "create_key")]
    async fn create_key(
        &self,
        access: OwnerWrite,
        body: Body<CreateKey>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<Created<CreatedKey>> {
        let new = answer(new_key(&body))?;
        let make = async move |owner: Owner, request: Option<RequestId>| {
            let made = owner.create_key(new, request.as_ref()).await?;
            let location = format!("{}/keys/{}", crate::API, made.record.id);
            let repeated = made.secret.is_none();
            Ok(Outcome { body: CreatedKey::new(KeyBody::from(&made.record), made.secret), location, repeated })
        };
        idempotent_kept(&access.0, key.0, "create_key", &body.text, make, CreatedKey::without_secret).await
    }

    /// The key that this request was made with.
    ///
    /// Tells a program what it may do, and until when.
    #[oai(path = "/keys/self", method = "get", operation_id = "get_own_key")]
    async fn get_own_key(&self, access: ApiRead) -> ApiResult<Written<KeyBody>> {
        let key = answer(access.0.own_key().await)?;
        Ok(Written::new(&KeyBody::from(&key)))
    }

    /// Revokes a key. It takes effect at once.
    ///
    /// Only the workspace's owner revokes keys (`owner_required`). A key revokes itself, and those that it could have
    /// made: others need one with all their scopes (`insufficient_scope`) that lives as long (`outlives_caller`).
    #[oai(path = "/keys/:key_id", method = "delete", operation_id = "revoke_key")]
    async fn revoke_key(&self, access: OwnerWrite, key_id: Path<String>) -> ApiResult<Revoked> {
        answer(access.0.revoke_key(&key_id).await)?;
        Ok(Revoked::Done)
    }
}

fn new_key(body: &CreateKey) -> Result<NewKey, Error> {
    let mut scopes = Vec::with_capacity(body.scopes.len());
    for (index, name) in body.scopes.iter().enumerate() {
        let allowed = || Scope::ALL.map(Scope::name).join(", ");
        let unknown =
            || Error::invalid_at(format!("/scopes/{index}"), format!("unknown scope; allowed are {}", allowed()));
        scopes.push(Scope::parse(name).ok_or_else(unknown)?);
    }
    if scopes.is_empty() {
        return Err(Error::invalid_at("/scopes", "expected at least one scope"));
    }
    let expires_at = match &body.expires_at {
        None => None,
        Some(text) => {
            Some(parse_date(text).ok_or_else(|| Error::invalid_at("/expires_at", "expected an RFC 3339 time"))?)
        }
    };
    Ok(NewKey { name: body.name.clone(), scopes, expires_at })
}
