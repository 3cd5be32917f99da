//! From a bearer token to a workspace: the guards that handlers ask for in their signatures.
//!
//! A guard exists only for a caller who holds one of its scopes; whoever has one need not check again.

use std::sync::Arc;

use foldwork_engine::model::access::Scope;
use foldwork_engine::{Engine, Error, Workspace};
use poem::Request;
use poem::http::header::AUTHORIZATION;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;

use crate::api::error::ApiError;
use crate::edge::rate::Verified;

/// Reading data: `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "api_read")]
pub struct ApiRead(pub Workspace);

/// Writing data: `api:write`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write", checker = "api_write")]
pub struct ApiWrite(pub Workspace);

/// Reading content: `content:read` (published only) or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "content:read|api:read", checker = "content_read")]
pub struct ContentRead(pub Workspace);

/// Reading who one is: `profile:read` or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "profile:read|api:read", checker = "profile_read")]
pub struct ProfileRead(pub Workspace);

async fn api_read(request: &Request, _: Bearer) -> poem::Result<Workspace> {
    enter(request, &[Scope::ApiRead]).await
}

async fn api_write(request: &Request, _: Bearer) -> poem::Result<Workspace> {
    enter(request, &[Scope::ApiWrite]).await
}

async fn content_read(request: &Request, _: Bearer) -> poem::Result<Workspace> {
    enter(request, &[Scope::ContentRead, Scope::ApiRead]).await
}

async fn profile_read(request: &Request, _: Bearer) -> poem::Result<Workspace> {
    enter(request, &[Scope::ProfileRead, Scope::ApiRead]).await
}

/// The workspace of whoever asks, for one who holds one of these scopes.
pub async fn enter(request: &Request, one_of: &[Scope]) -> poem::Result<Workspace> {
    Ok(try_enter(request, one_of).await.map_err(ApiError::from)?)
}

async fn try_enter(request: &Request, one_of: &[Scope]) -> Result<Workspace, Error> {
    let token = bearer(request).ok_or(Error::Unauthenticated("a bearer token is required"))?;
    let engine = request.data::<Arc<Engine>>().expect("the application carries its engine");
    let caller = engine.authenticate(token).await?;
    if let Some(verified) = request.data::<Verified>() {
        verified.mark();
    }
    engine.enter(caller, one_of).await
}

/// The token of the `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
