//! The handles of a workspace for a caller with all rights.

use std::sync::Arc;

use anyhow::Context;
use foldwork_engine::model::access::{Caller, Role};
use foldwork_engine::{Engine, Owner, Reader, Writer};

/// The handles of one caller.
#[derive(Clone)]
pub struct Handles {
    pub reader: Reader,
    pub writer: Writer,
    pub owner: Owner,
}

/// Returns the handles for a key with all scopes.
pub async fn enter(engine: &Arc<Engine>, key: &str) -> anyhow::Result<Handles> {
    let caller = engine.authenticate(key).await.context("the key is invalid")?;
    Ok(Handles {
        reader: engine.enter(caller.clone()).await?,
        writer: engine.enter(caller.clone()).await?,
        owner: engine.enter(caller).await?,
    })
}

/// Invites the user of a token to a workspace and accepts the invitation. Returns the user as a caller of this
/// workspace. Without a workspace id, requests with the token still use the user's own workspace.
pub async fn join(engine: &Arc<Engine>, owner: &Owner, token: &str, email: &str, role: Role) -> anyhow::Result<Caller> {
    let invitation = owner.invite(email, role).await?;
    engine.signed_in(token).await?.accept(&invitation.id).await?;
    Ok(engine.authenticate_in(token, Some(&invitation.workspace_id)).await?)
}
