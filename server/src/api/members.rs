//! `/profile` and `/members`: the caller, and the members of the workspace.

use foldwork_engine::model::access::{Caller, Invitation, Membership, Role, Scope, UserRecord};
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{Error, Member, Owner};
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::{ApiRead, OwnerWrite, ProfileRead};
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{Memberships, OneOf, Roles, Scopes};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent_kept, to_json_bytes};
use crate::wire::list::{ListOrder, ListPart, time_key};
use crate::wire::page::{PageBody, PageBytes, listed};
use crate::wire::plan::PlanBody;
use crate::wire::response::no_content;
use crate::wire::shown::shown;
use crate::wire::successor::{read_successor, successor_parameter};

pub struct Api;

shown! {
    /// The caller's user and workspace.
    struct Profile from (user, caller): (&UserRecord, &Caller);

    id: String = user.id.to_string(),
    name: Option<String> = user.name.as_deref().map(str::to_owned),
    /// The e-mail address, or null if the user has no address or the caller lacks the scope `email:read`.
    email: Option<String> = user.email.as_deref().map(str::to_owned),
    workspace_id: String = caller.workspace_id().to_owned(),
    role: OneOf<Roles> = caller.role().name().into(),
    /// The scopes of the caller.
    scopes: Vec<OneOf<Scopes>> = caller.scopes().iter().map(|scope| scope.name().into()).collect(),
    plan: PlanBody = PlanBody::from(caller.plan()),
}

shown! {
    /// A member of the workspace, or a person with an open invitation.
    #[oai(rename = "Member")]
    struct MemberBody from (member, shows_email): (&Member, bool) where {
        let (id, role, name, email, at, status) = match member {
            Member::Joined(Membership { user_id, role, joined_at, .. }, UserRecord { name, email, .. }) => {
                (user_id, role, name.as_deref(), email.as_deref(), joined_at, "active")
            }
            Member::Invited(Invitation { id, role, email, created_at, .. }) => {
                (id, role, None, Some(&**email), created_at, "invited")
            }
        };
    };

    /// The user's id or, for an invited person, the invitation's id.
    id: String = id.to_string(),
    name: Option<String> = name.map(str::to_owned),
    /// The e-mail address, or null if the user has no address or the caller lacks the scope `email:read`.
    email: Option<String> = email.filter(|_| shows_email).map(str::to_owned),
    role: OneOf<Roles> = role.name().into(),
    status: OneOf<Memberships> = status.into(),
    /// The time at which the person joined or was invited.
    created_at: String = format_date(*at),
}

listed!(MemberBody as "MemberPage": "A page of members and invited persons.");

/// Returns the key by which the list of members is sorted. Members come before invited persons.
fn order_key(member: &Member) -> String {
    match member {
        Member::Joined(joined, _) => format!("0/{}", time_key(joined.joined_at, &joined.user_id)),
        Member::Invited(invited) => format!("1/{}", time_key(invited.created_at, &invited.id)),
    }
}

/// A person to invite.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct InviteMember {
    email: String,
    /// The role; the default is `editor`.
    role: Option<OneOf<Roles>>,
}

/// Changes to a member.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeMember {
    role: OneOf<Roles>,
    /// Whether the member becomes the owner of the workspace (`owner_id`). The value `true` is allowed only if `role`
    /// is `owner`. The former owner keeps the role `owner`. The plan of the owner limits the workspace.
    workspace_owner: Option<bool>,
}

no_content!(MemberRemovalResponse: "The member was removed, or the invitation was withdrawn.");

#[OpenApi(tag = "Section::Members")]
impl Api {
    /// Returns the caller's user, role, scopes and plan.
    ///
    /// The response contains the e-mail address only if the caller has the scope `email:read`.
    #[oai(path = "/profile", method = "get", operation_id = "get_profile")]
    async fn get_profile(&self, access: ProfileRead) -> ApiResult<JsonResponse<Profile>> {
        let user = access.0.profile().await?;
        Ok(JsonResponse::new(&Profile::from((&user, access.0.caller()))))
    }

    /// Lists the members of the workspace and then the invited persons, each oldest first.
    ///
    /// All members and invited persons are on one page, unless the page reaches `limit` or its maximum size in bytes.
    #[oai(path = "/members", method = "get", operation_id = "list_members")]
    async fn list_members(
        &self,
        access: ApiRead,
        /// Rows per page, 1 to 200. By default, only the size of a page in bytes is limited.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<MemberBody>>> {
        let part = ListPart { list: "members", rows, cursor: cursor.as_deref(), bytes: **bytes };
        let shows_email = access.0.caller().holds(Scope::EmailRead);
        let members = access.0.list_members().await?;
        Ok(part.of(&members, ListOrder::Ascending, order_key, |member| MemberBody::from((member, shows_email)))?)
    }

    /// Invites an e-mail address.
    ///
    /// A user whose identity provider has verified this address can accept the invitation with
    /// `POST /invitations/{id}/accept`. Only owners can invite (`owner_required`). Inviting the same address again
    /// replaces the open invitation. When the key that created an invitation is revoked or expires, the
    /// invitation expires as well. The invitation also ends when the owner who created it is removed or gets a lower
    /// role. Addresses are compared exactly, except for the case of ASCII letters.
    #[oai(path = "/members", method = "post", operation_id = "invite_member")]
    async fn invite_member(
        &self,
        access: OwnerWrite,
        body: Body<InviteMember>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<MemberBody>> {
        let Body { value: InviteMember { email, role }, text } = body;
        let role = role.as_deref().map_or(Ok(Role::Editor), read_role)?;
        let make = async move |owner: Owner, _: Option<IdempotentRequest>| {
            let invitation = owner.invite(&email, role).await?;
            let location = format!("{}/members/{}", API, invitation.id);
            let body = MemberBody::from((&Member::Invited(invitation), true));
            Ok(CreationOutcome { body, location, repeated: false })
        };
        idempotent_kept(&access.0, key.0, "invite_member", &text, make, to_json_bytes).await
    }

    /// Changes the role of a member or of an invited person, or makes a member the owner of the workspace.
    ///
    /// The new role limits the member's keys and tokens immediately; the scopes of the keys do not change. The owner of
    /// the workspace (`owner_id`) can neither get a lower role nor be removed (409 `workspace_owner`). To make another
    /// member the owner of the workspace first, send the role `owner` and the field `workspace_owner` with the value
    /// true for that member.
    ///
    /// If an owner gets a lower role, the invitations and sign-in codes that this owner created end. An owner who
    /// changes the role of an invited person becomes the creator of the invitation.
    #[oai(path = "/members/:member_id", method = "patch", operation_id = "update_member")]
    async fn update_member(
        &self,
        access: OwnerWrite,
        member_id: Path<String>,
        body: Body<ChangeMember>,
    ) -> ApiResult<JsonResponse<MemberBody>> {
        let role = read_role(&body.role)?;
        let shows_email = access.0.caller().holds(Scope::EmailRead);
        let member = match (body.workspace_owner, role) {
            (Some(true), Role::Owner) => access.0.change_owner(&member_id).await?,
            (Some(true), _) => {
                return Err(Error::invalid_at("/workspace_owner", "true is allowed only with the role `owner`").into());
            }
            (None | Some(false), _) => access.0.change_role(&member_id, role).await?,
        };
        Ok(JsonResponse::new(&MemberBody::from((&member, shows_email))))
    }

    /// Removes a member with all their keys and invitations from the workspace immediately, or withdraws an invitation.
    ///
    /// Content that the member created stays in the workspace. The member's open tasks are assigned to `reassign_to`
    /// or, if `reassign_to` is absent, to nobody, so that any person can take these tasks. The keys that the member
    /// created for agents stop working as well.
    #[oai(path = "/members/:member_id", method = "delete", operation_id = "remove_member")]
    async fn remove_member(
        &self,
        access: OwnerWrite,
        member_id: Path<String>,
        /// The successor for the open tasks of the member: `agent:ID` or `user:ID`.
        reassign_to: Query<Option<String>>,
    ) -> ApiResult<MemberRemovalResponse> {
        let successor = read_successor(reassign_to.as_deref(), successor_parameter)?;
        access.0.remove_member(&member_id, successor).await?;
        Ok(MemberRemovalResponse::Done)
    }
}

fn read_role(role: &str) -> Result<Role, Error> {
    let unknown = || Error::invalid_at("/role", "expected owner, editor or viewer");
    Role::parse(role).ok_or_else(unknown)
}
