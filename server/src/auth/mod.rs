//! From a bearer token to a right: the guards that handlers ask for in their signatures.
//!
//! The name of a scheme is what the document makes of it: scopes, one of which is needed, or `all` of them, and after `@`
//! the least role; `session` needs a token of an identity provider and no scope.
//!
//! A guard exists only for a caller who has its right, and holds the handle that this right gives: whoever has one
//! need not check again, and can do no more.

mod issuers;

use std::sync::Arc;

use foldwork_engine::model::access::Caller;
use foldwork_engine::{
    ContentReader, Engine, Error, Listener, McpReader, McpWriter, Operator, Owner, ProfileReader, Reader, Right,
    SignedIn, Unlocker, Writer,
};
use foldwork_plugins::mcp;
use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;

use crate::http::bearer::{Verified, bearer};
use crate::http::error::ApiError;

pub use issuers::decide;

/// Which of several workspaces a user means.
pub const WORKSPACE: &str = "foldwork-workspace";

/// Reading data: `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Reader>")]
pub struct ApiRead(pub Reader);

/// Writing data: `api:write`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write@editor", checker = "guard::<Writer>")]
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

/// Deciding who may be in the workspace: every scope, of its owner.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@owner", checker = "guard::<Owner>")]
pub struct OwnerWrite(pub Owner);

/// Running the installation: every scope, of an owner of its first workspace, whose plan may have lapsed.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@operator", checker = "guard::<Operator>")]
pub struct OperatorWrite(pub Operator);

/// Unlocking apps on devices: `extension:unlock`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "extension:unlock", checker = "guard::<Unlocker>")]
pub struct Unlock(pub Unlocker);

/// Answering invitations: a token of an identity provider, whose user need not be in any workspace.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "session", checker = "signed_in")]
pub struct Session(pub SignedIn);

async fn signed_in(request: &Request, _: Bearer) -> poem::Result<SignedIn> {
    let (engine, token) = shown(request).map_err(ApiError::from)?;
    let signed_in = engine.signed_in(token).await.map_err(ApiError::from)?;
    mark_verified(request);
    Ok(signed_in)
}

async fn guard<R: Right>(request: &Request, _: Bearer) -> poem::Result<R> {
    enter(request).await
}

/// The workspace of whoever asks, by a right that they have.
pub async fn enter<R: Right>(request: &Request) -> poem::Result<R> {
    Ok(try_enter(request).await.map_err(ApiError::from)?)
}

async fn try_enter<R: Right>(request: &Request) -> Result<R, Error> {
    let (engine, caller) = caller(request).await?;
    engine.enter(caller).await
}

/// What a model may use on behalf of whoever asks. What URLs of its links to upload begin with is told to it.
pub async fn model_access(request: &Request, upload_url: String) -> Result<mcp::Access, Error> {
    let (engine, caller) = caller(request).await?;
    let reader = engine.enter::<McpReader>(caller.clone()).await?.into_reader();
    let writer = match engine.enter::<McpWriter>(caller).await {
        Ok(writer) => Ok(writer.into_writer()),
        // Some tools are for others: that keeps nobody from the rest.
        Err(
            error @ (Error::InsufficientScope { .. } | Error::Forbidden { .. } | Error::SubscriptionRequired { .. }),
        ) => Err(ApiError::from(error).body),
        Err(error) => return Err(error),
    };
    Ok(mcp::Access { reader, writer, upload_url: upload_url.into() })
}

/// Who asks, found out anew for each request.
async fn caller(request: &Request) -> Result<(&Engine, Caller), Error> {
    let (engine, token) = shown(request)?;
    // A name that is no text is nobody's.
    let workspace = request.headers().get(WORKSPACE).map(|name| name.to_str().unwrap_or_default());
    let caller = engine.authenticate_in(token, workspace).await?;
    mark_verified(request);
    Ok((engine, caller))
}

/// What a request shows, and who knows whom it stands for.
fn shown(request: &Request) -> Result<(&Engine, &str), Error> {
    let token = bearer(request).ok_or(Error::Unauthenticated("a bearer token is required"))?;
    Ok((request.data::<Arc<Engine>>().expect("the application carries its engine"), token))
}

fn mark_verified(request: &Request) {
    if let Some(verified) = request.data::<Verified>() {
        verified.mark();
    }
}
