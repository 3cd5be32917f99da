//! Tests vector search with an embedding model that the test defines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foldwork_engine::hook::{Embed, EmbedFailure};
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::search::{SearchOutput, SearchRequest};
use foldwork_engine::{Engine, Store};
use foldwork_tests::embedded;
use foldwork_tests::handles::{Handles, enter};

/// The time limit for embedding.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An embedding model that maps a few words to subjects. All other words have no subject.
struct Subjects {
    name: &'static str,
    length: usize,
    fails: AtomicBool,
    texts: Mutex<Vec<String>>,
}

const SUBJECTS: [&[&str]; 3] = [&["cat", "kitten", "tomcat"], &["car", "lorry", "automobile"], &["bread", "bakery"]];

impl Subjects {
    fn new(name: &'static str, length: usize) -> Arc<Subjects> {
        Arc::new(Subjects { name, length, fails: AtomicBool::new(false), texts: Mutex::default() })
    }

    fn was_embedded(&self, text: &str) -> bool {
        self.texts.lock().expect("no panic before").iter().any(|embedded| embedded == text)
    }
}

impl Embed for Subjects {
    fn model(&self) -> &str {
        self.name
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(EmbedFailure("the model is asleep".into()));
        }
        self.texts.lock().expect("no panic before").extend_from_slice(texts);
        let vector = |text: &String| {
            let text = text.to_lowercase();
            let about = |words: &&[&str]| words.iter().any(|word| text.contains(word));
            let mut vector = vec![0.0; self.length];
            let subject = SUBJECTS.iter().position(about).unwrap_or(SUBJECTS.len());
            vector[subject] = 1.0;
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

async fn engine(store: &Store, embed: Arc<dyn Embed>) -> Arc<Engine> {
    let engine = embedded::engine(store.share()).await;
    engine.embed_with(embed);
    engine
}

async fn write(workspace: &Handles, id: &str, verb: &str, title: &str) {
    let event = NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload: [("title", Value::from(title))].into_iter().collect(),
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.expect("appended");
}

async fn ask(workspace: &Handles, query: &str) -> SearchOutput {
    workspace.reader.search(SearchRequest { query: query.into(), ..SearchRequest::default() }).await.expect("an answer")
}

fn ids(answer: &SearchOutput) -> Vec<&str> {
    answer.results.iter().map(|found| found.aggregate.id.as_str()).collect()
}

/// Repeats a search until the response satisfies `is_done`, because vectors are computed with a delay.
async fn until(workspace: &Handles, query: &str, is_done: impl Fn(&SearchOutput) -> bool) -> SearchOutput {
    let began = std::time::Instant::now();
    loop {
        let answer = ask(workspace, query).await;
        if is_done(&answer) {
            return answer;
        }
        assert!(began.elapsed() < TIMEOUT, "vectors do not catch up: {answer:#?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_search_survives_a_restart_and_a_failure_of_the_model() {
    let store = Store::connect("mem://").await.expect("a store");
    let model = Subjects::new("one", 4);
    let first = engine(&store, model.clone()).await;
    let key = first.first_start(None).await.expect("a workspace").expect("the store is empty").key;
    let workspace = enter(&first, &key).await.expect("a workspace");
    write(&workspace, "pet", "created", "A kitten of our own").await;
    write(&workspace, "engine", "created", "How a lorry starts").await;
    write(&workspace, "catalogue", "created", "Tomcat").await;

    let both = |answer: &SearchOutput| answer.results.iter().filter(|found| found.vector.is_some()).count() == 2;
    let answer = until(&workspace, "tomcat", both).await;
    assert_eq!(ids(&answer), ["catalogue", "pet"]);
    assert_eq!(answer.results[0].kind, "exact");
    assert_eq!((answer.results[1].kind, answer.results[1].vector), ("vector", Some(1.0)));
    assert!(answer.results[0].score > answer.results[1].score && answer.warnings.is_empty(), "{answer:?}");

    // A changed label replaces the old vector, and a deleted aggregate disappears immediately.
    write(&workspace, "pet", "updated", "Fresh bread").await;
    until(&workspace, "automobile", |answer| ids(answer) == ["engine"]).await;
    until(&workspace, "bakery", |answer| ids(answer) == ["pet"]).await;
    write(&workspace, "engine", "deleted", "").await;
    assert!(ids(&ask(&workspace, "automobile").await).is_empty());

    // If the model fails, search uses only the text.
    model.fails.store(true, Ordering::SeqCst);
    let answer = ask(&workspace, "fresh bread").await;
    assert_eq!(ids(&answer), ["pet"]);
    assert_eq!(answer.warnings, ["searched by text only: the query could not be embedded"]);
    write(&workspace, "late", "created", "A car that came late").await;
    model.fails.store(false, Ordering::SeqCst);
    until(&workspace, "automobile", |answer| ids(answer) == ["late"]).await;

    // A start with the same model embeds no label again. A start with another model embeds all labels again.
    first.close().await;
    let same = Subjects::new("one", 4);
    let workspace = enter(&engine(&store, same.clone()).await, &key).await.expect("a workspace");
    until(&workspace, "bakery", |answer| ids(answer) == ["pet"]).await;
    assert!(!same.was_embedded("Fresh bread"));
    let other = Subjects::new("two", 7);
    let workspace = enter(&engine(&store, other.clone()).await, &key).await.expect("a workspace");
    until(&workspace, "bakery", |answer| ids(answer) == ["pet"]).await;
    until(&workspace, "automobile", |answer| ids(answer) == ["late"]).await;
    assert!(other.was_embedded("Fresh bread"));
}

#[tokio::test(flavor = "multi_thread")]
async fn search_uses_only_the_text_while_the_embedding_model_fails() {
    let store = Store::connect("mem://").await.expect("a store");
    let model = Subjects::new("one", 4);
    model.fails.store(true, Ordering::SeqCst);
    let engine = engine(&store, model).await;
    let key = engine.first_start(None).await.expect("a workspace").expect("the store is empty").key;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    write(&workspace, "pet", "created", "Tomcat").await;
    let answer = until(&workspace, "tomcat", |answer| !answer.results.is_empty()).await;
    assert_eq!(answer.results[0].score, 1.0);
    assert!(answer.warnings[0].starts_with("searched by text only: "), "{:?}", answer.warnings);
}
