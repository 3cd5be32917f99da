//! Tests that the invitations and sign-in codes of an owner become invalid on every server when the owner is removed
//! from the workspace or loses the role.

use std::sync::Arc;

use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::{Engine, Error, Owner, Writer};
use foldwork_tests::handles::{Handles, enter, join};

use crate::access_races::{token, twins};

/// The ways in which an owner loses the role.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Removal,
    Demotion,
}

/// Two servers of one store, and the handles of the owner of the workspace.
struct SharedWorkspace {
    engines: [Arc<Engine>; 2],
    owner: Handles,
}

impl SharedWorkspace {
    async fn open() -> SharedWorkspace {
        let (engines, key) = twins().await;
        let owner = enter(&engines[0], &key).await.expect("a workspace");
        SharedWorkspace { engines, owner }
    }

    /// Adds another owner, who signs in with a token on the second server. Returns the owner's handles and id.
    async fn signed_in_owner(&self, name: &str) -> (Owner, Writer, String) {
        let (engine, email) = (&self.engines[1], format!("{name}@example.com"));
        let caller = join(engine, &self.owner.owner, &token(name), &email, Role::Owner).await.expect("joined");
        let owner = engine.enter(caller.clone()).await.expect("an owner");
        let writer = engine.enter(caller.clone()).await.expect("a writer");
        (owner, writer, caller.user_id().to_owned())
    }

    async fn lose(&self, id: &str, loss: Loss) {
        match loss {
            Loss::Removal => self.owner.owner.remove_member(id, None).await.expect("removed"),
            Loss::Demotion => self.owner.owner.change_role(id, Role::Editor).await.map(drop).expect("demoted"),
        }
    }

    /// Accepts an invitation as the invited user. Returns whether the invitation was still open.
    async fn is_open(&self, name: &str, invitation: &str) -> bool {
        let invited = self.engines[0].signed_in(&token(name)).await.expect("a user");
        let listed = invited.invitations().await.expect("invitations").iter().any(|(one, _)| *one.id == *invitation);
        let accepted = invited.accept(invitation).await.map(drop);
        assert!(matches!(accepted, Ok(()) | Err(Error::NotFound { .. })), "{accepted:?}");
        assert_eq!(listed, accepted.is_ok());
        listed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invitations_by_an_owner_become_invalid_when_the_owner_loses_the_role() {
    for loss in [Loss::Removal, Loss::Demotion] {
        let house = SharedWorkspace::open().await;
        let (bob, _, id) = house.signed_in_owner("bob").await;
        let by_bob = bob.invite("cleo@example.com", Role::Owner).await.expect("invited");
        let by_owner = house.owner.owner.invite("dan@example.com", Role::Viewer).await.expect("invited");
        house.lose(&id, loss).await;
        assert!(!house.is_open("cleo", &by_bob.id).await, "{loss:?}");
        assert!(house.is_open("dan", &by_owner.id).await, "{loss:?}");
        // A request that was admitted before the loss creates no invitation after the loss.
        let late = bob.invite("cleo@example.com", Role::Owner).await;
        assert!(matches!(late, Err(Error::Unauthenticated(_))), "{loss:?}: {late:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_changed_by_an_owner_becomes_invalid_when_the_owner_loses_the_role() {
    for loss in [Loss::Removal, Loss::Demotion] {
        let house = SharedWorkspace::open().await;
        let (bob, _, id) = house.signed_in_owner("bob").await;
        let invitation = house.owner.owner.invite("cleo@example.com", Role::Viewer).await.expect("invited");
        bob.change_role(&invitation.id, Role::Owner).await.map(drop).expect("changed");
        house.lose(&id, loss).await;
        let late = bob.change_role(&invitation.id, Role::Owner).await.map(drop);
        assert!(matches!(late, Err(Error::Unauthenticated(_))), "{loss:?}: {late:?}");
        assert!(!house.is_open("cleo", &invitation.id).await, "{loss:?}");
        // A user whom an owner invites again can accept.
        let again = house.owner.owner.invite("cleo@example.com", Role::Viewer).await.expect("invited");
        assert!(house.is_open("cleo", &again.id).await, "{loss:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_codes_of_an_owner_become_invalid_when_the_owner_loses_the_role() {
    for loss in [Loss::Removal, Loss::Demotion] {
        let house = SharedWorkspace::open().await;
        let (_, writer, id) = house.signed_in_owner("bob").await;
        let new = NewKey { name: "a device".into(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
        let code = writer.create_sign_in_code(new, 60_000).await.expect("a code").code;
        house.lose(&id, loss).await;
        let exchanged = house.engines[0].exchange_sign_in_code(&code, None).await.map(drop);
        assert!(matches!(exchanged, Err(Error::Unauthenticated(_))), "{loss:?}: {exchanged:?}");
    }
}
