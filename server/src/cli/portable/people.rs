//! Members and keys in an export. Only an export from a store that no server has open contains them.

use std::sync::Arc;

use anyhow::Context;
use foldwork_engine::Engine;
use foldwork_engine::model::access::{KeyRecord, Membership, Role, Scope, UserRecord};
use foldwork_engine::model::closed_set::names;

use super::lines::{self, Key, KeyLine, Member, MemberLine};
use super::store::OpenStore;
use crate::cli::output::Output;

/// Writes the members and keys of a workspace.
pub async fn write(store: &OpenStore, output: &mut Output) -> anyhow::Result<()> {
    let id = &store.workspace.record().id;
    for (member, user) in store.engine.people_of(id).await? {
        let member = Member {
            user_id: member.user_id.to_string(),
            role: member.role.name().to_owned(),
            joined_at: member.joined_at,
            email: user.email.as_deref().map(str::to_owned),
            email_verified: user.email_verified,
            name: user.name.as_deref().map(str::to_owned),
        };
        output.write_line(&lines::text(&MemberLine { member })?)?;
    }
    for key in store.engine.key_records_of(id).await? {
        let key = Key {
            id: key.id.to_string(),
            user_id: key.user_id.to_string(),
            name: key.name,
            scopes: key.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            display: key.display,
            hash: key.hash,
            opens_all: key.opens_all,
            agents: key.agents.map(|agents| agents.iter().map(|id| id.to_string()).collect()),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            derived_from: key.derived_from.as_deref().map(str::to_owned),
            ancestors: key.ancestors.iter().map(|id| id.to_string()).collect(),
        };
        output.write_line(&lines::text(&KeyLine { key })?)?;
    }
    Ok(())
}

/// Adds a member to a workspace unless the user is already a member. Returns whether the member was added.
pub async fn restore_member(engine: &Engine, workspace_id: &Arc<str>, member: Member) -> anyhow::Result<bool> {
    let roles = names::<Role>().join(", ");
    let role = Role::parse(&member.role)
        .with_context(|| format!("'{}' is not a role: expected one of {roles}", member.role))?;
    let user_id: Arc<str> = member.user_id.into();
    let membership =
        Membership { workspace_id: workspace_id.clone(), user_id: user_id.clone(), role, joined_at: member.joined_at };
    let user = UserRecord {
        id: user_id,
        email: member.email.map(Arc::from),
        email_verified: member.email_verified,
        name: member.name.map(Arc::from),
        plan: None,
    };
    Ok(engine.restore_member(&membership, &user).await?)
}

/// Adds a key to a workspace unless the store already has a key with its id or its secret. Returns whether the key was
/// added.
pub async fn restore_key(engine: &Engine, workspace_id: &Arc<str>, key: Key) -> anyhow::Result<bool> {
    let scope = |name: &String| Scope::parse(name).with_context(|| format!("'{name}' is not a scope"));
    // Rejects an empty list of agents, because the store would treat such a key as a key without restrictions.
    anyhow::ensure!(key.agents.as_ref().is_none_or(|agents| !agents.is_empty()), "the key has an empty list of agents");
    let record = KeyRecord {
        id: key.id.into(),
        workspace_id: workspace_id.clone(),
        user_id: key.user_id.into(),
        name: key.name,
        scopes: key.scopes.iter().map(scope).collect::<anyhow::Result<_>>()?,
        display: key.display,
        hash: key.hash,
        opens_all: key.opens_all,
        agents: key.agents.map(|agents| agents.into_iter().map(Arc::from).collect()),
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
        derived_from: key.derived_from.map(Arc::from),
        ancestors: key.ancestors.into_iter().map(Arc::from).collect(),
    };
    Ok(engine.restore_key(&record).await?)
}
