//! `/invitations`: listing, accepting and declining the invitations of a signed-in user.

use foldwork_engine::model::access::{Invitation, Membership, WorkspaceRecord};
use foldwork_engine::model::date::format_date;
use poem_openapi::OpenApi;
use poem_openapi::param::Path;

use super::section::Section;
use crate::auth::SignedInUser;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{OneOf, Roles};
use crate::wire::page::{PageBody, listed};
use crate::wire::response::no_content;
use crate::wire::shown::shown;

pub struct Api;

shown! {
    /// An invitation to a workspace.
    #[oai(rename = "Invitation")]
    struct InvitationBody from (invitation, workspace): &(Invitation, WorkspaceRecord);

    id: String = invitation.id.to_string(),
    workspace_id: String = workspace.id.to_string(),
    workspace_name: String = workspace.name.clone(),
    /// The role that the invitation gives the user in the workspace.
    role: OneOf<Roles> = invitation.role.name().into(),
    created_at: String = format_date(invitation.created_at),
    /// The expiry time of the invitation, which is the expiry time of the key that created the invitation. Null if that
    /// key does not expire, or if the invitation was created without a key.
    expires_at: Option<String> = invitation.expires_at.map(format_date),
}

listed!(InvitationBody as "InvitationPage": "The user's open invitations.");

shown! {
    /// A workspace that the user is a member of.
    #[oai(rename = "Membership")]
    struct MembershipBody from (member, workspace): &(Membership, WorkspaceRecord);

    workspace_id: String = workspace.id.to_string(),
    workspace_name: String = workspace.name.clone(),
    role: OneOf<Roles> = member.role.name().into(),
    joined_at: String = format_date(member.joined_at),
}

no_content!(DeclineResponse: "The invitation was declined and deleted.");

#[OpenApi(tag = "Section::Members")]
impl Api {
    /// Lists the signed-in user's open invitations, oldest first.
    ///
    /// The list contains the invitations to the user's verified e-mail address: at most the 200 oldest, on a single
    /// page. The user need not be a member of any workspace.
    #[oai(path = "/invitations", method = "get", operation_id = "list_invitations")]
    async fn list_invitations(&self, session: SignedInUser) -> ApiResult<JsonResponse<PageBody<InvitationBody>>> {
        let invitations = session.0.invitations().await?;
        let data = invitations.iter().map(InvitationBody::from).collect();
        Ok(JsonResponse::new(&PageBody { data, next_cursor: None }))
    }

    /// Accepts an invitation. The user becomes a member of the invitation's workspace.
    ///
    /// A user who is already a member keeps their role. The header `Foldwork-Workspace` with the workspace's id selects
    /// the workspace of a request. Without this header, requests with a token of an identity provider use the workspace
    /// of which the user has been a member for the longest time, and requests with a key use the key's workspace.
    #[oai(path = "/invitations/:invitation_id/accept", method = "post", operation_id = "accept_invitation")]
    async fn accept_invitation(
        &self,
        session: SignedInUser,
        invitation_id: Path<String>,
    ) -> ApiResult<JsonResponse<MembershipBody>> {
        Ok(JsonResponse::new(&MembershipBody::from(&session.0.accept(&invitation_id).await?)))
    }

    /// Declines an invitation and deletes it.
    ///
    /// The owners of the workspace may invite the same address again.
    #[oai(path = "/invitations/:invitation_id/decline", method = "post", operation_id = "decline_invitation")]
    async fn decline_invitation(
        &self,
        session: SignedInUser,
        invitation_id: Path<String>,
    ) -> ApiResult<DeclineResponse> {
        session.0.decline(&invitation_id).await?;
        Ok(DeclineResponse::Done)
    }
}
