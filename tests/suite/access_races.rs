//! Tests access with two engines on one store, like two servers: each race has one winner, and a revoked right ends on
//! both engines.

use std::sync::Arc;

use foldwork_engine::clock::{Clock, SystemClock};
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::license::LicenseVerdict;
use foldwork_engine::model::plan::PlanLimits;
use foldwork_engine::workspace::keys::{DerivedKeys, NewKey};
use foldwork_engine::workspace::licenses::Device;
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::{
    AccessSettings, Administrator, Engine, Error, FetchKeys, Member, Owner, Reader, Store, Unlocker, Writer,
};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{enter, join};
use foldwork_tests::issuer::{Provider, SECRET, secret_issuer, signed_with};
use foldwork_tests::server::claims_of;
use strum::VariantArray;

/// Returns two engines of one store, and the owner's key.
pub async fn twins() -> ([Arc<Engine>; 2], String) {
    let store = Store::connect("mem://").await.expect("a store");
    let engines = [engine(store.share()).await, engine(store.share()).await];
    for engine in &engines {
        let settings = AccessSettings { issuers: vec![secret_issuer()], ..AccessSettings::default() };
        let provider: Arc<dyn FetchKeys> = Arc::new(Provider::default());
        engine.configure_access(settings, &provider).expect("valid settings");
    }
    let (_, key) = first(&engines[0]).await.expect("a workspace");
    (engines, key)
}

pub fn token(name: &str) -> String {
    let mut claims = claims_of(name);
    claims["exp"] = 4_000_000_000u64.into();
    signed_with(SECRET, &claims)
}

pub async fn is_refused(engine: &Engine, bearer: &str) -> bool {
    let Err(error) = engine.authenticate(bearer).await else { return false };
    assert!(matches!(error, Error::Unauthenticated(_) | Error::Forbidden { .. }), "{error:?}");
    true
}

pub fn new_key(name: &str, scopes: &[Scope]) -> NewKey {
    NewKey { name: name.into(), scopes: scopes.to_vec(), ..NewKey::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_requests_of_a_user_create_one_user_and_one_workspace() {
    let (engines, _) = twins().await;
    let token = token("ada");
    let firsts = (0..16).map(|number| {
        let (engine, token) = (engines[number % 2].clone(), token.clone());
        tokio::spawn(async move { engine.authenticate(&token).await.expect("a caller").workspace_id().to_owned() })
    });
    let mut found = Vec::new();
    for first in firsts.collect::<Vec<_>>() {
        found.push(first.await.expect("a request"));
    }
    found.dedup();
    let [workspace] = found.as_slice() else { panic!("expected one workspace, found {found:?}") };
    let caller = engines[0].authenticate(&token).await.expect("a caller");
    let reader: Reader = engines[0].enter(caller).await.expect("a right");
    assert_eq!(&*reader.record().id, workspace);
    assert_eq!(reader.list_members().await.expect("members").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_exchanges_of_a_sign_in_code_create_one_key() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    for _ in 0..3 {
        let new = new_key("device", &[Scope::ApiRead]);
        let code = workspace.writer.create_sign_in_code(new, 60_000).await.expect("a code").code;
        let exchanges = (0..8).map(|number| {
            let (engine, code) = (engines[number % 2].clone(), code.clone());
            tokio::spawn(async move { engine.exchange_sign_in_code(&code, None).await })
        });
        let mut made = Vec::new();
        for exchange in exchanges.collect::<Vec<_>>() {
            match exchange.await.expect("a request") {
                Ok(key) => made.push(key),
                Err(Error::Unauthenticated(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        let [made] = made.as_slice() else { panic!("{} exchanges created a key", made.len()) };
        assert!(!is_refused(&engines[1], made.secret.as_deref().expect("a key")).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_rotated_twice_concurrently_expires_at_the_earlier_of_both_times() {
    let (engines, key) = twins().await;
    for _ in 0..8 {
        let workspace = enter(&engines[0], &key).await.expect("a workspace");
        let origin = workspace.writer.create_key(new_key("origin", &[Scope::ApiRead]), None).await.expect("a key");
        let rotations = [0, 3_600_000].into_iter().zip(&engines).map(|(ends_after_ms, engine)| {
            let (engine, key, id) = (engine.clone(), key.clone(), origin.record.id.clone());
            tokio::spawn(async move {
                let workspace = enter(&engine, &key).await.expect("a workspace");
                workspace.writer.rotate_key(&id, ends_after_ms, None).await.is_ok()
            })
        });
        let rotations: Vec<_> = rotations.collect();
        let mut rotated = Vec::new();
        for rotation in rotations {
            rotated.push(rotation.await.expect("a request"));
        }
        let secret = origin.secret.expect("a key");
        assert!(!rotated[0] || is_refused(&engines[1], &secret).await, "the key works after its end: {rotated:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_and_a_concurrent_key_derivation_do_not_both_succeed() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    for _ in 0..8 {
        let scopes = [Scope::ApiRead, Scope::ApiWrite];
        let origin = workspace.writer.create_key(new_key("origin", &scopes), None).await.expect("a key");
        let (engine, secret) = (engines[1].clone(), origin.secret.expect("a key"));
        let deriving = tokio::spawn(async move {
            let caller = engine.authenticate(&secret).await.ok()?;
            let writer: Writer = engine.enter(caller).await.ok()?;
            writer.create_key(new_key("derived", &[Scope::ApiRead]), None).await.ok()?.secret
        });
        let revoked = workspace.writer.revoke_key(&origin.record.id, DerivedKeys::Refuse).await.is_ok();
        let derived = deriving.await.expect("a request");
        assert!(!revoked || derived.is_none(), "the key was revoked together with a key that it had created");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn derived_keys_are_revoked_with_their_origin_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let scopes = [Scope::ApiRead, Scope::ApiWrite];
    let origin = workspace.writer.create_key(new_key("origin", &scopes), None).await.expect("a key");
    let secret = origin.secret.expect("a key");
    let makers = (0..2).map(|number| {
        let (engine, secret) = (engines[number].clone(), secret.clone());
        tokio::spawn(async move {
            // Each key creates the next key, until one of the keys is revoked.
            let (mut made, origin) = (Vec::new(), secret.clone());
            let mut shown = secret;
            while let Ok(caller) = engine.authenticate(&shown).await {
                let Ok(writer) = engine.enter::<Writer>(caller).await else { break };
                match writer.create_key(new_key("derived", &[Scope::ApiRead, Scope::ApiWrite]), None).await {
                    Ok(key) => shown = key.secret.expect("a key"),
                    Err(Error::Unauthenticated(_)) => break,
                    Err(Error::Unavailable(_)) => continue,
                    Err(Error::Forbidden { code: ErrorCode::DerivedTooOften, .. }) => {
                        shown = origin.clone();
                        continue;
                    }
                    Err(error) => panic!("{error:?}"),
                }
                made.push(shown.clone());
            }
            made
        })
    });
    let makers: Vec<_> = makers.collect();
    // Some keys exist before the revocation, and some are created during the revocation.
    while workspace.reader.list_keys().await.expect("keys").len() < 8 {
        tokio::task::yield_now().await;
    }
    loop {
        match workspace.writer.revoke_key(&origin.record.id, DerivedKeys::End).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => break other.expect("revoked"),
        }
    }
    for maker in makers {
        for derived in maker.await.expect("a maker") {
            for engine in &engines {
                assert!(is_refused(engine, &derived).await, "a derived key outlives its origin");
            }
        }
    }
    assert_eq!(workspace.reader.list_keys().await.expect("keys").len(), 1, "only the owner's key is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_loses_access_to_the_workspace_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let token = token("bob");
    let bob = join(&engines[1], &workspace.owner, &token, "Bob@example.com", Role::Editor).await.expect("joined");
    assert_eq!((bob.workspace_id(), bob.role()), (&*workspace.reader.record().id, Role::Editor));
    let (writer, reader): (Writer, Reader) =
        (engines[1].enter(bob.clone()).await.expect("a right"), engines[1].enter(bob.clone()).await.expect("a right"));
    let made = writer.create_key(new_key("bob's", &[Scope::ApiRead]), None).await.expect("a key");
    let secret = made.secret.expect("a key");
    assert!(workspace.reader.is_member(bob.user_id()).await.expect("an answer"));
    let mut grant = reader.grant();
    workspace.owner.remove_member(bob.user_id(), None).await.expect("removed");
    grant.ended().await;
    for engine in &engines {
        let refused = engine.authenticate_in(&token, Some(bob.workspace_id())).await;
        assert!(matches!(refused, Err(Error::Forbidden { code: ErrorCode::NotAMember, .. })), "{refused:?}");
        assert!(is_refused(engine, &secret).await);
        // The member's own workspace is unaffected.
        let own = engine.authenticate(&token).await.expect("a caller");
        assert_eq!(own.role(), Role::Owner);
    }
    assert!(!workspace.reader.is_member(bob.user_id()).await.expect("an answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_all_workspaces_becomes_invalid_when_its_creator_is_removed() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let token = token("bob");
    let bob = join(&engines[1], &workspace.owner, &token, "bob@example.com", Role::Owner).await.expect("joined");
    let own = engines[1].authenticate(&token).await.expect("a caller");
    let there: Writer = engines[1].enter(bob.clone()).await.expect("a right");
    let everywhere = NewKey { opens_all: true, ..new_key("everywhere", Scope::VARIANTS) };
    let made = there.create_key(everywhere, None).await.expect("a key").secret.expect("a secret");
    // Holds one right with the key itself, and another right with a key that was derived from this key in another
    // workspace.
    let caller = engines[1].authenticate_in(&made, Some(own.workspace_id())).await.expect("a caller");
    let writer: Writer = engines[1].enter(caller.clone()).await.expect("a right");
    let derived = writer.create_key(new_key("derived", &[Scope::ApiRead]), None).await.expect("a key");
    let derived = engines[1].authenticate(&derived.secret.expect("a secret")).await.expect("a caller");
    let mut standings = Vec::new();
    for caller in [caller, derived] {
        assert_eq!(caller.workspace_id(), own.workspace_id());
        for engine in &engines {
            standings.push(engine.enter::<Reader>(caller.clone()).await.expect("a right").grant());
        }
    }
    workspace.owner.remove_member(bob.user_id(), None).await.expect("removed");
    for mut grant in standings {
        grant.ended().await;
    }
    assert!(is_refused(&engines[1], &made).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_can_be_accepted_only_once() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let invitation = workspace.owner.invite("bob@example.com", Role::Viewer).await.expect("invited");
    let token = token("bob");
    for engine in &engines {
        let bob = engine.authenticate(&token).await.expect("a caller");
        assert_eq!(bob.role(), Role::Owner, "the first token creates the user's own workspace, invited or not");
        assert_ne!(bob.workspace_id(), &*workspace.reader.record().id);
    }
    let acceptances = (0..8).map(|number| {
        let (engine, token, id) = (engines[number % 2].clone(), token.clone(), invitation.id.clone());
        tokio::spawn(async move { engine.signed_in(&token).await.expect("a user").accept(&id).await })
    });
    let mut joined = 0;
    for acceptance in acceptances.collect::<Vec<_>>() {
        match acceptance.await.expect("a request") {
            Ok((member, _)) => joined += usize::from(member.role == Role::Viewer),
            Err(Error::NotFound { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(joined, 1);
    let main = Some(workspace.reader.record().id.to_string());
    let bob = engines[0].authenticate_in(&token, main.as_deref()).await.expect("a caller");
    assert_eq!(bob.role(), Role::Viewer);
    // An accepted invitation cannot be used again, neither by its id nor by its address.
    let changed = workspace.owner.change_role(&invitation.id, Role::Owner).await;
    assert!(matches!(changed, Err(Error::NotFound { .. })), "{changed:?}");
    workspace.owner.remove_member(bob.user_id(), None).await.expect("removed");
    let again = engines[1].signed_in(&token).await.expect("a user");
    assert!(again.invitations().await.expect("invitations").is_empty());
    assert_eq!(engines[1].authenticate(&token).await.expect("a caller").role(), Role::Owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_valid_only_as_long_as_the_key_of_its_creator() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let token = token("bob");
    let bob = engines[1].signed_in(&token).await.expect("a user");
    let all = || new_key("all", Scope::VARIANTS);
    let origin = workspace.owner.create_key(all(), None).await.expect("a key");
    let by_origin = enter(&engines[1], origin.secret.as_deref().expect("a secret")).await.expect("a workspace");
    let derived = by_origin.owner.create_key(all(), None).await.expect("a key");
    let by_derived = enter(&engines[0], derived.secret.as_deref().expect("a secret")).await.expect("a workspace");
    let invitation = by_derived.owner.invite("bob@example.com", Role::Owner).await.expect("invited");
    assert_eq!(bob.invitations().await.expect("invitations").len(), 1);
    workspace.owner.revoke_key(&origin.record.id, DerivedKeys::End).await.expect("revoked");
    assert!(bob.invitations().await.expect("invitations").is_empty());
    assert!(matches!(bob.accept(&invitation.id).await, Err(Error::NotFound { .. })));
    assert!(matches!(by_derived.owner.invite("x@example.com", Role::Viewer).await, Err(Error::Unauthenticated(_))));
    let members = workspace.reader.list_members().await.expect("members");
    assert!(matches!(members.as_slice(), [Member::Joined(..)]), "{members:?}");
    // An invitation expires together with the key that created it.
    let soon = SystemClock.now_ms() + 1_500;
    let brief = workspace.owner.create_key(NewKey { expires_at: Some(soon), ..all() }, None).await.expect("a key");
    let by_brief = enter(&engines[0], brief.secret.as_deref().expect("a secret")).await.expect("a workspace");
    let invitation = by_brief.owner.invite("bob@example.com", Role::Owner).await.expect("invited");
    assert_eq!(invitation.expires_at, Some(soon));
    let mut grant = by_brief.reader.grant();
    grant.ended().await;
    assert!(bob.invitations().await.expect("invitations").is_empty());
    assert!(matches!(bob.accept(&invitation.id).await, Err(Error::NotFound { .. })));
    // A new invitation by a key that stays valid can be accepted.
    let invitation = workspace.owner.invite("bob@example.com", Role::Viewer).await.expect("invited");
    assert_eq!(bob.accept(&invitation.id).await.expect("accepted").0.role, Role::Viewer);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_keys_created_for_all_workspaces_are_valid_in_other_workspaces() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let token = token("bob");
    let bob = join(&engines[0], &workspace.owner, &token, "bob@example.com", Role::Owner).await.expect("joined");
    let own = engines[0].authenticate(&token).await.expect("a caller");
    let there: Writer = engines[0].enter(bob.clone()).await.expect("a right");
    let bound =
        there.create_key(new_key("bound", Scope::VARIANTS), None).await.expect("a key").secret.expect("a secret");
    let main = bob.workspace_id();
    for engine in &engines {
        assert_eq!(engine.authenticate_in(&bound, Some(main)).await.expect("a caller").workspace_id(), main);
        for other in [own.workspace_id(), "no-workspace"] {
            let refused = engine.authenticate_in(&bound, Some(other)).await;
            assert!(matches!(refused, Err(Error::Forbidden { code: ErrorCode::OtherWorkspace, .. })), "{refused:?}");
        }
    }
    let everywhere = |scopes| NewKey { opens_all: true, ..new_key("everywhere", scopes) };
    let bound: Writer =
        engines[0].enter(engines[0].authenticate(&bound).await.expect("a caller")).await.expect("a right");
    let made = there.create_key(everywhere(&[Scope::ApiRead]), None).await.expect("a key");
    let secret = made.secret.expect("a secret");
    for workspace in [main, own.workspace_id()] {
        let caller = engines[1].authenticate_in(&secret, Some(workspace)).await.expect("a caller");
        assert_eq!((caller.workspace_id(), caller.scopes()), (workspace, &[Scope::ApiRead][..]));
    }
    // A key for one workspace can neither create nor revoke keys for several workspaces.
    for refused in [
        bound.create_key(everywhere(&[Scope::ApiRead]), None).await.map(drop),
        bound.revoke_key(&made.record.id, DerivedKeys::End).await,
    ] {
        assert!(matches!(refused, Err(Error::Forbidden { code: ErrorCode::AllWorkspaces, .. })), "{refused:?}");
    }
    workspace.owner.change_role(bob.user_id(), Role::Editor).await.expect("changed");
    let editor = engines[0].authenticate_in(&token, Some(main)).await.expect("a caller");
    let editor: Writer = engines[0].enter(editor).await.expect("a right");
    let refused = editor.create_key(everywhere(&[Scope::ApiRead]), None).await;
    assert!(matches!(refused, Err(Error::Forbidden { code: ErrorCode::AllWorkspaces, .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demotion_of_a_member_applies_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let token = token("bob");
    let bob = join(&engines[1], &workspace.owner, &token, "bob@example.com", Role::Owner).await.expect("joined");
    engines[1].enter::<Owner>(bob.clone()).await.expect("an owner");
    let mut held = Vec::new();
    for engine in &engines {
        held.push(engine.enter::<Reader>(bob.clone()).await.expect("a right").grant());
    }
    workspace.owner.change_role(bob.user_id(), Role::Viewer).await.expect("changed");
    for mut grant in held {
        // The grants of these rights end, because the user is no longer an owner.
        grant.ended().await;
    }
    for engine in &engines {
        let bob = engine.authenticate_in(&token, Some(bob.workspace_id())).await.expect("a caller");
        assert!(matches!(
            engine.enter::<Writer>(bob).await,
            Err(Error::Forbidden { code: ErrorCode::InsufficientRole, .. })
        ));
    }
    // The owner of the workspace can be neither demoted nor removed until another member becomes the owner.
    let founder = workspace.reader.record().owner_id.clone();
    for refused in [
        workspace.owner.change_role(&founder, Role::Viewer).await.map(drop),
        workspace.owner.remove_member(&founder, None).await,
    ] {
        assert!(matches!(refused, Err(Error::Conflict { code: ErrorCode::WorkspaceOwner, .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_activations_do_not_exceed_the_limit_of_the_plan() {
    const LIMIT: usize = 3;
    let (engines, key) = twins().await;
    let caller = engines[0].authenticate(&key).await.expect("a caller");
    let operator: Administrator = engines[0].enter(caller.clone()).await.expect("a right");
    let limits = Some(PlanLimits { activations: Some(LIMIT as u64), ..PlanLimits::default() });
    let user = caller.user_id().to_owned();
    operator.set_plan(&user, NewPlan { limits, ..NewPlan::default() }).await.expect("a plan");
    let requests = (0..50).map(|number| {
        let (engine, key) = (engines[number % 2].clone(), key.clone());
        tokio::spawn(async move {
            let caller = engine.authenticate(&key).await.expect("a caller");
            let unlocker: Unlocker = engine.enter(caller).await.expect("a right");
            let device = Device { instance_id: format!("device-{number}"), ..Device::default() };
            unlocker.validate_device(device).await.expect("an answer").0.verdict
        })
    });
    let mut verdicts = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        verdicts.push(request.await.expect("a request"));
    }
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == LicenseVerdict::Valid).count(), LIMIT);
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == LicenseVerdict::LimitReached).count(), 50 - LIMIT);
    let reader: Reader = engines[1].enter(caller).await.expect("a right");
    assert_eq!(reader.list_activations().await.expect("devices").len(), LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_one_store_sign_licenses_with_the_same_key() {
    let (engines, key) = twins().await;
    let mut signatures = Vec::new();
    for engine in &engines {
        let unlocker: Unlocker =
            engine.enter(engine.authenticate(&key).await.expect("a caller")).await.expect("a right");
        signatures.push(unlocker.sign(b"an answer".to_vec()).await.expect("a signature"));
    }
    assert_eq!(signatures[0], signatures[1]);
    let public = engines[1].license_key().await.expect("a key");
    let public = aws_lc_rs::signature::UnparsedPublicKey::new(&aws_lc_rs::signature::ED25519, public);
    public.verify(b"an answer", &signatures[0]).expect("a valid signature");
    assert!(public.verify(b"another answer", &signatures[0]).is_err());
}
