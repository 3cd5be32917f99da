//! Tests the first start of a store. The first start happens once, even if several servers start at the same time, and
//! always creates a usable key.

use std::sync::Arc;

use foldwork_engine::model::access::Scope;
use foldwork_engine::workspace::keys::{DerivedKeys, NewKey};
use foldwork_engine::{Engine, Error, Store};
use foldwork_tests::embedded::engine;
use foldwork_tests::handles::enter;

const SERVERS: usize = 3;
const ROUNDS: usize = 5;

fn key(digit: &str) -> String {
    format!("sk_{}", digit.repeat(64))
}

async fn is_known(engine: &Arc<Engine>, key: &str) -> bool {
    let known = engine.authenticate(key).await;
    assert!(matches!(known, Ok(_) | Err(Error::Unauthenticated(_))), "{known:?}");
    known.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_starting_servers_creates_the_first_key() {
    for _ in 0..ROUNDS {
        let store = Store::connect("mem://").await.expect("a store");
        let starts = (0..SERVERS).map(|_| {
            let store = store.share();
            tokio::spawn(async move {
                let engine = engine(store).await;
                let first = engine.first_start(None).await.expect("a start");
                (engine, first)
            })
        });
        let (mut engines, mut firsts) = (Vec::new(), Vec::new());
        for start in starts.collect::<Vec<_>>() {
            let (engine, first) = start.await.expect("a server");
            engines.push(engine);
            firsts.extend(first);
        }
        let [first] = firsts.as_slice() else { panic!("{} servers created a workspace", firsts.len()) };
        for engine in &engines {
            let workspace = enter(engine, &first.key).await.expect("the key opens the workspace on every server");
            assert_eq!(workspace.reader.record().id, first.workspace.id);
            assert_eq!(workspace.reader.list_keys().await.expect("keys").len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_key_replaces_the_first_key_only_while_the_first_key_is_unused() {
    let store = Store::connect("mem://").await.expect("a store");
    let unseen = engine(store.share()).await.first_start(None).await.expect("a start").expect("an empty store").key;
    let (chosen, later) = (key("a"), key("b"));

    let second = engine(store.share()).await;
    assert!(second.first_start(Some(chosen.clone())).await.expect("a start").is_none());
    // The result is the same if the server starts again with the same key.
    assert!(second.first_start(Some(chosen.clone())).await.expect("a start").is_none());
    assert!(!is_known(&second, &unseen).await);
    let workspace = enter(&second, &chosen).await.expect("the chosen key opens the workspace");
    assert_eq!(workspace.reader.list_keys().await.expect("keys").len(), 1);

    let third = engine(store.share()).await;
    assert!(third.first_start(Some(later.clone())).await.expect("a start").is_none());
    assert!(is_known(&third, &chosen).await, "a used key is not replaced");
    assert!(!is_known(&third, &later).await);

    let new = NewKey { name: "another".into(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
    workspace.owner.create_key(new, None).await.expect("a key");
    let own = workspace.reader.own_key().await.expect("the key");
    workspace.owner.revoke_key(&own.id, DerivedKeys::End).await.expect("revoked");
    let fourth = engine(store.share()).await;
    assert!(fourth.first_start(Some(chosen.clone())).await.expect("a start").is_none());
    assert!(!is_known(&fourth, &chosen).await, "a revoked key does not come back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_key_is_rejected_before_anything_is_stored() {
    let store = Store::connect("mem://").await.expect("a store");
    let one = engine(store.share()).await;
    assert!(matches!(one.first_start(Some("secret".into())).await, Err(Error::Invalid { .. })));
    assert!(one.first_start(None).await.expect("a start").is_some());
}
