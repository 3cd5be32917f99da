//! The presentation of `foldwork demo`: a link to the dashboard, the import of a repository's history, three sample
//! queries, work that waits for approval, and commands to try next.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use foldwork_engine::clock::{Clock, SystemClock};
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{Client, unless_refused};
use super::dashboard;
use super::git::{self, SourcePlace};
use super::output::{print, print_line};
use super::pages::QueryResults;
use super::progress::ProgressIndicator;
use super::projects::Projects;
use super::table::{self, Table};

/// The time in which the printed link can be opened, in minutes. The time is long, because the import of a large
/// repository takes a while.
const LINK_MINUTES: u32 = 60;

/// Returns the owner key of the demo's store. The first run creates the key and saves it next to the store for later
/// runs.
pub fn key(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(key) => Ok(key.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = foldwork_engine::model::access::key_from(SystemClock.random());
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            std::os::unix::fs::OpenOptionsExt::mode(options.create_new(true).write(true), 0o600);
            options.open(file)?.write_all(key.as_bytes())?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Imports the repository of a folder, prints the answers to three questions about the repository, and prints commands
/// to try next. Also saves a view and publishes an article, so that the dashboard shows a view and tasks. If
/// `has_dashboard` is set, prints a link to the dashboard.
///
/// If the folder is outside of any repository, or if the repository has no Markdown, prints a message instead of
/// failing.
pub async fn present(client: &Client, repo: &Path, has_dashboard: bool) -> anyhow::Result<()> {
    let link = if has_dashboard { Some(dashboard::link(client, LINK_MINUTES).await?) } else { None };
    if let Some(link) = &link {
        print_line(&format!("open once in a browser: {link}"))?;
    }
    let most_revised = match import(client, repo).await? {
        Some(project) => ask_questions(client, &project).await?,
        None => None,
    };
    if let Some(article) = most_revised.as_deref() {
        save_view(client).await?;
        publish(client, article).await?;
    }
    print(&next_steps(client, most_revised.as_deref()))?;
    // Prints the link again, because the first line has scrolled off the screen by now.
    match link.filter(|_| most_revised.is_some()) {
        Some(link) => print_line(&format!(
            "\nTwo agents propose changes to the most revised article. Approve one in the inbox, and see its event. \
             The link works once:\n{link}"
        )),
        None => Ok(()),
    }
}

/// Saves the pipeline of the second question, for the articles of all projects, as a view for the dashboard. Later runs
/// have no effect, because the event has a fixed id.
async fn save_view(client: &Client) -> anyhow::Result<()> {
    let event = json!({
        "aggregate_type": "view",
        "event_type": "view.created",
        "event_id": "demo-view-most-revised",
        "payload": {
            "name": "Most revised articles",
            "description": "Which articles were revised most, and how long ago?",
            "pipeline": revisions_pipeline(),
        },
    });
    let request = client.request(Method::POST, &["aggregates", "most-revised", "events"]).json(&event);
    // Ignores a conflict, because an earlier version of the program may have saved another view.
    unless_refused(client.call(request).await, StatusCode::CONFLICT)?;
    Ok(())
}

/// Publishes an article unless it is already published. The plugin `trait_router` then assigns tasks to the shipped
/// agents, and their proposals wait for approval.
async fn publish(client: &Client, article: &str) -> anyhow::Result<()> {
    let found: Value = client.call(client.request(Method::GET, &["articles", article])).await?.json()?;
    if found.get("status").and_then(Value::as_str) != Some("published") {
        client.call(client.request(Method::POST, &["articles", article, "publish"])).await?;
    }
    Ok(())
}

/// Imports the repository. Returns the id of the project. If the repository cannot be opened, or if the import finds no
/// articles and appends no events, prints a message and returns `None`.
async fn import(client: &Client, repo: &Path) -> anyhow::Result<Option<String>> {
    let folder = repo.canonicalize().unwrap_or_else(|_| repo.to_owned());
    let place = SourcePlace::Git(folder.clone());
    if let Err(error) = place.open() {
        print_line(&format!(
            "\n{error:#}.\nNothing was imported; `foldwork demo REPO` imports the history of another repository."
        ))?;
        return Ok(None);
    }
    let progress = ProgressIndicator::start(None);
    let imported = git::import(client, &progress, &place, &git::Options::default()).await;
    let time = progress.finish();
    let imported = imported?;
    if imported.articles == 0 && imported.appended == 0 {
        print_line(&format!(
            "\nThe history of {} has no Markdown files, so nothing was imported; \
             `foldwork demo REPO` imports the history of another repository.",
            folder.display()
        ))?;
        return Ok(None);
    }
    let project = &imported.project;
    print_line(&format!("\nimported {imported} of {} into project `{project}` in {time}", folder.display()))?;
    let projects = Projects::load(client, |text| progress.note(text)).await?;
    Ok(projects.id(project).map(str::to_owned))
}

/// Prints the questions about a project, each with its pipeline and its answer. Returns the id of the article with the
/// most revisions, or `None` if the project has no articles.
async fn ask_questions(client: &Client, project: &str) -> anyhow::Result<Option<String>> {
    let folders = of_project(folders_pipeline(), project);
    let rows = ask(client, "Which folders hold the most articles?", &folders).await?;
    print(&table::pointed(&[("folder", "/_id"), ("articles", "/articles")], &rows))?;

    let rows =
        ask(client, "Which articles were revised most, and how long ago?", &of_project(revisions_pipeline(), project))
            .await?;
    let columns = [("title", "/title"), ("revisions", "/revisions"), ("days since", "/days_since")];
    print(&table::pointed(&columns, &rows))?;

    let Some(id) = rows.first().and_then(|row| row.get("_id")).and_then(Value::as_str) else { return Ok(None) };
    compare(client, id).await?;
    Ok(Some(id.to_owned()))
}

/// Prints an article's current state and its state halfway through its history.
async fn compare(client: &Client, id: &str) -> anyhow::Result<()> {
    let now = query(client, &article_pipeline(id, &json!({}))).await?;
    let Some(now) = now.first() else { return Ok(()) };
    let Some(time) = midway(now) else { return Ok(()) };
    let question = format!("What was the most revised article like halfway through its history, on {time}?");
    let then = ask(client, &question, &article_pipeline(id, &json!({"at": time}))).await?;

    let mut table = Table::new(&["when", "title", "version", "characters"]);
    let absent = Value::Null;
    for (when, row) in [(time.as_str(), then.first()), ("now", Some(now))] {
        let cell = |name: &str| row.and_then(|row| row.get(name)).unwrap_or(&absent);
        table.push(&[&Value::from(when), cell("title"), cell("version"), cell("characters")]);
    }
    print(&table.render())
}

/// Prints a question and its pipeline, and returns the pipeline's rows.
async fn ask(client: &Client, question: &str, pipeline: &Value) -> anyhow::Result<Vec<Value>> {
    print_line(&format!("\n{question}\n{pipeline}\n"))?;
    query(client, pipeline).await
}

async fn query(client: &Client, pipeline: &Value) -> anyhow::Result<Vec<Value>> {
    let request = client.request(Method::POST, &["aggregates", "query"]).json(&json!({"pipeline": pipeline}));
    let response: QueryResults<Value> = client.call(request).await?.json()?;
    Ok(response.results)
}

fn folders_pipeline() -> Value {
    json!([
        {"$match": {"aggregate_type": "article"}},
        {"$fold": {}},
        {"$group": {"_id": "$folder", "articles": {"$sum": 1}}},
        {"$sort": {"articles": -1}},
        {"$limit": 10}
    ])
}

fn revisions_pipeline() -> Value {
    json!([
        {"$match": {"aggregate_type": "article"}},
        {"$fold": {}},
        {"$project": {"title": 1, "revisions": "$_version", "days_since": {"$daysSince": "$_last_event_at"}}},
        {"$sort": {"revisions": -1}},
        {"$limit": 10}
    ])
}

/// Limits a pipeline to the articles of one project, because the store may contain projects of other repositories.
fn of_project(mut pipeline: Value, project: &str) -> Value {
    if let Some(Value::Object(filter)) = pipeline.pointer_mut("/0/$match") {
        filter.insert("project_id".to_owned(), project.into());
    }
    pipeline
}

fn article_pipeline(id: &str, fold: &Value) -> Value {
    json!([
        {"$match": {"aggregate_id": id}},
        {"$fold": fold},
        {"$project": {
            "title": 1, "version": "$_version", "characters": {"$strLenCP": "$body"},
            "first_event_at": "$_created_at", "last_event_at": "$_last_event_at"
        }}
    ])
}

/// Returns the time halfway between an article's first and last event.
fn midway(article: &Value) -> Option<String> {
    let time = |name: &str| article.get(name)?.as_str()?.parse::<Timestamp>().ok();
    let (first, last) = (time("first_event_at")?.as_second(), time("last_event_at")?.as_second());
    let middle = Timestamp::from_second(first.midpoint(last)).ok()?;
    Some(middle.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string())
}

/// Returns the shell commands that users can run next, in the order in which to run the commands.
fn next_steps(client: &Client, article: Option<&str>) -> String {
    let server = client.server();
    let bearer = r#"-H "Authorization: Bearer $FOLDWORK_TOKEN""#;
    let post = r#"-H "Content-Type: application/json""#;
    let url = |path: &str| quoted(&format!("{server}{path}"));
    let query = quoted(&json!({"pipeline": folders_pipeline()}).to_string());
    let mut steps = vec![
        format!("export FOLDWORK_SERVER={} FOLDWORK_TOKEN={}", quoted(server), quoted(client.token())),
        format!("curl -s {bearer} {}", url("/api/v1/articles?limit=5")),
        format!("curl -s {bearer} {post} -d {query} {}", url("/api/v1/aggregates/query")),
    ];
    let search = quoted(&json!({"query": "architecture"}).to_string());
    steps.push(format!("curl -s {bearer} {post} -d {search} {}", url("/api/v1/aggregates/search")));
    if let Some(id) = article {
        steps.push(format!("curl -s {bearer} {}", url(&format!("/api/v1/aggregates/{id}/graph?depth=2"))));
        steps.push(format!("curl -s {bearer} {}", url(&format!("/api/v1/aggregates/{id}/events?limit=5"))));
    }
    steps.push("foldwork export --output events.ndjson.zst".to_owned());
    format!("\nWhat to try next, in another terminal ({server}/docs has every operation):\n\n{}\n", steps.join("\n"))
}

/// Quotes text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_keep_spaces_dollar_signs_and_quotes_in_a_shell() {
        assert_eq!(quoted("a b$c\"d"), "'a b$c\"d'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn the_time_halfway_between_the_first_and_last_event_is_computed() {
        let article =
            json!({"first_event_at": "2020-01-01T00:00:00.000Z", "last_event_at": "2020-01-03T00:00:00.500Z"});
        assert_eq!(midway(&article).as_deref(), Some("2020-01-02T00:00:00.000Z"));
        assert_eq!(midway(&json!({"first_event_at": "2020-01-01T00:00:00Z"})), None);
    }

    #[test]
    fn the_next_steps_name_the_server_the_key_and_the_article() {
        let client = Client::new("http://127.0.0.1:9/", "sk_1").expect("valid address");
        let steps = next_steps(&client, Some("id-1"));
        assert!(steps.contains("export FOLDWORK_SERVER='http://127.0.0.1:9' FOLDWORK_TOKEN='sk_1'\n"));
        assert!(steps.contains("'http://127.0.0.1:9/api/v1/aggregates/id-1/events?limit=5'"));
    }
}
