//! From a bearer token to a right: the guards that handlers ask for in their signatures.
//!
//! A guard exists only for a caller who has its right, and holds the handle that this right gives: whoever has one
//! need not check again, and can do no more.

use std::sync::Arc;

use foldwork_engine::{ContentReader, Engine, Error, Listener, Owner, ProfileReader, Reader, Right, Writer};
use poem::Request;
use poem::http::header::AUTHORIZATION;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;

use crate::api::error::ApiError;
use crate::edge::rate::Verified;

/// Reading data: `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Reader>")]
pub struct ApiRead(pub Reader);

/// Writing data: `api:write`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write", checker = "guard::<Writer>")]
pub struct ApiWrite(pub Writer);

/// Listening for agents: `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Listener>")]
pub struct AgentListen(pub Listener);

/// Reading content: `content:read` (published only) or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "content:read|api:read", checker = "guard::<ContentReader>")]
pub struct ContentRead(pub ContentReader);

/// Reading who one is: `profile:read` or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "profile:read|api:read", checker = "guard::<ProfileReader>")]
pub struct ProfileRead(pub ProfileReader);

/// Deciding who may be in the workspace: `api:write`, of its owner.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write", checker = "guard::<Owner>")]
pub struct OwnerWrite(pub Owner);

async fn guard<R: Right>(request: &Request, _: Bearer) -> poem::Result<R> {
    enter(request).await
}

/// The workspace of whoever asks, by a right that they have.
pub async fn enter<R: Right>(request: &Request) -> poem::Result<R> {
    Ok(try_enter(request).await.map_err(ApiError::from)?)
}

async fn try_enter<R: Right>(request: &Request) -> Result<R, Error> {
    let token = bearer(request).ok_or(Error::Unauthenticated("a bearer token is required"))?;
    let engine = request.data::<Arc<Engine>>().expect("the application carries its engine");
    let caller = engine.authenticate(token).await?;
    if let Some(verified) = request.data::<Verified>() {
        verified.mark();
    }
    engine.enter(caller).await
}

/// The token of the `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
