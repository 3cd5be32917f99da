//! Members and keys in an export. Only an export from a store that no server has open contains members and keys.

use std::sync::Arc;

use anyhow::Context;
use foldwork_engine::model::access::{KeyRecord, Membership, RemovedMember, Role, Scope, UserRecord};
use foldwork_engine::model::closed_set::names;
use foldwork_engine::{Engine, ImportOutcome};

use super::lines::{self, ExportedAccess, ExportedKey, ExportedMember, MemberRemoval, RevokedKey};
use super::store::OpenStore;
use crate::cli::output::Output;

/// Writes the members and keys of a workspace, its revoked keys, and its removed members.
pub async fn write(store: &OpenStore, output: &mut Output) -> anyhow::Result<()> {
    let id = &store.workspace.record().id;
    for (member, user) in store.engine.people_of(id).await? {
        let member = ExportedMember {
            user_id: member.user_id.to_string(),
            role: member.role.name().to_owned(),
            joined_at: member.joined_at,
            email: user.email.as_deref().map(str::to_owned),
            email_verified: user.email_verified,
            name: user.name.as_deref().map(str::to_owned),
        };
        output.write_line(&lines::item_text("member", &member)?)?;
    }
    for key in store.engine.key_records_of(id).await? {
        let key = ExportedKey {
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
        output.write_line(&lines::item_text("key", &key)?)?;
    }
    for key in store.engine.revoked_keys_of(id).await? {
        let revoked_key = RevokedKey { id: key.to_string() };
        output.write_line(&lines::item_text("revoked_key", &revoked_key)?)?;
    }
    for member in store.engine.removed_members_of(id).await? {
        let removed_member = MemberRemoval { user_id: member.user_id.to_string(), removed_at: member.removed_at };
        output.write_line(&lines::item_text("removed_member", &removed_member)?)?;
    }
    Ok(())
}

/// The numbers of members and keys in an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct People {
    /// The number of new members.
    pub members: u64,
    /// The number of new keys.
    pub keys: u64,
    /// The number of members who were removed or got a lower role, and of keys that were revoked or expire earlier.
    pub ended: u64,
    /// The number of members and keys that were left out. The possible reasons: the workspace had removed the member;
    /// the key, or a key from which it was derived, was revoked; the key's user was not a member; the key existed in
    /// another workspace; another key had the same hash; the import would have raised a role; the import would have
    /// demoted or removed the owner of the workspace.
    pub refused: u64,
    /// The number of lines that were left out, because the workspace existed before the import and `--with-members` was
    /// not set.
    pub left_out: u64,
}

impl People {
    /// Imports a line about access to a workspace, and counts the outcome.
    pub async fn import(
        &mut self,
        engine: &Engine,
        workspace_id: &Arc<str>,
        line: ExportedAccess,
    ) -> anyhow::Result<()> {
        let (outcome, added) = match line {
            ExportedAccess::Member(member) => (import_member(engine, workspace_id, member).await?, &mut self.members),
            ExportedAccess::Key(key) => (import_key(engine, workspace_id, key).await?, &mut self.keys),
            ExportedAccess::RevokedKey(key) => {
                (engine.import_revocation(workspace_id, &key.id.into()).await?, &mut self.keys)
            }
            ExportedAccess::RemovedMember(MemberRemoval { user_id, removed_at }) => {
                let removed = RemovedMember { user_id: user_id.into(), removed_at };
                (engine.import_removal(workspace_id, &removed).await?, &mut self.members)
            }
        };
        match outcome {
            ImportOutcome::Added => *added += 1,
            ImportOutcome::Ended => self.ended += 1,
            ImportOutcome::Refused => self.refused += 1,
            ImportOutcome::Unchanged => {}
        }
        Ok(())
    }

    /// Returns lines for the import's output: a line for each of `ended`, `refused` and `left_out` that is not 0.
    pub fn remarks(&self) -> Vec<String> {
        let remarks = [
            (
                self.ended,
                "members and keys removed, revoked, or given a lower role or an earlier expiry, as in the file",
            ),
            (
                self.refused,
                "members and keys left out: removed or revoked in this workspace, the key's user is not a member, the \
                 key exists in another workspace, or the import would raise a role, or demote or remove the owner of \
                 the workspace",
            ),
            (
                self.left_out,
                "lines of members and keys left out, because the workspace exists; --with-members imports them",
            ),
        ];
        remarks.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect()
    }
}

async fn import_member(
    engine: &Engine,
    workspace_id: &Arc<str>,
    member: ExportedMember,
) -> anyhow::Result<ImportOutcome> {
    let roles = names::<Role>().join(", ");
    let role = Role::parse(&member.role)
        .with_context(|| format!("'{:.40}' is not a role: expected one of {roles}", member.role))?;
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
    Ok(engine.import_member(&membership, &user).await?)
}

async fn import_key(engine: &Engine, workspace_id: &Arc<str>, key: ExportedKey) -> anyhow::Result<ImportOutcome> {
    let scopes = names::<Scope>().join(", ");
    let expected = |name: &String| format!("'{name:.40}' is not a scope: expected one of {scopes}");
    let scope = |name: &String| Scope::parse(name).with_context(|| expected(name));
    // Rejects an empty list of agents, because the store would treat such a key as a key without restrictions.
    let has_agents = key.agents.as_ref().is_none_or(|agents| !agents.is_empty());
    anyhow::ensure!(
        has_agents,
        "the list of agents of the key '{:.40}' is empty; expected at least one agent or no list",
        key.id
    );
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
    Ok(engine.import_key(&record).await?)
}
