//! `/profile` and `/members`.

use foldwork_engine::model::access::{Invitation, Membership, Role, Scope, UserRecord};
use foldwork_engine::model::date::format_date;
use foldwork_engine::{Error, Member};
use poem_openapi::param::Path;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::Section;
use crate::auth::{ApiRead, OwnerWrite, ProfileRead};
use crate::http::error::{ApiResult, answer};
use crate::wire::body::{Body, Written};
use crate::wire::closed_sets::{Memberships, Roles, Scopes, Word};
use crate::wire::page::PageBody;
use crate::wire::plan::PlanBody;

pub struct Api;

/// Who asks.
#[derive(Object, Serialize)]
struct Profile {
    id: String,
    #[oai(nullable)]
    name: Option<String>,
    /// For callers who hold `email:read`.
    #[oai(nullable)]
    email: Option<String>,
    workspace_id: String,
    role: Word<Roles>,
    /// What the caller may do.
    scopes: Vec<Word<Scopes>>,
    plan: PlanBody,
}

/// Somebody who is in the workspace, or is to be.
#[derive(Object, Serialize)]
#[oai(rename = "Member")]
struct MemberBody {
    /// The user's id; of somebody who is invited, the invitation's.
    id: String,
    #[oai(nullable)]
    name: Option<String>,
    /// For callers who hold `email:read`.
    #[oai(nullable)]
    email: Option<String>,
    role: Word<Roles>,
    status: Word<Memberships>,
    /// When they joined, or were invited.
    created_at: String,
}

impl MemberBody {
    fn new(member: &Member, shows_email: bool) -> MemberBody {
        let (id, role, name, email, at, status) = match member {
            Member::Joined(Membership { user_id, role, joined_at, .. }, UserRecord { name, email, .. }) => {
                (user_id, role, name.as_deref(), email.as_deref(), joined_at, "active")
            }
            Member::Invited(Invitation { id, role, email, created_at, .. }) => {
                (id, role, None, Some(&**email), created_at, "invited")
            }
        };
        MemberBody {
            id: id.to_string(),
            name: name.map(str::to_owned),
            email: email.filter(|_| shows_email).map(str::to_owned),
            role: role.name().into(),
            status: status.into(),
            created_at: format_date(*at),
        }
    }
}

/// Everybody in the workspace.
#[derive(Object)]
struct MemberPage {
    data: Vec<MemberBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

/// Somebody who is invited.
#[derive(Object, Deserialize)]
struct InviteMember {
    email: String,
    /// An editor where it is not given.
    #[oai(nullable)]
    role: Option<Word<Roles>>,
}

/// What a member is to be.
#[derive(Object, Deserialize)]
struct ChangeMember {
    role: Word<Roles>,
}

#[derive(ApiResponse)]
enum Invited {
    /// The user who signs in with the address may accept.
    #[oai(status = 201)]
    Done(Written<MemberBody>, #[oai(header = "Location")] String),
}

#[derive(ApiResponse)]
enum Removed {
    /// Nothing opens the workspace to them any more.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::Members")]
impl Api {
    /// Who asks: the user, what they are in the workspace, and their plan.
    ///
    /// The e-mail address is told to keys with `email:read` alone.
    #[oai(path = "/profile", method = "get", operation_id = "get_profile")]
    async fn get_profile(&self, access: ProfileRead) -> ApiResult<Written<Profile>> {
        let user = answer(access.0.profile().await)?;
        let caller = access.0.caller();
        Ok(Written::new(&Profile {
            id: user.id.to_string(),
            name: user.name.as_deref().map(str::to_owned),
            email: user.email.as_deref().map(str::to_owned),
            workspace_id: caller.workspace_id().to_owned(),
            role: caller.role().name().into(),
            scopes: caller.scopes().iter().map(|scope| scope.name().into()).collect(),
            plan: PlanBody::from(caller.plan()),
        }))
    }

    /// Everybody in the workspace, and after them those who are invited; the oldest first.
    ///
    /// All of them in one page.
    #[oai(path = "/members", method = "get", operation_id = "list_members")]
    async fn list_members(&self, access: ApiRead) -> ApiResult<Written<MemberPage>> {
        let shows_email = access.0.caller().holds(Scope::EmailRead);
        let members = answer(access.0.list_members().await)?;
        let data: Vec<MemberBody> = members.iter().map(|member| MemberBody::new(member, shows_email)).collect();
        Ok(Written::new(&PageBody { data, next_cursor: None }))
    }

    /// Invites an e-mail address: the user who signs in with it, verified, may accept (`POST /invitations/{id}/accept`).
    ///
    /// Only owners invite (`owner_required`). The same address twice is one invitation, with the later role. An invitation
    /// ends with the key that made it. Addresses are compared without regard to the case of ASCII letters, and exactly
    /// otherwise.
    #[oai(path = "/members", method = "post", operation_id = "invite_member")]
    async fn invite_member(&self, access: OwnerWrite, body: Body<InviteMember>) -> ApiResult<Invited> {
        let role = answer(body.role.as_deref().map_or(Ok(Role::Editor), read_role))?;
        let invitation = answer(access.0.invite(&body.email, role).await)?;
        let location = format!("{}/members/{}", crate::API, invitation.id);
        Ok(Invited::Done(Written::new(&MemberBody::new(&Member::Invited(invitation), true)), location))
    }

    /// Gives a member, or somebody who is invited, another role. Whose workspace it is stays its owner.
    ///
    /// What their keys may do follows at once.
    #[oai(path = "/members/:member_id", method = "patch", operation_id = "update_member")]
    async fn update_member(
        &self,
        access: OwnerWrite,
        member_id: Path<String>,
        body: Body<ChangeMember>,
    ) -> ApiResult<Written<MemberBody>> {
        let role = answer(read_role(&body.role))?;
        let shows_email = access.0.caller().holds(Scope::EmailRead);
        let member = answer(access.0.change_role(&member_id, role).await)?;
        Ok(Written::new(&MemberBody::new(&member, shows_email)))
    }

    /// Takes a member out of the workspace, with all their keys in it, at once; or takes an invitation back.
    ///
    /// Their things stay in the workspace.
    #[oai(path = "/members/:member_id", method = "delete", operation_id = "remove_member")]
    async fn remove_member(&self, access: OwnerWrite, member_id: Path<String>) -> ApiResult<Removed> {
        answer(access.0.remove_member(&member_id).await)?;
        Ok(Removed::Done)
    }
}

fn read_role(role: &str) -> Result<Role, Error> {
    let unknown = || Error::invalid_at("/role", "expected owner, editor or viewer");
    Role::parse(role).ok_or_else(unknown)
}
