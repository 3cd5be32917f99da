//! `/keys`: creating, listing, rotating and revoking API keys, and sign-in codes.

use std::sync::Arc;

use foldwork_engine::model::access::{KeyRecord, Scope};
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::keys::{CreatedKey, DerivedKeys, NewKey};
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{Engine, Error, Writer};
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::section::Section;
use crate::auth::{AgentWrite, ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{OneOf, Scopes};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent_kept, to_json_bytes};
use crate::wire::key::KeyBody;
use crate::wire::list::{ListOrder, ListPart, time_key};
use crate::wire::page::{PageBody, PageBytes, listed, time_at};
use crate::wire::response::no_content;
use crate::wire::shown::shown;

pub struct Api;

/// The default lifetime of a sign-in code, in seconds.
const CODE_TTL_S: u32 = 600;
/// The maximum lifetime of a sign-in code, in seconds.
const MAX_CODE_TTL_S: u32 = 3_600;
/// The default time for which a replaced key still works, in seconds.
const ROTATION_S: u32 = 3_600;
/// The maximum time for which a replaced key still works, in seconds.
const MAX_ROTATION_S: u32 = 30 * 24 * 3_600;

/// A key to create.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    name: String,
    /// The scopes of the key. The caller must have each of these scopes.
    #[oai(validator(min_items = 1))]
    scopes: Vec<OneOf<Scopes>>,
    /// The expiry time, RFC 3339. A key without an expiry time does not expire.
    expires_at: Option<String>,
    /// Whether the key is valid for every workspace of its user instead of this workspace only. Only an owner with
    /// every scope can create such a key. The request needs a token, or a key that itself has `all_workspaces`.
    all_workspaces: Option<bool>,
    /// The agents for which the key acts, 1 to 100. Such a key can read, work on the tasks of these agents, report
    /// their presence, and revoke itself. Any other change and any decision about a task is rejected (`agent_key`).
    agent_ids: Option<Vec<String>>,
}

shown! {
    /// A new key with its secret.
    #[derive(Clone)]
    #[oai(rename = "CreatedKey")]
    struct CreatedKeyBody from made: CreatedKey where {
        let record = KeyBody::from(&made.record);
    };

    id: String = record.id,
    /// The secret key. The secret is in the response to the first request only and cannot be retrieved again.
    @read_only key: Option<String> = made.secret,
    name: String = record.name,
    scopes: Vec<OneOf<Scopes>> = record.scopes,
    display: String = record.display,
    created_at: String = record.created_at,
    last_used_at: Option<String> = record.last_used_at,
    expires_at: Option<String> = record.expires_at,
    derived_from: Option<String> = record.derived_from,
    all_workspaces: bool = record.all_workspaces,
    agent_ids: Option<Vec<String>> = record.agent_ids,
}

impl CreatedKeyBody {
    /// Serializes the record without the secret. The server stores the record for repeated requests, and never stores
    /// the secret.
    fn without_secret(&self) -> Vec<u8> {
        to_json_bytes(&CreatedKeyBody { key: None, ..self.clone() })
    }
}

/// The options of a rotation.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateKey {
    /// The time after which the replaced key ends, in seconds, at most 2,592,000 (30 days); the default is 3,600. With
    /// 0, the key ends immediately. A key that expires earlier keeps its expiry time.
    ends_after_seconds: Option<u32>,
}

/// A sign-in code to create, with the properties of its key.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateCode {
    /// The name of the key.
    name: String,
    /// The scopes of the key. The caller must have each of these scopes.
    #[oai(validator(min_items = 1))]
    scopes: Vec<OneOf<Scopes>>,
    /// The expiry time of the key, RFC 3339. A key without an expiry time does not expire.
    expires_at: Option<String>,
    /// The lifetime of the code in seconds, at most 3,600; the default is 600.
    expires_in_seconds: Option<u32>,
}

/// A new sign-in code.
#[derive(Object, Serialize)]
#[oai(rename = "CreatedCode")]
struct CreatedCodeBody {
    /// The code. The code is in the response to the first request only and cannot be retrieved again.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    expires_at: String,
}

impl CreatedCodeBody {
    /// Serializes the body without the code. The server stores the serialized body for repeated requests, and never
    /// stores the code.
    fn without_code(&self) -> Vec<u8> {
        to_json_bytes(&CreatedCodeBody { code: None, expires_at: self.expires_at.clone() })
    }
}

/// A sign-in code to exchange.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExchangeCode {
    code: String,
    /// The name of the key; the default is the name in the request that created the code.
    name: Option<String>,
}

#[derive(ApiResponse)]
enum CodeResponse {
    /// The sign-in code.
    #[oai(status = 201)]
    New(JsonResponse<CreatedCodeBody>),
    /// The request repeats an earlier request. The response is the result of that earlier request, without the code.
    #[oai(status = 200)]
    Repeated(JsonResponse<CreatedCodeBody>, #[oai(header = "Idempotency-Replayed")] String),
}

impl From<CreationResponse<CreatedCodeBody>> for CodeResponse {
    /// Leaves out the header `Location`, because clients cannot retrieve a code again.
    fn from(response: CreationResponse<CreatedCodeBody>) -> CodeResponse {
        match response {
            CreationResponse::New(body, _) => CodeResponse::New(body),
            CreationResponse::Repeated(body, _, replayed) => CodeResponse::Repeated(body, replayed),
        }
    }
}

#[derive(ApiResponse)]
enum KeyExchangeResponse {
    /// The new key.
    #[oai(status = 201)]
    Done(JsonResponse<CreatedKeyBody>, #[oai(header = "Location")] String),
}

listed!(KeyBody as "KeyPage": "A page of keys.");

no_content!(KeyRevocationResponse: "The key was revoked.");

#[OpenApi(tag = "Section::Keys")]
impl Api {
    /// Lists the keys of the workspace, newest first, without their secrets.
    ///
    /// Callers who are not owners see only their own keys. A caller with a key that is bound to agents sees only this
    /// key.
    ///
    /// All keys are on one page, unless the page reaches `limit` or its maximum size in bytes. The field `display`,
    /// such as `sk_ab12…9f`, identifies a key without its secret.
    #[oai(path = "/keys", method = "get", operation_id = "list_keys")]
    async fn list_keys(
        &self,
        access: ApiRead,
        /// Rows per page, 1 to 200. By default, only the size of a page in bytes is limited.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<KeyBody>>> {
        let part = ListPart { list: "keys", rows, cursor: cursor.as_deref(), bytes: **bytes };
        let keys = access.0.list_keys().await?;
        let order = |key: &KeyRecord| time_key(key.created_at, &key.id);
        Ok(part.of(&keys, ListOrder::Descending, order, |key| KeyBody::from(key))?)
    }

    /// Creates a key. The secret is in this response only.
    ///
    /// The key belongs to the caller's user. A new key cannot have a scope that the caller's key lacks
    /// (`insufficient_scope`), and cannot expire after the caller's key (`outlives_caller`). If the plan has lapsed,
    /// keys with paid scopes cannot be created (`subscription_required`). A key that was created with another key
    /// depends on that key: see `DELETE /keys/{key_id}`. The key is valid for this workspace only, unless
    /// `all_workspaces` is set.
    #[oai(path = "/keys", method = "post", operation_id = "create_key")]
    async fn create_key(
        &self,
        access: ApiWrite,
        body: Body<CreateKey>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<CreatedKeyBody>> {
        let new = new_key(&body)?;
        let make = async move |writer: Writer, request: Option<IdempotentRequest>| {
            Ok(outcome(writer.create_key(new, request.as_ref()).await?))
        };
        idempotent_kept(&access.0, key.0, "create_key", &body.text, make, CreatedKeyBody::without_secret).await
    }

    /// Creates a short-lived code that can be exchanged once for a key.
    ///
    /// A code gives another device its own key, so that no key has to be copied to that device. The limits for the new
    /// key are the same as for `POST /keys`. If the caller uses a key, the new key depends on that key: see
    /// `DELETE /keys/{key_id}`.
    #[oai(path = "/keys/sign-in-codes", method = "post", operation_id = "create_sign_in_code")]
    async fn create_sign_in_code(
        &self,
        access: ApiWrite,
        body: Body<CreateCode>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CodeResponse> {
        let ttl_s = body.expires_in_seconds.unwrap_or(CODE_TTL_S);
        if !(1..=MAX_CODE_TTL_S).contains(&ttl_s) {
            let message = format!("expected 1 to {MAX_CODE_TTL_S}");
            return Err(Error::invalid_at("/expires_in_seconds", message).into());
        }
        let scopes = read_scopes(&body.scopes)?;
        let expires_at = time_at("/expires_at", body.expires_at.as_deref())?;
        let new = NewKey { name: body.name.clone(), scopes, expires_at, ..NewKey::default() };
        let make = async move |writer: Writer, _: Option<IdempotentRequest>| {
            let made = writer.create_sign_in_code(new, i64::from(ttl_s) * 1_000).await?;
            let body = CreatedCodeBody { code: Some(made.code), expires_at: format_date(made.expires_at) };
            Ok(CreationOutcome { body, location: String::new(), repeated: false })
        };
        let without_code = CreatedCodeBody::without_code;
        let made = idempotent_kept(&access.0, key.0, "create_sign_in_code", &body.text, make, without_code).await?;
        Ok(made.into())
    }

    /// Exchanges a sign-in code for a new key. The request needs no other credential. Each code works once.
    ///
    /// A signed-in user creates the code on another device or in another program. The user then enters the code in the
    /// program that needs a key, so that no key has to be copied.
    #[oai(path = "/keys/sign-in-codes/exchange", method = "post", operation_id = "exchange_sign_in_code")]
    async fn exchange_sign_in_code(
        &self,
        engine: Data<&Arc<Engine>>,
        body: Body<ExchangeCode>,
    ) -> ApiResult<KeyExchangeResponse> {
        let name = body.name.clone().filter(|name| !name.trim().is_empty());
        if name.as_ref().is_some_and(|name| name.chars().count() > 200) {
            return Err(Error::invalid_at("/name", "expected at most 200 characters").into());
        }
        let made = engine.exchange_sign_in_code(&body.code, name).await?;
        let location = format!("{}/keys/{}", API, made.record.id);
        Ok(KeyExchangeResponse::Done(JsonResponse::new(&CreatedKeyBody::from(made)), location))
    }

    /// Returns the key with which this request was made.
    ///
    /// The response contains the scopes and the expiry time of the key.
    #[oai(path = "/keys/self", method = "get", operation_id = "get_own_key")]
    async fn get_own_key(&self, access: ApiRead) -> ApiResult<JsonResponse<KeyBody>> {
        let key = access.0.own_key().await?;
        Ok(JsonResponse::new(&KeyBody::from(&key)))
    }

    /// Creates the successor of a key. The replaced key ends after some time, so that the programs that use the key can
    /// switch to the successor.
    ///
    /// The successor has the same name, scopes, agents and expiry time, and the same value of `all_workspaces`. The new
    /// secret is in this response only. The keys that were created with the replaced key depend on the successor from
    /// now on, and keep working. The successor usually depends on the same keys as the replaced key. The successor
    /// depends on the caller's key instead if the caller's key is not the replaced key, and neither of these two keys
    /// depends on the other. A caller can rotate only the keys of its own user (`other_user`), and only keys that the
    /// caller can revoke. An expired key cannot be rotated (`key_expired`).
    #[oai(path = "/keys/:key_id/rotate", method = "post", operation_id = "rotate_key")]
    async fn rotate_key(
        &self,
        access: ApiWrite,
        key_id: Path<String>,
        body: Body<RotateKey>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<CreatedKeyBody>> {
        let seconds = body.ends_after_seconds.unwrap_or(ROTATION_S);
        if seconds > MAX_ROTATION_S {
            return Err(Error::invalid_at("/ends_after_seconds", format!("expected 0 to {MAX_ROTATION_S}")).into());
        }
        let operation = format!("rotate_key {}", *key_id);
        let make = async move |writer: Writer, request: Option<IdempotentRequest>| {
            let made = writer.rotate_key(&key_id, i64::from(seconds) * 1_000, request.as_ref()).await?;
            Ok(outcome(made))
        };
        idempotent_kept(&access.0, key.0, &operation, &body.text, make, CreatedKeyBody::without_secret).await
    }

    /// Revokes a key immediately.
    ///
    /// `cascade` determines whether the valid keys that were created with the key, directly or through other keys, end
    /// as well. If such keys exist and `cascade` is absent, the request is rejected with a conflict (`derived_keys`),
    /// and the response lists at most 100 of these keys. A key can revoke itself and any key that it could have
    /// created, but no key with further scopes (`insufficient_scope`) or a later expiry time (`outlives_caller`). A key
    /// that revokes a key from which it was derived stays valid and, unless `cascade` is false, takes the place of the
    /// revoked key. Callers who are not owners can revoke only their own keys. A key that is bound to agents can revoke
    /// only itself (`agent_key`).
    #[oai(path = "/keys/:key_id", method = "delete", operation_id = "revoke_key")]
    async fn revoke_key(
        &self,
        access: AgentWrite,
        key_id: Path<String>,
        /// Whether the keys that were created with the revoked key end as well. With `false`, these keys stay valid and
        /// depend on the keys on which the revoked key depended. If the revoked key depended on no key, these keys
        /// depend on no key either.
        cascade: Query<Option<bool>>,
    ) -> ApiResult<KeyRevocationResponse> {
        let derived = match cascade.0 {
            None => DerivedKeys::Refuse,
            Some(true) => DerivedKeys::End,
            Some(false) => DerivedKeys::Keep,
        };
        access.0.revoke_key(&key_id, derived).await?;
        Ok(KeyRevocationResponse::Done)
    }
}

/// Returns the response to a request that created a key.
fn outcome(made: CreatedKey) -> CreationOutcome<CreatedKeyBody> {
    let location = format!("{}/keys/{}", API, made.record.id);
    let repeated = made.secret.is_none();
    CreationOutcome { body: CreatedKeyBody::from(made), location, repeated }
}

fn new_key(body: &CreateKey) -> Result<NewKey, Error> {
    let expires_at = time_at("/expires_at", body.expires_at.as_deref())?;
    let opens_all = body.all_workspaces.unwrap_or(false);
    let agents = body.agent_ids.as_ref().map(|ids| ids.iter().map(|id| Arc::from(id.as_str())).collect());
    Ok(NewKey { name: body.name.clone(), scopes: read_scopes(&body.scopes)?, expires_at, opens_all, agents })
}

fn read_scopes(wanted: &[OneOf<Scopes>]) -> Result<Vec<Scope>, Error> {
    let mut scopes = Vec::with_capacity(wanted.len());
    for (index, name) in wanted.iter().enumerate() {
        let allowed = || names::<Scope>().join(", ");
        let unknown =
            || Error::invalid_at(format!("/scopes/{index}"), format!("unknown scope; allowed are {}", allowed()));
        scopes.push(Scope::parse(name).ok_or_else(unknown)?);
    }
    if scopes.is_empty() {
        return Err(Error::invalid_at("/scopes", "expected at least one scope"));
    }
    Ok(scopes)
}
