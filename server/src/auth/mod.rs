//! The guards of handlers. A guard is a parameter of a handler that authenticates the bearer token and holds a handle.
//!
//! The OpenAPI document derives an operation's requirements from the name of the guard's scheme. The name lists scopes,
//! of which a caller needs one, or `all` for every scope. The minimum role follows after `@`. `session` requires a
//! token of an identity provider and no scope.
//!
//! A guard exists only for a caller with the required rights, and holds a handle for exactly these rights. Code with a
//! guard needs no further checks and cannot exceed the caller's rights.

mod issuers;

use std::sync::Arc;

use foldwork_engine::model::access::Caller;
use foldwork_engine::{
    AgentWriter, ContentReader, Engine, Error, Listener, McpReader, McpWriter, Operator, Owner, ProfileReader, Reader,
    Right, SignedIn, Unlocker, Writer,
};
use foldwork_plugins::mcp;
use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;

use crate::http::bearer::{Verified, bearer};
use crate::http::error::ApiError;

pub use issuers::decide;

/// The header that selects one of a user's workspaces.
pub const WORKSPACE: &str = "foldwork-workspace";

/// Grants reading of data. Requires `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Reader>")]
pub struct ApiRead(pub Reader);

/// Grants writing of data. Requires `api:write`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write@editor", checker = "guard::<Writer>")]
pub struct ApiWrite(pub Writer);

/// Grants work on tasks for agents. Requires `api:write`. A key that is bound to agents works for its agents only.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write@editor", checker = "guard::<AgentWriter>")]
pub struct AgentWrite(pub AgentWriter);

/// Grants listening to the channels and feeds of agents. Requires `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Listener>")]
pub struct AgentListen(pub Listener);

/// Grants reading of content. Requires `content:read` (published only) or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "content:read|api:read", checker = "guard::<ContentReader>")]
pub struct ContentRead(pub ContentReader);

/// Grants reading of the caller's profile. Requires `profile:read` or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "profile:read|api:read", checker = "guard::<ProfileReader>")]
pub struct ProfileRead(pub ProfileReader);

/// Grants managing the members of a workspace. Requires every scope and the role `owner`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@owner", checker = "guard::<Owner>")]
pub struct OwnerWrite(pub Owner);

/// Grants operating the installation. Requires every scope and the role `owner` in the installation's first workspace.
/// The owner's plan may have lapsed.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@operator", checker = "guard::<Operator>")]
pub struct OperatorWrite(pub Operator);

/// Grants validating and deactivating devices. Requires `extension:unlock`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "extension:unlock", checker = "guard::<Unlocker>")]
pub struct Unlock(pub Unlocker);

/// Grants accepting and declining invitations. Requires a token of an identity provider. The user need not be a member
/// of any workspace.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "session", checker = "signed_in")]
pub struct Session(pub SignedIn);

async fn signed_in(request: &Request, _: Bearer) -> poem::Result<SignedIn> {
    let (engine, token) = engine_and_token(request).map_err(ApiError::from)?;
    let signed_in = engine.signed_in(token).await.map_err(ApiError::from)?;
    mark_verified(request);
    Ok(signed_in)
}

async fn guard<R: Right>(request: &Request, _: Bearer) -> poem::Result<R> {
    enter(request).await
}

/// Opens the caller's workspace with the rights of `R`.
pub async fn enter<R: Right>(request: &Request) -> poem::Result<R> {
    Ok(try_enter(request).await.map_err(ApiError::from)?)
}

async fn try_enter<R: Right>(request: &Request) -> Result<R, Error> {
    let (engine, caller) = caller(request).await?;
    engine.enter(caller).await
}

/// Returns the access rights of an MCP client that acts for the caller. `upload_url` is the part of an upload URL
/// before the link.
pub async fn model_access(request: &Request, upload_url: String) -> Result<mcp::Access, Error> {
    let (engine, caller) = caller(request).await?;
    let reader = engine.enter::<McpReader>(caller.clone()).await?.into_reader();
    let writer = match engine.enter::<McpWriter>(caller).await {
        Ok(writer) => Ok(writer.into_writer()),
        // Without the right to write, the caller can still use the tools that only read.
        Err(
            error @ (Error::InsufficientScope { .. } | Error::Forbidden { .. } | Error::SubscriptionRequired { .. }),
        ) => Err(ApiError::from(error).body),
        Err(error) => return Err(error),
    };
    Ok(mcp::Access { reader, writer, upload_url: upload_url.into() })
}

/// Authenticates the caller of a request. Runs for every request.
async fn caller(request: &Request) -> Result<(&Engine, Caller), Error> {
    let (engine, token) = engine_and_token(request)?;
    // Reads a header that is not text as an empty id, which matches no workspace.
    let workspace = request.headers().get(WORKSPACE).map(|name| name.to_str().unwrap_or_default());
    let caller = engine.authenticate_in(token, workspace).await?;
    mark_verified(request);
    Ok((engine, caller))
}

/// Returns the request's engine and bearer token.
fn engine_and_token(request: &Request) -> Result<(&Engine, &str), Error> {
    let token = bearer(request).ok_or(Error::Unauthenticated("a bearer token is required"))?;
    Ok((request.data::<Arc<Engine>>().expect("the application adds its engine to each request"), token))
}

fn mark_verified(request: &Request) {
    if let Some(verified) = request.data::<Verified>() {
        verified.mark();
    }
}
