//! Users who come: for the first time, with a workspace of their own, or to join those that they are invited to.

use surrealdb::types::Value as Record;

use super::catalog::{owner_of, workspace_content};
use super::members::{invitation_id, member_content, member_id, read_member};
use super::users::{read_user, user_content};
use super::{Database, Result, convert};
use crate::model::access::{Invitation, Membership, UserRecord, WorkspaceRecord};

/// A user, and where they may go; the place they joined first comes first.
pub struct FoundUser {
    pub user: UserRecord,
    pub memberships: Vec<Membership>,
    /// Whether the user's address is invited somewhere.
    pub is_invited: bool,
}

impl Database {
    /// The user of this id, and whether anybody invited an address.
    pub async fn find_user(&self, id: &str, email: Option<&str>) -> Result<Option<FoundUser>> {
        let values = [
            ("id", convert::record_id("user", id.to_owned())),
            ("name", convert::text(id)),
            ("email", convert::optional_text(email)),
        ];
        let statements = "SELECT *, record::id(id) AS key FROM $id;
            SELECT * FROM member WHERE user_id = $name ORDER BY joined_at, workspace_id;
            SELECT VALUE id FROM invitation WHERE $email != NONE AND email = $email LIMIT 1;";
        let answers = self.query(statements, values).await?;
        let [user, members, invitations] = answers.as_slice() else { return Ok(None) };
        let Some(user) = convert::list(Some(user))?.next().map(read_user).transpose()? else { return Ok(None) };
        let memberships = convert::list(Some(members))?.map(read_member).collect::<Result<_>>()?;
        let is_invited = convert::list(Some(invitations))?.next().is_some();
        Ok(Some(FoundUser { user, memberships, is_invited }))
    }

    /// Writes a user who comes for the first time, with what they have joined: a workspace of their own, or those that
    /// their address is invited to. Somebody who has come meanwhile is a conflict.
    pub async fn write_user(
        &self,
        user: &UserRecord,
        own: Option<&WorkspaceRecord>,
        invitations: &[Invitation],
        now: i64,
    ) -> Result<()> {
        let mut members = accepted(&user.id, invitations, now);
        members.extend(own.map(|own| written(&owner_of(own), None)));
        let values = [
            ("id", convert::record_id("user", user.id.to_string())),
            ("about", user_content(user)),
            ("workspace", own.map_or(Record::None, |own| convert::record_id("workspace", own.id.to_string()))),
            ("own", own.map_or(Record::None, workspace_content)),
            ("members", Record::Array(members.into())),
        ];
        let statements = "BEGIN;
            CREATE $id CONTENT $about RETURN NONE;
            IF $workspace != NONE { CREATE $workspace CONTENT $own RETURN NONE };
            FOR $member IN $members {
                IF $member.invitation != NONE {
                    IF !record::exists($member.invitation) { THROW 'stale head' };
                    DELETE $member.invitation RETURN NONE
                };
                CREATE $member.id CONTENT $member.content RETURN NONE
            };
            COMMIT;";
        self.query(statements, values).await.map(drop)
    }

    /// Lets a known user join what their address is invited to. What was taken back meanwhile is a conflict.
    pub async fn join(&self, user_id: &str, invitations: &[Invitation], now: i64) -> Result<()> {
        let values = [("members", Record::Array(accepted(user_id, invitations, now).into()))];
        let statements = "BEGIN;
            FOR $member IN $members {
                IF !record::exists($member.invitation) { THROW 'stale head' };
                DELETE $member.invitation RETURN NONE;
                IF !record::exists($member.id) { CREATE $member.id CONTENT $member.content RETURN NONE }
            };
            COMMIT;";
        self.query(statements, values).await.map(drop)
    }
}

/// What accepting invitations writes.
fn accepted(user_id: &str, invitations: &[Invitation], now: i64) -> Vec<Record> {
    let one = |invitation: &Invitation| {
        let Invitation { workspace_id, role, .. } = invitation;
        let member =
            Membership { workspace_id: workspace_id.clone(), user_id: user_id.into(), role: *role, joined_at: now };
        written(&member, Some(&invitation.id))
    };
    invitations.iter().map(one).collect()
}

/// A membership with the id under which it is written and the invitation that it comes from.
fn written(member: &Membership, invitation: Option<&str>) -> Record {
    Record::Object(convert::fields([
        ("id", member_id(&member.workspace_id, &member.user_id)),
        ("content", member_content(member)),
        ("invitation", invitation.map_or(Record::None, invitation_id)),
    ]))
}
