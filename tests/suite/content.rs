//! Tests the shipped plugins with unusual content, as real users write it.

use std::sync::Arc;

use foldwork_engine::hook::{EnrichInput, Plugin, WorkInput};
use foldwork_engine::model::aggregate::{Aggregate, no_facts};
use foldwork_engine::model::builtin;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::facts::{Facts, Product};
use foldwork_engine::model::id::AggregateId;
use foldwork_engine::model::value::{Object, Value};
use foldwork_plugins::PluginFolder;
use foldwork_plugins::limits::CallLimits;
use foldwork_plugins::script::Script;

/// Loads a shipped script with the default limits, except for the deadline. The deadline is longer, because a debug
/// build on a busy machine is slow.
fn shipped(name: &str) -> Script {
    let folder = PluginFolder::shipped(name).expect("a shipped plugin");
    Script::load(&folder, CallLimits { deadline_ms: 60_000, ..CallLimits::default() }).expect("a script")
}

fn article() -> Definition {
    builtin::definitions().into_iter().find(|definition| *definition.type_name == *"article").expect("the type article")
}

fn aggregate(definition: &Definition, state: &Object) -> Aggregate {
    Aggregate {
        id: AggregateId::parse("a-1").expect("an id"),
        aggregate_type: definition.type_name.clone(),
        project_id: None,
        version: 1,
        position: 1,
        first_position: 1,
        created_at: 0,
        last_event_at: 0,
        deleted: false,
        state: Arc::new(state.clone()),
        facts: no_facts(),
    }
}

fn enrich(script: &Script, state: &Object) -> Facts {
    let definition = article();
    let aggregate = aggregate(&definition, state);
    let event = Event {
        event_id: "event-1".into(),
        aggregate_id: aggregate.id.clone(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        project_id: None,
        version: 1,
        position: 1,
        payload: Arc::new(state.clone()),
        metadata: Arc::default(),
        actor: "system".into(),
        occurred_at: 0,
        recorded_at: 0,
        sent: Default::default(),
    };
    let outcome = script.enrich(&EnrichInput { event: &event, aggregate: &aggregate, definition: &definition });
    outcome.map_err(|failure| format!("{}: {failure:?}", script.about().name)).expect("an answer").value
}

fn work(script: &Script, definition: &Definition, state: &Object, related: &[Value]) -> Product {
    let row = WorkInput::row(&aggregate(definition, state), definition);
    let task = Value::from(Object::from_iter([("_id", "task-1")]));
    let outcome = script.work(&WorkInput { task: &task, messages: &[], aggregate: Some(&row), related, now_ms: 0 });
    outcome.map_err(|failure| format!("{}: {failure:?}", script.about().name)).expect("an answer").value
}

fn body(text: impl Into<String>) -> Object {
    Object::from_iter([("title", Value::from("T")), ("body", Value::from(text.into()))])
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn an_article_with_10_001_links_has_edges_to_the_first_1_000() {
    let linker = shipped("linker");
    for text in [
        lines(10_001, |number| format!("[link](text/page-{number:05}.md) ")),
        lines(10_001, |number| format!("see text/page-{number:05} ")),
        lines(10_001, |number| format!("page-{number:05}.md ")),
        lines(10_001, |number| format!("[link](page-{number:05})\n")),
    ] {
        let edges = enrich(&linker, &body(text)).edges;
        assert_eq!(edges.len(), 1_000);
        assert!(format!("{:?}", edges[999]).contains("page-00999"), "{:?}", edges[999]);
    }
    for line in [
        |number: usize| format!("[link](text/page-{number:05}.md) "),
        |number: usize| format!("[link](/page-{number:05})\n"),
    ] {
        let mut page = body(lines(10_001, line));
        page.push("path", "a/b/c/d/e/f.md");
        let edges = enrich(&linker, &page).edges;
        assert_eq!(edges.len(), 1_000);
        assert!(format!("{:?}", edges[999]).contains("page-00999"), "{:?}", edges[999]);
    }
    // Repeated mentions of one target do not use up the limit for other targets.
    let text = lines(4_000, |_| "text/one ".to_owned()) + "text/two";
    assert_eq!(enrich(&linker, &body(text)).edges.len(), 2);
}

#[test]
fn the_statistics_of_an_article_with_20_001_headings_count_1_000_headings() {
    let text = lines(20_001, |number| format!("# Heading {number}\n\n"));
    let derived = enrich(&shipped("reading_stats"), &body(text)).derived;
    assert_eq!((derived.get("headings"), derived.get("words")), (Some(&Value::Int(1_000)), Some(&Value::Int(40_002))));
}

#[test]
fn plugins_do_not_fail_on_long_words_long_paths_or_unusual_characters() {
    let (linker, stats) = (shipped("linker"), shipped("reading_stats"));
    for text in [
        "x".repeat(900_000),
        "a/".repeat(450_000),
        format!("![](data:image/png;base64,{}) then [one](text/one)", "iVBORw0KGgo/AAAN+".repeat(50_000)),
        lines(900, |number| format!("[r{number}][r]\n")) + "\n[r]: " + &*"y".repeat(500_000),
        "[".repeat(100_000),
        "東京都庁へようこそ。".repeat(20_000),
        "कमल का फूल ".repeat(20_000),
        "كِتَاب 🎉 ".repeat(20_000),
        "\u{0}\u{301}\u{FEFF}\u{202E}".repeat(10_000),
    ] {
        enrich(&linker, &body(text.as_str()));
        let mut page = body(text.as_str());
        page.push("path", "a.md");
        enrich(&linker, &page);
        enrich(&stats, &body(text.as_str()));
        work(&linker, &article(), &body(text), &[]);
    }
}

#[test]
fn plugins_do_not_fail_on_fields_that_are_missing_or_of_another_type() {
    let definition = article();
    let others: [Value; 6] =
        [Value::Null, Value::Int(7), Value::Bool(true), Value::Double(0.5), Vec::new().into(), Object::new().into()];
    let (linker, stats, structured_data) = (shipped("linker"), shipped("reading_stats"), shipped("structured_data"));
    let take = |state: &Object| {
        enrich(&linker, state);
        enrich(&stats, state);
        work(&linker, &definition, state, &[]);
        work(&structured_data, &definition, state, &[]);
    };
    for value in others {
        for field in ["title", "body", "slug", "tags", "published_at", "path"] {
            let mut state = body("text/one").into_iter().filter(|(name, _)| **name != *field).collect::<Object>();
            take(&state);
            state.push(field, value.clone());
            take(&state);
        }
    }
}

#[test]
fn structured_data_is_produced_only_for_an_aggregate_with_a_label() {
    let script = shipped("structured_data");
    let post = Definition::new("post", "Post", Vec::new(), Vec::new());
    let named = Object::from_iter([("name", Value::from("A post"))]);
    let product = work(&script, &post, &named, &[]);
    assert_eq!((product.message.as_deref(), product.review), (Some("Structured data for \"A post\"."), true));
    let product = work(&script, &post, &Object::from_iter([("text", Value::from("x"))]), &[]);
    assert_eq!((product.artifacts.len(), product.review), (0, false), "{product:?}");
    assert!(product.message.is_some(), "the task states a reason");
    let long = Object::from_iter([("title", Value::from("title ".repeat(80_000)))]);
    let product = work(&script, &article(), &long, &[]);
    assert!(format!("{product:?}").len() < 2_000, "the headline is cut");
}

#[test]
fn one_link_is_proposed_for_a_label_that_is_mentioned_10_001_times() {
    let node = |id: &str, label: String| {
        let slug = ("slug", Value::from(id));
        Object::from_iter([("id", Value::from(id)), ("label", label.into()), ("linked", false.into()), slug]).into()
    };
    let related: Vec<Value> = vec![node("n-1", "event".to_owned()), node("n-2", "long ".repeat(100_000))];
    let product = work(&shipped("linker"), &article(), &body("event ".repeat(10_001)), &related);
    assert_eq!(product.message.as_deref(), Some("Links proposed: 1."));
}
