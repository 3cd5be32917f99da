//! Tests of the log: a batch is written once, and its events are read in order.

use super::*;
use crate::model::value::{Object, Value};
use crate::store::workspace::append::{AppendBatch, EventWrite};
use crate::store::{Database, Store};

fn event(aggregate_id: &str, version: u64, position: u64) -> Arc<Event> {
    let payload: Object = [("z", Value::Int(1)), ("a", Value::Double(1.0))].into_iter().collect();
    Arc::new(Event {
        event_id: crate::model::id::event_id(0, position, position << 50).to_string().into(),
        version,
        payload: Arc::new(payload),
        occurred_at: 1,
        recorded_at: 2,
        ..Event::sample(aggregate_id, "note.created", position)
    })
}

#[test]
fn a_part_ends_at_its_byte_limit_but_contains_at_least_one_event() {
    let sizes = [Some(10), Some(30), Some(70), Some(5), None, Some(5), Some(5)];
    let event_ref = |(version, size_bytes)| EventRef {
        aggregate_id: "a".into(),
        version,
        position: version,
        occurred_at: None,
        size_bytes,
        ends_commit: false,
    };
    let mut refs: VecDeque<EventRef> = (1..).zip(sizes).map(event_ref).collect();
    let mut parts = Vec::new();
    while !refs.is_empty() {
        parts.push(take_part(&mut refs, 3, 60).len());
    }
    assert_eq!(parts, [2, 1, 1, 1, 2]);
}

/// Returns the writes of events. `chosen` is the index of the event whose id a client chose, if there is one.
fn writes(events: &[Arc<Event>], chosen: Option<usize>) -> Vec<EventWrite> {
    let write = |(index, event): (usize, &Arc<Event>)| EventWrite {
        id_chosen: chosen == Some(index),
        ..EventWrite::from(event.clone())
    };
    events.iter().enumerate().map(write).collect()
}

#[tokio::test]
async fn batches_are_written_atomically_and_events_are_read_by_position_stream_or_id() {
    let alone = Store::connect("mem://").await.expect("memory");
    let log = alone.workspace("0-1").await.expect("a database");
    let first = [event("b", 1, 1), event("a", 1, 2), event("b", 2, 3)];
    log.append_events(&writes(&first, Some(1))).await.expect("appended");
    let second = [event("b", 3, 4)];
    log.append_events(&writes(&second, None)).await.expect("appended");
    assert!(matches!(log.append_events(&writes(&second, None)).await, Err(Error::Conflict)));
    // The append is atomic, so the event before the conflicting event is not written either.
    let half = [event("d", 1, 5), event("b", 3, 6)];
    assert!(matches!(log.append_events(&writes(&half, Some(0))).await, Err(Error::Conflict)));
    assert_eq!(log.read_stream(&half[0].aggregate_id, 1, 9).await.expect("events").len(), 0);
    assert_eq!(log.find_events(&[half[0].event_id.clone()], 9).await.expect("events").len(), 0);
    // The log was opened again. The head of the earlier handle may be outdated, so the commits of that handle are
    // rejected.
    let reopened = alone.workspace("0-1").await.expect("a database");
    let late = [event("late", 1, 5)];
    let refused = log.append_events(&writes(&late, None)).await;
    assert!(matches!(refused, Err(Error::Closing)), "{refused:?}");
    assert!(reopened.read_stream(&late[0].aggregate_id, 1, 9).await.expect("events").is_empty());
    // Opening the log in a shared store moves the head to the end of the log, because the single writer has not
    // maintained the head.
    let log = alone.share().workspace("0-1").await.expect("a database");
    assert_eq!(log.ends().await.expect("a head").position, 4);
    assert!(matches!(log.append_events(&writes(&second, None)).await, Err(Error::Conflict)));
    let third = [event("c", 1, 5)];
    log.append_events(&writes(&third, None)).await.expect("appended");
    assert_eq!(log.ends().await.expect("a head").position, 5);

    let positions = |events: &[Event]| events.iter().map(|event| event.position).collect::<Vec<_>>();
    let all = log.read_after(0, 10).await.expect("events");
    assert_eq!(positions(&all), [1, 2, 3, 4, 5]);
    assert_eq!(all[0], *first[0]);
    assert_eq!(positions(&log.read_after(1, 1).await.expect("events")), [2, 3]);
    // Events at or before the given position are not returned, even if they are in the same commit.
    assert_eq!(positions(&log.read_after(2, 2).await.expect("events")), [3, 4]);
    assert_eq!(positions(&log.read_after(5, 1).await.expect("events")), [0u64; 0]);
    let stream = log.read_stream(&first[0].aggregate_id, 2, 9).await.expect("events");
    assert_eq!(positions(&stream), [3, 4]);

    // A commit may be longer than the range that the search reads first.
    let long: Vec<Arc<Event>> = (1..=200).map(|version| event("long", version, 5 + version)).collect();
    log.append_events(&writes(&long, None)).await.expect("appended");
    assert_eq!(positions(&log.read_after(5, 1).await.expect("events")), (6..=205).collect::<Vec<_>>());
    assert_eq!(positions(&log.read_after(100, 500).await.expect("events")), (101..=205).collect::<Vec<_>>());

    let mut of_old = Vec::new();
    let fields = [("id", convert::record_id("commit", 9)), ("events", Record::String(r#"[["x",1],["y",4]]"#.into()))];
    assert_eq!(event_refs_of(&convert::object(fields), 0, &mut of_old).expect("a commit"), 9);
    assert_eq!((of_old[0].position, of_old[1].version, of_old[1].occurred_at), (8, 4, None));
    let refs = log.event_refs_after(0, 10).await.expect("refs");
    assert_eq!(refs[3].occurred_at, Some(1));
    let some = log.read_event_refs(&refs[1..3], Some(&["a".into()].into())).await.expect("events");
    assert_eq!(positions(&some), [2, 3]);
    assert_eq!(some[0].payload.keys().map(|name| &**name).collect::<Vec<_>>(), ["a"]);

    let ids = [first[1].event_id.clone(), first[2].event_id.clone(), "unknown".into()];
    let found = log.find_events(&ids, 300).await.expect("events");
    assert_eq!(found.len(), 2);
    assert_eq!(found[&ids[1]].position, 3);
    // These ids contain positions, but no events with these ids exist. Positions after the end of the log are not
    // searched.
    let invented: Vec<Arc<str>> =
        (1..200).map(|n| crate::model::id::event_id(0, 1 + n % 3, n).to_string().into()).collect();
    assert_eq!(log.find_generated(&invented, 300).await.expect("events").len(), 0);
    assert_eq!(log.find_generated(&ids, 1).await.expect("events").len(), 0);
}

#[tokio::test]
async fn a_batch_of_an_overtaken_leader_is_rejected() {
    let log = Database::shared_log_in_memory().await;
    let first = log.lead("a", &["a".into()], false).await.expect("a leader").epoch;
    let append = async |events: &[Arc<Event>], epoch| {
        log.append(AppendBatch { events: &writes(events, None), epoch, ..AppendBatch::default() }).await
    };
    append(&[event("a", 1, 1)], Some(first)).await.expect("appended");
    let second = log.lead("b", &["a".into(), "b".into()], true).await.expect("a leader").epoch;
    let late = [event("a", 2, 2)];
    assert!(matches!(append(&late, Some(first)).await, Err(Error::Conflict)));
    assert!(log.read_stream(&late[0].aggregate_id, 2, 9).await.expect("events").is_empty());
    append(&late, Some(second)).await.expect("appended");
    append(&[event("a", 3, 3)], None).await.expect("appended");
}
