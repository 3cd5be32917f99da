//! The guards of handlers. A guard is a parameter of a handler that authenticates the bearer token and holds a handle
//! through which the handler calls the engine.
//!
//! The OpenAPI document derives an operation's requirements from the name of the guard's scheme. The name is a list of
//! scopes separated by `|`, and a caller needs one of these scopes. The name `all` requires every scope. The minimum
//! role follows after `@`. The name `session` requires a token of an identity provider and no scope.
//!
//! A guard exists only for a caller with the required rights, and holds a handle for exactly these rights. Code with a
//! guard needs no further checks and cannot exceed the caller's rights.

mod issuers;

use std::sync::Arc;

use foldwork_engine::model::access::Caller;
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::workspace::Consistency;
use foldwork_engine::{
    Administrator, AgentWriter, ContentReader, Engine, Error, Listener, McpReader, McpWriter, Owner, ProfileReader,
    Reader, Right, SignedIn, Unlocker, Writer,
};
use foldwork_plugins::mcp;
use poem::Request;
use poem_openapi::SecurityScheme;
use poem_openapi::auth::Bearer;

use crate::http::bearer::{SenderIdentity, VerifiedIdentity, WORKSPACE, bearer};
use crate::http::error::ApiError;
use crate::http::request_fault::RequestFault;

pub use issuers::configure;

/// The query parameter that determines whether the server fetches the newest events from the store before it reads.
pub const CONSISTENCY: &str = "consistency";

/// The guard of operations that read data. Requires `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Reader>")]
pub struct ApiRead(pub Reader);

/// The guard of operations that write data. Requires `api:write` and at least the role `editor`. Rejects keys that are
/// bound to agents.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write@editor", checker = "guard::<Writer>")]
pub struct ApiWrite(pub Writer);

/// The guard of write operations that agents can call, such as operations on tasks. Requires `api:write` and at least
/// the role `editor`. A key that is bound to agents acts only for these agents.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:write@editor", checker = "guard::<AgentWriter>")]
pub struct AgentWrite(pub AgentWriter);

/// The guard of operations that read the channels and feeds of agents, or report the presence of agents. Requires
/// `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "api:read", checker = "guard::<Listener>")]
pub struct AgentListen(pub Listener);

/// The guard of operations that read content. Requires `content:read` (published content only) or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "content:read|api:read", checker = "guard::<ContentReader>")]
pub struct ContentRead(pub ContentReader);

/// The guard of operations that read the caller's profile or workspace. Requires `profile:read` or `api:read`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "profile:read|api:read", checker = "guard::<ProfileReader>")]
pub struct ProfileRead(pub ProfileReader);

/// The guard of operations that manage the members of a workspace. Requires every scope and the role `owner`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@owner", checker = "guard::<Owner>")]
pub struct OwnerWrite(pub Owner);

/// The guard of operations on the installation. Requires every scope and the role `owner` in the installation's first
/// workspace. An owner whose plan has lapsed keeps these rights.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "all@operator", checker = "guard::<Administrator>")]
pub struct OperatorWrite(pub Administrator);

/// The guard of operations that validate and deactivate devices. Requires `extension:unlock`.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "extension:unlock", checker = "guard::<Unlocker>")]
pub struct Unlock(pub Unlocker);

/// The guard of operations on the caller's own invitations. Requires a token of an identity provider. The user need not
/// be a member of any workspace.
#[derive(SecurityScheme)]
#[oai(ty = "bearer", rename = "session", checker = "signed_in")]
pub struct SignedInUser(pub SignedIn);

async fn signed_in(request: &Request, _: Bearer) -> poem::Result<SignedIn> {
    let (engine, token) = engine_and_token(request).map_err(ApiError::from)?;
    let signed_in = engine.signed_in(token).await.map_err(ApiError::from)?;
    let identity = SenderIdentity { user_id: Some(signed_in.user_id().into()), key_id: None, workspace_id: None };
    mark_verified(request, identity);
    RequestFault::report(request)?;
    Ok(signed_in)
}

async fn guard<R: Right>(request: &Request, _: Bearer) -> poem::Result<R> {
    let handle = enter(request).await?;
    RequestFault::report(request)?;
    Ok(handle)
}

/// Opens the caller's workspace with the rights of `R`.
pub async fn enter<R: Right>(request: &Request) -> poem::Result<R> {
    Ok(try_enter(request).await.map_err(ApiError::from)?)
}

async fn try_enter<R: Right>(request: &Request) -> Result<R, Error> {
    let requested = consistency(request);
    // Reports an unknown consistency only to a caller with access.
    let consistency = *requested.as_ref().unwrap_or(&Consistency::Strong);
    let (engine, caller) = caller(request, consistency).await?;
    let handle = engine.enter_with(caller, consistency).await?;
    requested.map(|_| handle)
}

/// Returns the consistency in the query parameter [`CONSISTENCY`]. The default is [`Consistency::Strong`]. Fails for an
/// unknown value.
fn consistency(request: &Request) -> Result<Consistency, Error> {
    // The handler reports a query that cannot be parsed.
    let sent: Vec<(String, String)> = request.params().unwrap_or_default();
    match sent.iter().find(|(name, _)| name == CONSISTENCY).map(|(_, value)| &**value) {
        None | Some("strong") => Ok(Consistency::Strong),
        Some("eventual") => Ok(Consistency::Eventual),
        Some(other) => {
            let other = excerpt_of(other);
            Err(Error::invalid(format!("{CONSISTENCY}: unknown value '{other}'; expected strong or eventual")))
        }
    }
}

/// Returns the handles of an MCP client, with the rights of the caller. If the caller may not write, `writer` is an
/// error. `upload_url` is the first part of the URL of an upload link, before the link's token.
pub async fn model_access(request: &Request, upload_url: String) -> Result<mcp::CallerHandles, Error> {
    let (engine, caller) = caller(request, Consistency::Strong).await?;
    let reader = engine.enter::<McpReader>(caller.clone()).await?.into_reader();
    let writer = match engine.enter::<McpWriter>(caller).await {
        Ok(writer) => Ok(writer.into_writer()),
        // Without the right to write, the caller can still use the tools that only read.
        Err(
            error @ (Error::InsufficientScope { .. } | Error::Forbidden { .. } | Error::SubscriptionRequired { .. }),
        ) => Err(ApiError::from(error).body),
        Err(error) => return Err(error),
    };
    Ok(mcp::CallerHandles {
        reader,
        writer,
        upload_url: upload_url.into(),
        sent: None,
        result: mcp::ExactResult::default(),
    })
}

/// Authenticates the caller of a request in the workspace that the header [`WORKSPACE`] selects.
async fn caller(request: &Request, consistency: Consistency) -> Result<(&Engine, Caller), Error> {
    let (engine, token) = engine_and_token(request)?;
    // Reads a header that is not text as an empty id, which matches no workspace.
    let workspace = request.headers().get(WORKSPACE).map(|name| name.to_str().unwrap_or_default());
    let caller = match consistency {
        Consistency::Strong => engine.authenticate_in(token, workspace).await?,
        Consistency::Eventual => engine.authenticate_eventually(token, workspace).await?,
    };
    mark_verified(request, SenderIdentity::from(&caller));
    Ok((engine, caller))
}

/// Returns the request's engine and bearer token.
fn engine_and_token(request: &Request) -> Result<(&Engine, &str), Error> {
    let token = bearer(request).ok_or(Error::Unauthenticated("a bearer token is required"))?;
    Ok((request.data::<Arc<Engine>>().expect("the application adds its engine to each request"), token))
}

fn mark_verified(request: &Request, identity: SenderIdentity) {
    if let Some(verified) = request.data::<VerifiedIdentity>() {
        verified.mark(identity);
    }
}
