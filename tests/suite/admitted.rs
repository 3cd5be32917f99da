//! Who is in, over two engines on one store, as two servers have it: one winner each time, and what ends, ends for all.

use std::sync::Arc;

use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::license::Verdict;
use foldwork_engine::model::plan::Limits;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::workspace::licenses::Device;
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::{AccessSettings, Engine, Error, FetchKeys, Operator, Owner, Reader, Store, Unlocker, Writer};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::entered::enter;
use foldwork_tests::issuer::{Provider, SECRET, secret_issuer, signed_with};
use foldwork_tests::server::claims_of;

/// Two engines of one store, and the owner's key.
async fn twins() -> ([Arc<Engine>; 2], String) {
    let store = Store::connect("mem://").await.expect("a store");
    let engines = [engine(store.share()).await, engine(store.share()).await];
    for engine in &engines {
        let settings = AccessSettings { issuers: vec![secret_issuer()], ..AccessSettings::default() };
        let provider: Arc<dyn FetchKeys> = Arc::new(Provider::default());
        engine.decide_access(settings, &provider).expect("valid settings");
    }
    let (_, key) = first(&engines[0]).await.expect("a workspace");
    (engines, key)
}

fn token(name: &str) -> String {
    let mut claims = claims_of(name);
    claims["exp"] = 4_000_000_000u64.into();
    signed_with(SECRET, &claims)
}

async fn is_refused(engine: &Engine, bearer: &str) -> bool {
    let Err(error) = engine.authenticate(bearer).await else { return false };
    assert!(matches!(error, Error::Unauthenticated(_) | Error::Forbidden { .. }), "{error:?}");
    true
}

fn new_key(name: &str, scopes: &[Scope]) -> NewKey {
    NewKey { name: name.into(), scopes: scopes.to_vec(), expires_at: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_token_at_many_places_makes_one_user_and_one_workspace() {
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
    let [workspace] = found.as_slice() else { panic!("{found:?}") };
    let caller = engines[0].authenticate(&token).await.expect("a caller");
    let reader: Reader = engines[0].enter(caller).await.expect("a right");
    assert_eq!(&*reader.record().id, workspace);
    assert_eq!(reader.list_members().await.expect("members").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_exchange_a_code_one_gets_the_key() {
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
        let [made] = made.as_slice() else { panic!("{} got a key", made.len()) };
        assert!(!is_refused(&engines[1], made.secret.as_deref().expect("a key")).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_derived_ends_with_its_origin_everywhere_also_while_more_is_derived() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let scopes = [Scope::ApiRead, Scope::ApiWrite];
    let origin = workspace.writer.create_key(new_key("origin", &scopes), None).await.expect("a key");
    let secret = origin.secret.expect("a key");
    let makers = (0..2).map(|number| {
        let (engine, secret) = (engines[number].clone(), secret.clone());
        tokio::spawn(async move {
            // Each key makes the next one, until one of them is revoked.
            let (mut made, origin) = (Vec::new(), secret.clone());
            let mut shown = secret;
            while let Ok(caller) = engine.authenticate(&shown).await {
                let Ok(writer) = engine.enter::<Writer>(caller).await else { break };
                match writer.create_key(new_key("derived", &[Scope::ApiRead, Scope::ApiWrite]), None).await {
                    Ok(key) => shown = key.secret.expect("a key"),
                    Err(Error::Unauthenticated(_)) => break,
                    Err(Error::Unavailable(_)) => continue,
                    Err(Error::Forbidden { code: "derived_too_often", .. }) => {
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
    // Some are there before, and some are made while it is revoked.
    while workspace.reader.list_keys().await.expect("keys").len() < 8 {
        tokio::task::yield_now().await;
    }
    loop {
        match workspace.writer.revoke_key(&origin.record.id).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => break other.expect("revoked"),
        }
    }
    for maker in makers {
        for derived in maker.await.expect("a maker") {
            for engine in &engines {
                assert!(is_refused(engine, &derived).await, "a key outlives what it was derived from");
            }
        }
    }
    assert_eq!(workspace.reader.list_keys().await.expect("keys").len(), 1, "the owner's is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_who_is_removed_has_lost_everything_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    workspace.owner.invite("Bob@example.com", Role::Editor).await.expect("invited");
    let token = token("bob");
    let bob = engines[1].authenticate(&token).await.expect("a caller");
    assert_eq!((bob.workspace_id(), bob.role()), (&*workspace.reader.record().id, Role::Editor));
    let (writer, reader): (Writer, Reader) =
        (engines[1].enter(bob.clone()).await.expect("a right"), engines[1].enter(bob.clone()).await.expect("a right"));
    let made = writer.create_key(new_key("bob's", &[Scope::ApiRead]), None).await.expect("a key");
    let secret = made.secret.expect("a key");
    assert!(workspace.reader.is_member(bob.user_id()).await.expect("an answer"));
    let mut standing = reader.standing();
    workspace.owner.remove_member(bob.user_id()).await.expect("removed");
    standing.ended().await;
    for engine in &engines {
        assert!(is_refused(engine, &token).await);
        assert!(is_refused(engine, &secret).await);
    }
    assert!(!workspace.reader.is_member(bob.user_id()).await.expect("an answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lower_role_holds_at_the_next_request_everywhere() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    workspace.owner.invite("bob@example.com", Role::Owner).await.expect("invited");
    let token = token("bob");
    let bob = engines[1].authenticate(&token).await.expect("a caller");
    engines[1].enter::<Owner>(bob.clone()).await.expect("an owner");
    workspace.owner.change_role(bob.user_id(), Role::Viewer).await.expect("changed");
    for engine in &engines {
        let bob = engine.authenticate(&token).await.expect("a caller");
        assert!(matches!(engine.enter::<Writer>(bob).await, Err(Error::Forbidden { code: "insufficient_role", .. })));
    }
    // Whose workspace it is stays its owner.
    let founder = workspace.reader.record().owner_id.clone();
    for refused in [
        workspace.owner.change_role(&founder, Role::Viewer).await.map(drop),
        workspace.owner.remove_member(&founder).await,
    ] {
        assert!(matches!(refused, Err(Error::Conflict { code: "workspace_owner", .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_devices_at_once_are_as_many_as_the_plan_allows() {
    const LIMIT: usize = 3;
    let (engines, key) = twins().await;
    let caller = engines[0].authenticate(&key).await.expect("a caller");
    let operator: Operator = engines[0].enter(caller.clone()).await.expect("a right");
    let limits = Some(Limits { activations: Some(LIMIT as u64), ..Limits::default() });
    let user = caller.user_id().to_owned();
    operator.set_plan(&user, NewPlan { limits, ..NewPlan::default() }).await.expect("a plan");
    let asking = (0..50).map(|number| {
        let (engine, key) = (engines[number % 2].clone(), key.clone());
        tokio::spawn(async move {
            let caller = engine.authenticate(&key).await.expect("a caller");
            let unlocker: Unlocker = engine.enter(caller).await.expect("a right");
            let device = Device { instance_id: format!("device-{number}"), ..Device::default() };
            unlocker.validate_device(device).await.expect("an answer").0.verdict
        })
    });
    let mut verdicts = Vec::new();
    for asking in asking.collect::<Vec<_>>() {
        verdicts.push(asking.await.expect("a request"));
    }
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Valid).count(), LIMIT);
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::LimitReached).count(), 50 - LIMIT);
    let reader: Reader = engines[1].enter(caller).await.expect("a right");
    assert_eq!(reader.list_activations().await.expect("devices").len(), LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_sign_licenses_with_one_key() {
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
