//! Two engines over one store append to the same streams concurrently, as two servers would.

use foldwork_engine::Appended;
use foldwork_engine::model::event::{Expected, NewEvent};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::events::{Direction, Limit, LogFilter};
use foldwork_engine::{Error, Store};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{Handles, enter};

const WRITERS: usize = 4;
const EVENTS: usize = 12;
const STREAMS: usize = 3;

/// Returns the same workspace as two engines see it.
async fn twins() -> [Handles; 2] {
    let store = Store::connect("mem://").await.expect("a store");
    let (one, two) = (engine(store.share()).await, engine(store.share()).await);
    let (workspace, key) = first(&one).await.expect("a workspace");
    [workspace, enter(&two, &key).await.expect("two")]
}

fn event(stream: &str, title: String, expected: Expected) -> NewEvent {
    NewEvent {
        aggregate_id: stream.into(),
        aggregate_type: "article".into(),
        event_type: "article.updated".into(),
        payload: Object::from_iter([("title", Value::from(title))]),
        expected,
        ..NewEvent::default()
    }
}

/// Appends events and retries while the store is unavailable.
async fn append(workspace: &Handles, events: Vec<NewEvent>) -> Result<Appended, Error> {
    loop {
        match workspace.writer.append_events(events.clone()).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_and_versions_have_no_gaps_or_duplicates() {
    let twins = twins().await;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let workspace = twins[writer % 2].clone();
        writers.push(tokio::spawn(async move {
            for number in 0..EVENTS {
                let stream = format!("s{}", number % STREAMS);
                let mut new = event(&stream, format!("{writer}/{number}"), Expected::Any);
                new.event_id = Some(format!("{writer}-{number}"));
                append(&workspace, vec![new]).await.expect("appended");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    for workspace in &twins {
        let log = workspace
            .reader
            .log(0, Limit::events(1_000), &LogFilter::default(), std::time::Duration::ZERO)
            .await
            .expect("the log");
        let positions: Vec<u64> = log.items.iter().map(|event| event.position).collect();
        assert_eq!(positions, (1..=(WRITERS * EVENTS) as u64).collect::<Vec<_>>());
        let mut ids: Vec<&str> = log.items.iter().map(|event| &*event.event_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WRITERS * EVENTS, "an event is in the log twice");
        for stream in 0..STREAMS {
            let page = workspace
                .reader
                .stream(&format!("s{stream}"), None, Limit::events(200), Direction::Forward)
                .await
                .expect("a stream");
            let versions: Vec<u64> = page.items.iter().map(|event| event.version).collect();
            assert_eq!(versions, (1..=versions.len() as u64).collect::<Vec<_>>());
            let moment = foldwork_engine::workspace::aggregates::Moment::Now;
            let (state, _) = workspace.reader.aggregate(&format!("s{stream}"), moment).await.expect("a state");
            let last = page.items.last().expect("an event");
            assert_eq!((state.version, state.state.get("title")), (last.version, last.payload.get("title")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_appends_expecting_a_version_wins() {
    let twins = twins().await;
    for version in 0..8u64 {
        let expected = if version == 0 { Expected::None } else { Expected::Version(version) };
        let attempts = (0..WRITERS).map(|writer| {
            let workspace = twins[writer % 2].clone();
            tokio::spawn(async move { append(&workspace, vec![event("s", format!("{writer}"), expected)]).await })
        });
        let mut won = 0;
        for attempt in attempts.collect::<Vec<_>>() {
            match attempt.await.expect("a writer") {
                Ok(appended) => {
                    won += 1;
                    assert_eq!(appended.events.first().map(|event| event.version), Some(version + 1));
                }
                Err(Error::Conflict { code, .. }) => assert_eq!(code, "version_conflict"),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won, 1, "at version {version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_sent_to_both_servers_is_appended_once() {
    let twins = twins().await;
    let attempts = (0..WRITERS).map(|writer| {
        let workspace = twins[writer % 2].clone();
        let mut new = event("s", "same".into(), Expected::Any);
        new.event_id = Some("only-one".into());
        tokio::spawn(async move { append(&workspace, vec![new]).await })
    });
    let mut new = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        let appended = attempt.await.expect("a writer").expect("appended");
        assert_eq!(appended.events.first().map(|event| event.position), Some(1));
        new += usize::from(!appended.is_repeat());
    }
    assert_eq!(new, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slug_is_assigned_once() {
    let twins = twins().await;
    let attempts = (0..WRITERS).map(|writer| {
        let workspace = twins[writer % 2].clone();
        let new = foldwork_engine::workspace::projects::NewProject { name: "Docs".into(), ..Default::default() };
        tokio::spawn(async move {
            loop {
                match workspace.writer.create_project(new.clone()).await {
                    Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
                    other => return other.is_ok(),
                }
            }
        })
    });
    let mut won = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        won += usize::from(attempt.await.expect("a writer"));
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_on_one_server_gets_appends_of_the_other() {
    let [here, there] = twins().await;
    append(&here, vec![event("s", "first".into(), Expected::None)]).await.expect("appended");
    let mut following = there.reader.follow_aggregate("s", 0).await.expect("a follower");
    for version in 1..=3 {
        let events = following.next(Limit::events(9), std::time::Duration::from_secs(60)).await.expect("events");
        assert_eq!(events.iter().map(|event| event.version).collect::<Vec<_>>(), [version]);
        append(&here, vec![event("s", "next".into(), Expected::Any)]).await.expect("appended");
    }
}
