//! Invitations in the control database. If several requests accept an invitation at the same time, only one succeeds.

use surrealdb::types::Value as Record;

use super::keys::{MAKER, ORIGIN, origin_id};
use super::members::{AccessResult, member_id, refused};
use crate::model::access::{Invitation, Membership, Role};
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Error, Result, convert, retry};

stored_record!(Invitation as "invitation" [id] {
    workspace_id, email, role, created_at, expires_at, derived_from
});

/// The maximum number of invitations that one query returns for an address. Further invitations are returned after some
/// of the returned invitations were deleted or have expired.
const MAX_PER_ADDRESS: usize = 200;

/// The statement that checks whether the user who creates or changes an invitation is still an owner. Must follow
/// [`MAKER`] in the same transaction. `MAKER` writes the user's membership, so a concurrent change of the user's role
/// conflicts.
const OWNER: &str = "IF (SELECT VALUE role FROM ONLY $member) != 'owner' { THROW 'origin gone' };";

/// The statements that limit the invitations of `$workspace` to 1,000. At the limit, the statements delete the
/// invitations that have expired. The statements write the workspace `$about`, so that concurrent creations of
/// invitations conflict. Without this conflict, the count could miss an invitation.
const INVITATION_LIMIT: &str = "
UPDATE $about SET invitations_made = (invitations_made ?? 0) + 1 RETURN NONE;
IF !record::exists($id) AND ((SELECT VALUE count() FROM invitation WHERE workspace_id = $workspace GROUP ALL)[0] ?? 0) >= 1000 {
    DELETE invitation WHERE workspace_id = $workspace AND expires_at != NONE AND expires_at <= $now RETURN NONE;
    IF ((SELECT VALUE count() FROM invitation WHERE workspace_id = $workspace GROUP ALL)[0] ?? 0) >= 1000 {
        THROW 'too many invitations'
    }
};";

impl Database {
    /// Returns the invitations of a workspace, the oldest first.
    pub async fn read_invitations(&self, workspace_id: &str) -> Result<Vec<Invitation>> {
        let statement =
            "SELECT *, record::id(id) AS key FROM invitation WHERE workspace_id = $workspace ORDER BY created_at, id";
        self.read_all(statement, [("workspace", convert::text(workspace_id))], Invitation::read).await
    }

    /// Returns the unexpired invitations for an email address, the oldest first. Returns at most [`MAX_PER_ADDRESS`]
    /// invitations.
    pub async fn invitations_of(&self, email: &str, now: i64) -> Result<Vec<Invitation>> {
        let statement = "SELECT *, record::id(id) AS key FROM invitation
            WHERE email = $email AND (expires_at = NONE OR expires_at > $now) ORDER BY created_at, id LIMIT $limit";
        let values = [
            ("email", convert::text(email)),
            ("now", convert::integer(now)),
            ("limit", convert::integer(MAX_PER_ADDRESS)),
        ];
        self.read_all(statement, values, Invitation::read).await
    }

    /// Writes an invitation that an owner of the workspace creates. Replaces an invitation with the same id. Fails with
    /// the reason if the user is no longer an owner, if the key that creates the invitation or one of its ancestors no
    /// longer exists, or if the invitation is new and the workspace has the maximum number of invitations.
    pub async fn write_invitation(&self, invitation: &Invitation, user_id: &str) -> Result<AccessResult<()>> {
        let mut content = invitation.fields();
        content.insert("made_by", convert::text(user_id));
        let values = [
            ("id", invitation_id(&invitation.id)),
            ("content", Record::Object(content)),
            ("member", member_id(&invitation.workspace_id, user_id)),
            ("origin", origin_id(invitation.derived_from.as_deref())),
            ("workspace", convert::text(&invitation.workspace_id)),
            ("about", convert::record_id("workspace", &*invitation.workspace_id)),
            ("now", convert::integer(invitation.created_at)),
        ];
        let statements = format!(
            "BEGIN; {MAKER} {OWNER} {ORIGIN} {INVITATION_LIMIT} UPSERT $id CONTENT $content RETURN NONE; COMMIT;"
        );
        refused(self.query_again(&statements, values).await.map(drop))
    }

    /// Changes the role of an invitation, and records the user `user_id` as the maker of the invitation. Returns the
    /// changed invitation, or `None` if the invitation does not exist any more, for example because it was accepted.
    /// Fails with the reason if the user is no longer an owner.
    pub async fn write_invited_role(
        &self,
        workspace_id: &str,
        id: &str,
        role: Role,
        user_id: &str,
    ) -> Result<AccessResult<Option<Invitation>>> {
        let values = [
            ("id", invitation_id(id)),
            ("workspace", convert::text(workspace_id)),
            ("role", convert::text(role.name())),
            ("key", convert::text(id)),
            ("user", convert::text(user_id)),
            ("member", member_id(workspace_id, user_id)),
        ];
        let statements = format!(
            "BEGIN; {MAKER} {OWNER}
            UPDATE $id SET role = $role, made_by = $user WHERE workspace_id = $workspace RETURN *, $key AS key;
            COMMIT;"
        );
        let changed = |answers: Vec<Record>| convert::find_with(&answers, "email").map(Invitation::read).transpose();
        refused(self.query_again(&statements, values).await.and_then(changed))
    }

    /// Makes the invited user a member of the workspace, and deletes the invitation. An existing member keeps their
    /// role. Returns the membership, or `None` if the address has no unexpired invitation with this id, or if the key
    /// that created the invitation, or one of its ancestors, no longer exists.
    pub async fn accept_invitation(
        &self,
        id: &str,
        email: &str,
        user_id: &str,
        now: i64,
    ) -> Result<Option<Membership>> {
        let attempt = || async {
            let Some(found) = self.find_invitation(id, email, now).await? else { return Ok(None) };
            let member = Membership {
                workspace_id: found.workspace_id.clone(),
                user_id: user_id.into(),
                role: found.role,
                joined_at: now,
            };
            // The statements fail if the key that created the invitation, or one of its ancestors, no longer exists.
            Ok::<_, Error>(refused(self.try_accept(&found, &member).await)?.ok())
        };
        retry::after_conflicts(attempt).await
    }

    async fn try_accept(&self, invitation: &Invitation, member: &Membership) -> Result<Membership> {
        let values = [
            ("invitation", invitation_id(&invitation.id)),
            ("email", convert::text(&invitation.email)),
            ("role", convert::text(invitation.role.name())),
            ("maker", convert::optional_text(invitation.derived_from.as_deref())),
            ("member", member_id(&member.workspace_id, &member.user_id)),
            ("content", Record::Object(member.fields())),
            ("origin", origin_id(invitation.derived_from.as_deref())),
        ];
        // The statements fail if the role or the creating key of the invitation has changed since the invitation was
        // read.
        let statements = format!(
            "BEGIN;
            LET $found = (SELECT * FROM ONLY $invitation);
            IF $found = NONE OR $found.email != $email OR $found.role != $role OR $found.derived_from != $maker {{
                THROW 'stale head'
            }};
            {ORIGIN}
            DELETE $invitation RETURN NONE;
            IF !record::exists($member) {{ CREATE $member CONTENT $content RETURN NONE }};
            RETURN (SELECT * FROM $member);
            COMMIT;"
        );
        let answers = self.query(&statements, values).await?;
        let found = convert::find_with(&answers, "joined_at");
        let missing = || {
            let (user, id) = (&member.user_id, &invitation.id);
            Err(Error::corrupt(format!("the user '{user}' has no membership after accepting the invitation '{id}'")))
        };
        found.map_or_else(missing, Membership::read)
    }

    async fn find_invitation(&self, id: &str, email: &str, now: i64) -> Result<Option<Invitation>> {
        let found = self.read_record("invitation", id).await?;
        let is_open = |found: &Invitation| *found.email == *email && found.expires_at.is_none_or(|end| end > now);
        Ok(found.filter(is_open))
    }

    /// Deletes an invitation for an email address. Returns whether the invitation existed.
    pub async fn decline_invitation(&self, id: &str, email: &str) -> Result<bool> {
        let values = [("id", invitation_id(id)), ("email", convert::text(email))];
        convert::has_rows(&self.query_again("DELETE $id WHERE email = $email RETURN BEFORE", values).await?)
    }

    /// Deletes an invitation of a workspace. Returns whether the invitation existed.
    pub async fn delete_invitation(&self, workspace_id: &str, id: &str) -> Result<bool> {
        let values = [("id", invitation_id(id)), ("workspace", convert::text(workspace_id))];
        let statement = "DELETE $id WHERE workspace_id = $workspace RETURN BEFORE";
        convert::has_rows(&self.query_again(statement, values).await?)
    }
}

fn invitation_id(id: &str) -> Record {
    convert::record_id("invitation", id.to_owned())
}
