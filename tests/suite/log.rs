//! Tests reading of the log and of streams: events that a filter rejects are read once, and a page ends at its byte
//! limit.

use std::time::Duration;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::events::{EventLimit, LogFilter, ReadDirection};
use foldwork_tests::handles::Handles;
use foldwork_tests::server::Server;

/// The number of events that the filter rejects. This number exceeds the number of events that one page reads.
const OTHER_EVENTS: usize = 6_000;

fn event(stream: &str, verb: &str, text: &str) -> NewEvent {
    NewEvent {
        aggregate_id: stream.into(),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload: [("title", Value::from(text))].into_iter().collect(),
        ..NewEvent::default()
    }
}

async fn append(workspace: &Handles, events: Vec<NewEvent>) {
    for part in events.chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_matching_events_has_the_position_at_which_to_continue() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("the owner");
    append(&workspace, (0..OTHER_EVENTS).map(|_| event("a", "changed", "x")).collect()).await;
    append(&workspace, vec![event("b", "noticed", "y")]).await;
    let filter = LogFilter { event_types: ["article.noticed".to_owned()].into(), ..LogFilter::default() };
    let limit = EventLimit::events(10);

    let page = workspace.reader.log(0, limit, &filter, Duration::ZERO).await.expect("a page");
    assert!(page.items.is_empty());
    assert_eq!(page.next, Some(page.position), "the position at which to continue");
    assert!((1..=OTHER_EVENTS as u64).contains(&page.position), "the page ends at {}", page.position);
    let page = workspace.reader.log(page.position, limit, &filter, Duration::ZERO).await.expect("a page");
    assert_eq!(page.items.iter().map(|event| event.position).collect::<Vec<_>>(), [OTHER_EVENTS as u64 + 1]);
    assert_eq!((page.next, page.position), (None, OTHER_EVENTS as u64 + 1));

    // A request with a wait time also reads the following pages.
    let page = workspace.reader.log(0, limit, &filter, Duration::from_secs(60)).await.expect("a page");
    assert_eq!(page.items.len(), 1);

    // A page at the end of the log has its position even if no event matched.
    append(&workspace, vec![event("a", "changed", "x")]).await;
    let page = workspace.reader.log(page.position, limit, &filter, Duration::ZERO).await.expect("a page");
    assert_eq!((page.items.len(), page.next, page.position), (0, None, OTHER_EVENTS as u64 + 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_end_at_their_byte_limit_and_omit_no_events() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("the owner");
    let large = "x".repeat(10_000);
    let events = (0..100).map(|number| match number % 3 {
        0 => event("a", "changed", &large),
        1 => event("b", "changed", "y"),
        _ => event("a", "changed", "z"),
    });
    append(&workspace, events.collect()).await;
    for bytes in [1, 15_000, 100_000, usize::MAX] {
        let limit = EventLimit { events: 40, bytes };
        let (mut positions, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after {
            let page = workspace.reader.log(from, limit, &LogFilter::default(), Duration::ZERO).await.expect("a page");
            let size: usize = page.items.iter().map(|event| event.size_bytes()).sum();
            assert!(page.items.len() == 1 || size <= bytes, "{} events of {size} bytes", page.items.len());
            positions.extend(page.items.iter().map(|event| event.position));
            after = page.next;
        }
        assert_eq!(positions, (1..=100).collect::<Vec<u64>>(), "in pages of {bytes} bytes");

        for direction in [ReadDirection::Forward, ReadDirection::Backward] {
            let (mut versions, mut after) = (Vec::new(), None);
            loop {
                let page = workspace.reader.stream("a", after, limit, direction).await.expect("a page");
                let size: usize = page.items.iter().map(foldwork_engine::model::event::Event::size_bytes).sum();
                assert!(page.items.len() == 1 || size <= bytes, "{} events of {size} bytes", page.items.len());
                versions.extend(page.items.iter().map(|event| event.version));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            if direction == ReadDirection::Backward {
                versions.reverse();
            }
            assert_eq!(versions, (1..=67).collect::<Vec<u64>>(), "in pages of {bytes} bytes, {direction:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_a_stream_at_each_position_is_found() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("the owner");
    let streams = ["a", "b", "b", "a", "c", "a", "b", "a", "a", "c"];
    append(&workspace, streams.iter().map(|stream| event(stream, "changed", "x")).collect()).await;
    for stream in ["a", "b", "c", "d"] {
        for position in 0..=streams.len() + 2 {
            let expected = streams.iter().take(position).filter(|each| **each == stream).count() as u64;
            let found = workspace.reader.version_at(stream, position as u64).await.expect("a version");
            assert_eq!(found, expected, "the version of {stream} at {position}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_an_aggregate_gets_each_event_once() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("the owner");
    append(&workspace, (0..5).map(|_| event("a", "changed", "x")).collect()).await;
    assert!(workspace.reader.follow_aggregate("b", 0).await.is_err(), "an unknown aggregate cannot be followed");
    let mut following = workspace.reader.follow_aggregate("a", 2).await.expect("a follower");
    let (limit, wait) = (EventLimit::events(7), Duration::from_secs(60));
    let mut versions = Vec::new();
    // A follower keeps few events in memory. If more events were appended since its last read, the follower reads these
    // events from the store.
    for count in [0, 1, 3, 200, 1] {
        append(&workspace, (0..count).flat_map(|_| ["a", "b"].map(|id| event(id, "changed", "y"))).collect()).await;
        let target_len = versions.len() + if versions.is_empty() { 3 } else { count };
        while versions.len() < target_len {
            let events = following.next(limit, wait).await.expect("events");
            assert!((1..=7).contains(&events.len()) && events.iter().all(|event| event.aggregate_id.as_str() == "a"));
            versions.extend(events.iter().map(|event| event.version));
        }
    }
    assert_eq!(versions, (3..=210).collect::<Vec<u64>>());
    assert!(following.next(limit, Duration::ZERO).await.expect("no events").is_empty());

    // An append wakes a waiting follower.
    let waiting = tokio::spawn(async move { following.next(limit, wait).await.expect("events").len() });
    append(&workspace, vec![event("b", "changed", "z"), event("a", "changed", "z")]).await;
    assert_eq!(waiting.await.expect("a follower"), 1);
}
