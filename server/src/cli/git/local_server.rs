//! Tests imports into a server that keeps its data in memory.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::events::name_id;
use super::tests::Scratch;
use super::*;
use crate::config::Config;
use crate::serve;

const KEY: &str = "sk_7777777777777777777777777777777777777777777777777777777777777777";

/// A server without plugins, which stops when this value is dropped.
pub struct LocalServer {
    pub client: Client,
    _stop: oneshot::Sender<()>,
}

impl LocalServer {
    pub async fn start() -> Self {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".to_owned();
        config.store.url = "mem://".to_owned();
        config.files.url = "mem://".to_owned();
        config.plugins.enabled.clear();
        let server = serve::listen_with(config, Some(KEY.to_owned()), |_| Ok(())).await.expect("a server");
        let client = Client::new(&format!("http://{}", server.address), KEY).expect("a client");
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(server.run(async move { drop(stopped.await) }));
        Self { client, _stop: stop }
    }

    pub async fn import(&self, place: &SourcePlace) -> Outcome {
        import(&self.client, &ProgressIndicator::start(None), place, &Options::default()).await.expect("imported")
    }

    async fn git(&self, scratch: &Scratch) -> Outcome {
        self.import(&SourcePlace::Git(scratch.folder.clone())).await
    }

    pub async fn append(&self, events: Value) {
        let request = self.client.request(Method::POST, &["events"]).json(&json!({"events": events}));
        self.client.call(request).await.expect("appended");
    }

    async fn append_project(&self, slug: &str) {
        let request = self.client.request(Method::POST, &["projects"]).json(&json!({"name": slug, "slug": slug}));
        self.client.call(request).await.expect("a project");
    }

    /// Returns the articles of the workspace.
    pub async fn articles(&self) -> Vec<Value> {
        self.aggregates("article").await
    }

    pub async fn aggregates(&self, aggregate_type: &str) -> Vec<Value> {
        let query = [("type", aggregate_type), ("limit", "200")];
        let request = self.client.request(Method::GET, &["aggregates"]).query(&query);
        let page: Value = self.client.call(request).await.expect("a list").json().expect("JSON");
        page["data"].as_array().expect("rows").clone()
    }

    /// Returns the paths and texts of the articles, in order.
    pub async fn texts(&self) -> Vec<(String, String)> {
        let text = |article: &Value, name: &str| article[name].as_str().unwrap_or_default().to_owned();
        let mut texts: Vec<_> =
            self.articles().await.iter().map(|article| (text(article, "path"), text(article, "body"))).collect();
        texts.sort();
        texts
    }
}

pub fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_restores_articles_that_were_changed_or_deleted_by_hand() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", b"one"), ("b.md", b"other")]);
    let first = served.git(&scratch).await;
    assert_eq!((first.appended, first.articles, first.missing, first.project.as_str()), (2, 2, 0, "my-notes"));
    assert_eq!(served.git(&scratch).await.appended, 0);
    scratch.commit(1, &[("a.md", b"two"), ("b.md", b"other")]);
    assert_eq!(served.git(&scratch).await.appended, 1);
    let articles = served.articles().await;
    let changed = articles.iter().find(|article| article["path"] == "a.md").expect("an article");
    let removed = articles.iter().find(|article| article["path"] == "b.md").expect("an article");
    let event = |article: &Value, verb: &str, payload: Value| {
        json!({
            "aggregate_id": article["_id"], "aggregate_type": "article", "event_type": format!("article.{verb}"),
            "payload": payload,
        })
    };
    let own = json!({
        "aggregate_id": "own", "aggregate_type": "article", "event_type": "article.created", "project_id": "my-notes",
        "payload": {"title": "Own", "body": "by hand", "slug": "own"},
    });
    let changes = [
        event(changed, "updated", json!({"body": "edited", "reviewed": true})),
        event(removed, "deleted", json!({})),
        own,
    ];
    served.append(json!(changes)).await;
    assert_eq!(served.git(&scratch).await.appended, 2);
    assert_eq!(served.texts().await, pairs(&[("", "by hand"), ("a.md", "two"), ("b.md", "other")]));
    let articles = served.articles().await;
    let kept = articles.iter().find(|article| article["path"] == "a.md").expect("an article");
    assert_eq!((&kept["_id"], &kept["reviewed"]), (&changed["_id"], &json!(true)));
    assert_eq!(served.git(&scratch).await.appended, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn event_times_stay_in_order_when_an_import_recreates_a_deleted_article() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", b"one")]);
    served.git(&scratch).await;
    let id = served.articles().await[0]["_id"].clone();
    let deleted = json!({"aggregate_id": id, "aggregate_type": "article", "event_type": "article.deleted"});
    served.append(json!([deleted])).await;
    assert_eq!(served.git(&scratch).await.appended, 1);
    assert_eq!(served.articles().await[0]["_id"], id);
    let path = ["aggregates", id.as_str().expect("an id"), "events"];
    let events: Value =
        served.client.call(served.client.request(Method::GET, &path)).await.expect("a list").json().expect("JSON");
    let mut events: Vec<&Value> = events["data"].as_array().expect("rows").iter().collect();
    events.sort_by_key(|event| event["version"].as_u64());
    let times: Vec<&str> = events.iter().filter_map(|event| event["occurred_at"].as_str()).collect();
    assert!(times.len() == 3 && times.is_sorted(), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_continues_from_the_articles_if_no_import_record_exists() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    let root = scratch.commit(0, &[("a.md", b"one")]).to_string();
    served.append_project("my-notes").await;
    let id = name_id(&[&root, "a.md", &root]);
    served
        .append(json!([{
            "aggregate_id": id, "aggregate_type": "article", "event_type": "article.created", "project_id": "my-notes",
            "payload": {"slug": "a", "title": "a", "body": "one", "tags": [], "path": "a.md", "folder": "."},
            "metadata": {"source": "git", "commit": root, "path": "a.md"}, "occurred_at": "2023-11-14T22:13:20.000Z",
        }]))
        .await;
    scratch.commit(1, &[("b.md", b"one")]);
    assert_eq!(served.git(&scratch).await.appended, 1);
    assert_eq!(served.texts().await, pairs(&[("b.md", "one")]));
    assert_eq!(served.articles().await[0]["_id"], id);
    assert_eq!(served.git(&scratch).await.appended, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_repository_with_the_same_name_gets_a_project_of_its_own() {
    let (served, one, other) = (LocalServer::start().await, Scratch::new(), Scratch::new());
    one.commit(0, &[("a.md", b"one")]);
    other.commit(0, &[("a.md", b"other")]);
    assert_eq!(served.git(&one).await.project, "my-notes");
    assert_eq!(served.git(&other).await.project, "my-notes-2");
    assert_eq!(served.texts().await, pairs(&[("a.md", "one"), ("a.md", "other")]));
    let (first, second) = (served.git(&one).await, served.git(&other).await);
    assert_eq!((first.project.as_str(), second.project.as_str()), ("my-notes", "my-notes-2"));
    assert_eq!((first.appended, second.appended), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_may_be_imported_into_two_projects() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", b"one")]);
    for project in ["first", "second"] {
        let options = Options { project: Some(project.to_owned()), ..Options::default() };
        let place = SourcePlace::Git(scratch.folder.clone());
        let outcome =
            import(&served.client, &ProgressIndicator::start(None), &place, &options).await.expect("imported");
        assert_eq!((outcome.appended, outcome.missing), (1, 0));
    }
    assert_eq!(served.texts().await, pairs(&[("a.md", "one"), ("a.md", "one")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_event_is_left_out_and_the_other_events_are_imported() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", b"one"), ("b.md", b"two"), ("c.md", b"three")]);
    let source = FileSource::repository(&scratch.folder).expect("opened");
    let progress = ProgressIndicator::start(None);
    let options = Options::default();
    let globs = glob_set(&[]).expect("valid globs");
    let place = SourcePlace::Git(scratch.folder.clone());
    let import =
        Import { client: &served.client, progress: &progress, place: &place, options: &options, globs: &globs };
    let loaded = import.load(&source, None).await.expect("loaded");
    let mut sender = import.sender(&loaded);
    let event = |id: &str, payload: Value| events::PreparedEvent {
        json: json!({
            "aggregate_id": id, "aggregate_type": "article", "event_type": "article.created", "project_id": "my-notes",
            "payload": payload,
        })
        .to_string(),
        aggregate_id: id.to_owned(),
        path: format!("{id}.md"),
        commit: String::new(),
        is_new: true,
    };
    let events =
        vec![event("a", json!({"title": "A"})), event("b", json!({"title": 1})), event("c", json!({"title": "C"}))];
    let progress = outbox::ImportProgress { commit: "c".to_owned(), ..outbox::ImportProgress::default() };
    sender.send(outbox::ImportBatch { events, progress, read: 1 }).await.expect("sent");
    assert_eq!((sender.appended, sender.refused.len(), sender.record.version), (2, 1, 1));
    assert!(sender.refused.contains("b.md") && sender.broken.contains("b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_imports_append_each_event_once() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", b"one")]);
    let (one, other) = tokio::join!(served.git(&scratch), served.git(&scratch));
    assert_eq!(one.appended + other.appended, 1);
    assert_eq!(served.texts().await, pairs(&[("a.md", "one")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_import_that_leaves_out_a_file_exits_with_2() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    scratch.commit(0, &[("a.md", &vec![1_u8; 400 * 1024]), ("b.md", b"two")]);
    let outcome = served.git(&scratch).await;
    assert_eq!((outcome.appended, outcome.articles, outcome.missing), (1, 1, 1));
    let strict = Options { strict: true, ..Options::default() };
    assert_eq!(outcome.exit_code(&strict), ExitCode::from(2));
    assert_eq!(outcome.exit_code(&Options::default()), ExitCode::SUCCESS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_import_of_a_folder_follows_renamed_and_removed_files() {
    let served = LocalServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| fs::write(folder.path().join(path), text).expect("written");
    fs::create_dir_all(folder.path().join(".obsidian")).expect("a folder");
    write("one.md", "The first note.");
    write("two.md", "The second note.");
    write(".obsidian/hidden.md", "No note.");
    let place = SourcePlace::Folder(folder.path().to_owned());
    assert_eq!(served.import(&place).await.appended, 2);
    assert_eq!(served.import(&place).await.appended, 0);
    let id = |articles: &[Value], text: &str| {
        articles.iter().find(|article| article["body"] == text).map(|article| article["_id"].clone())
    };
    let before = id(&served.articles().await, "The first note.");
    fs::rename(folder.path().join("one.md"), folder.path().join("renamed.md")).expect("renamed");
    fs::remove_file(folder.path().join("two.md")).expect("removed");
    assert_eq!(served.import(&place).await.appended, 2);
    assert_eq!(served.texts().await, pairs(&[("renamed.md", "The first note.")]));
    assert_eq!(id(&served.articles().await, "The first note."), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_removed_front_matter_are_removed_and_fields_set_by_hand_stay() {
    let (served, folder) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let write = |text: &str| fs::write(folder.path().join("a.md"), text).expect("written");
    let place = SourcePlace::Folder(folder.path().to_owned());
    write("---\ndescription: D\npublish: true\naliases: [b]\n---\nText.");
    served.import(&place).await;
    let article = served.articles().await.remove(0);
    assert_eq!((&article["description"], &article["front_matter"]["publish"]), (&json!("D"), &json!(true)));
    let payload = json!({"reviewed": true, "date": "2020-01-01T00:00:00.000Z"});
    served
        .append(json!([{
            "aggregate_id": article["_id"], "aggregate_type": "article", "event_type": "article.updated",
            "payload": payload,
        }]))
        .await;
    write("Text.");
    assert_eq!(served.import(&place).await.appended, 1);
    let article = served.articles().await.remove(0);
    assert_eq!((&article["description"], &article["front_matter"]), (&Value::Null, &Value::Null));
    assert_eq!((&article["reviewed"], &article["date"]), (&payload["reviewed"], &payload["date"]));
    assert_eq!(served.import(&place).await.appended, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_imported_from_a_repository_without_commits() {
    let (served, scratch) = (LocalServer::start().await, Scratch::new());
    let outcome = served.git(&scratch).await;
    assert_eq!((outcome.appended, outcome.articles, outcome.missing), (0, 0, 0));
    assert!(served.articles().await.is_empty());
}
