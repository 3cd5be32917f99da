//! Tests concurrent requests with one idempotency key: exactly one is executed, on one server and on several servers.

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::workspace::responses::{self, IdempotentRequest, IdempotentResult, KeptResponse};
use foldwork_engine::{Error, Store, model::access::Scope};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{Handles, enter};
use futures_util::future::join_all;

/// Returns the handles of one workspace on several engines with one store.
async fn seen_by(engines: usize) -> Vec<Handles> {
    let store = Store::connect("mem://").await.expect("a store");
    if engines == 1 {
        return vec![first(&engine(store).await).await.expect("a workspace").0];
    }
    let (workspace, key) = first(&engine(store.share()).await).await.expect("a workspace");
    let mut all = vec![workspace];
    for _ in 1..engines {
        all.push(enter(&engine(store.share()).await, &key).await.expect("the same workspace"));
    }
    all
}

/// Appends an event with an idempotency key. Returns whether this call, and not an earlier call, appended the event.
async fn append(workspace: &Handles, key: &str, title: &str) -> Result<bool, Error> {
    let request = IdempotentRequest::new("user", key, "test", title.as_bytes())?;
    let event = NewEvent {
        aggregate_id: "a".into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([("title", title)]),
        ..NewEvent::default()
    };
    loop {
        match workspace.writer.append_requested(vec![event.clone()], Some(&request)).await {
            // Retries, because the store is busy.
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => return Err(error),
            Ok(appended) => return Ok(!appended.is_repeat()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_repeated_concurrently_is_executed_once() {
    for engines in [1, 2] {
        let workspaces = seen_by(engines).await;
        for round in 0..5 {
            let key = format!("key-{round}");
            let appends = (0..8).map(|number| append(&workspaces[number % engines], &key, "same"));
            let firsts = join_all(appends).await.into_iter().map(|first| first.expect("appended"));
            assert_eq!(firsts.filter(|first| *first).count(), 1);
        }
        let state = workspaces[0].reader.aggregate("a", Default::default()).await.expect("a state").0;
        assert_eq!(state.version, 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_several_different_requests_with_one_idempotency_key_is_executed() {
    for engines in [1, 2] {
        let workspaces = seen_by(engines).await;
        for round in 0..5 {
            let key = format!("key-{round}");
            let titles = ["one", "two", "three", "four"];
            let appends = titles.iter().enumerate().map(|(n, title)| append(&workspaces[n % engines], &key, title));
            let (done, refused): (Vec<_>, Vec<_>) = join_all(appends).await.into_iter().partition(Result::is_ok);
            assert_eq!(done.len(), 1);
            let mismatch =
                |error: &Error| matches!(error, Error::Conflict { code: ErrorCode::IdempotencyMismatch, .. });
            assert!(refused.iter().all(|refused| refused.as_ref().is_err_and(mismatch)), "{refused:?}");
        }
        let state = workspaces[0].reader.aggregate("a", Default::default()).await.expect("a state").0;
        assert_eq!(state.version, 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_idempotency_key_of_a_failed_request_can_be_used_for_another_request() {
    for engines in [1, 2] {
        let workspaces = seen_by(engines).await;
        let request = IdempotentRequest::new("user", "key", "test", b"failing").expect("a key");
        let make = || async { Err::<((), KeptResponse), _>(Error::invalid("no")) };
        let failed = responses::idempotent(&workspaces[0].writer, request, make).await;
        assert!(matches!(failed, Err(Error::Invalid { .. })));
        assert!(append(&workspaces[engines - 1], "key", "another").await.expect("appended"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_append_returns_its_original_events() {
    let store = Store::connect("mem://").await.expect("a store");
    // The first engine is not closed, so the repeated request is recognized by the data that was stored with the
    // events.
    let (before, key) = first(&engine(store.share()).await).await.expect("a workspace");
    let event = |id: &str, event_id: Option<&str>| NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([("title", id)]),
        event_id: event_id.map(str::to_owned),
        ..NewEvent::default()
    };
    before.writer.append_events(vec![event("a", Some("chosen"))]).await.expect("appended");
    let events = vec![event("b", None), event("a", Some("chosen")), event("c", None), event("b", None)];
    let request = IdempotentRequest::new("user", "key", "test", b"body").expect("a key");
    let appended = before.writer.append_requested(events.clone(), Some(&request)).await.expect("appended");
    assert_eq!(appended.repeated, [false, true, false, false]);
    assert!(!appended.is_repeat());

    let after = enter(&engine(store.share()).await, &key).await.expect("the same workspace");
    append(&after, "another", "title").await.expect("appended");
    for workspace in [&after, &before] {
        let again = workspace.writer.append_requested(events.clone(), Some(&request)).await.expect("appended");
        assert!(again.is_repeat());
        assert_eq!((again.events, again.repeated), (appended.events.clone(), appended.repeated.clone()));
        let other = IdempotentRequest::new("user", "key", "test", b"another body").expect("a key");
        let refused = workspace.writer.append_requested(vec![event("d", None)], Some(&other)).await;
        assert!(matches!(refused, Err(Error::Conflict { code: ErrorCode::IdempotencyMismatch, .. })), "{refused:?}");
    }
    assert_eq!(after.reader.position(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_append_is_recognized_before_its_expected_version_is_checked() {
    for engines in [1, 2] {
        let workspaces = seen_by(engines).await;
        let new = |event_id: Option<&str>| NewEvent {
            aggregate_id: event_id.unwrap_or("keyed").into(),
            aggregate_type: "article".into(),
            event_type: "article.created".into(),
            payload: Object::from_iter([("title", "title")]),
            event_id: event_id.map(str::to_owned),
            expected: StreamExpectation::None,
            ..NewEvent::default()
        };
        let request = IdempotentRequest::new("user", "key", "test", b"body").expect("a key");
        for number in 0..3 {
            let writer = &workspaces[number % engines].writer;
            let (named, keyed) = futures_util::join!(
                writer.append_events(vec![new(Some("chosen"))]),
                writer.append_requested(vec![new(None)], Some(&request))
            );
            assert_eq!(named.expect("appended").is_repeat(), number > 0);
            assert_eq!(keyed.expect("appended").is_repeat(), number > 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_cannot_be_used_for_two_kinds_of_requests() {
    for engines in [1, 2] {
        let workspaces = seen_by(engines).await;
        let mismatch =
            |error: Option<Error>| matches!(error, Some(Error::Conflict { code: ErrorCode::IdempotencyMismatch, .. }));
        let keep = async |key: &str| {
            let request = IdempotentRequest::new("user", key, "test", b"something else").expect("a key");
            let make = || async { Ok(((), KeptResponse { body: "made".into(), location: String::new() })) };
            responses::idempotent(&workspaces[0].writer, request, make).await
        };
        assert!(append(&workspaces[engines - 1], "append", "title").await.expect("appended"));
        assert!(mismatch(keep("append").await.err()));
        assert!(matches!(keep("other").await, Ok(IdempotentResult::First(()))));
        assert!(mismatch(append(&workspaces[engines - 1], "other", "title").await.err()));
        assert!(matches!(keep("other").await, Ok(IdempotentResult::Repeated(_))));
        assert!(!append(&workspaces[engines - 1], "append", "title").await.expect("appended"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_response_survives_the_closing_of_its_workspace() {
    let engine = engine(Store::connect("mem://").await.expect("a store")).await;
    let (mut workspace, key) = first(&engine).await.expect("a workspace");
    for number in 0..3 {
        let request = IdempotentRequest::new("user", "key", "test", b"body").expect("a key");
        let kept_response = KeptResponse { body: "what was said".into(), location: "/there".into() };
        let make = move || async move { Ok(((), kept_response)) };
        match responses::idempotent(&workspace.writer, request, make).await.expect("a response") {
            IdempotentResult::First(()) => assert_eq!(number, 0),
            IdempotentResult::Repeated(first) => {
                assert!(number > 0);
                assert_eq!((first.body.as_str(), first.location.as_str()), ("what was said", "/there"));
            }
        }
        if number > 0 {
            engine.close().await;
            workspace = enter(&engine, &key).await.expect("a workspace");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_creates_one_key_and_shows_its_secret_once() {
    let workspaces = seen_by(2).await;
    let request = IdempotentRequest::new("user", "key", "test", b"body").expect("a key");
    let new = NewKey { name: "k".into(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
    let made = (0..6).map(|number| workspaces[number % 2].owner.create_key(new.clone(), Some(&request)));
    let made: Vec<_> = join_all(made).await.into_iter().map(|made| made.expect("a key")).collect();
    assert!(made.iter().all(|key| key.record == made[0].record));
    assert_eq!(made.iter().filter(|key| key.secret.is_some()).count(), 1);
    assert_eq!(workspaces[0].reader.list_keys().await.expect("keys").len(), 2);
}
