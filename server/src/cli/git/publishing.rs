//! `import --publish`: publishes the articles that are published according to their front matter, and unpublishes the
//! articles that are drafts according to their front matter.

use anyhow::Context;
use foldwork_engine::model::article::{PUBLISHED, PUBLISHED_VERSION, STATUS};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::article;
use crate::cli::client::{Client, unless_refused};
use crate::cli::pages::QueryResults;
use crate::cli::progress::ProgressIndicator;
use crate::cli::projects::Projects;
use crate::cli::retry;

/// The maximum number of articles that one query returns.
const PAGE: usize = 1_000;

/// Publishes and unpublishes the articles of a project according to their front matter. Articles whose front matter
/// does not state whether they are published stay as they are.
pub async fn publish(client: &Client, progress: &ProgressIndicator, project: &str) -> anyhow::Result<()> {
    let note = |text: &str| progress.note(text);
    let projects = Projects::load(client, note).await?;
    let Some(project) = projects.id(project) else { return Ok(()) };
    let mut last = String::new();
    loop {
        let pipeline = json!({"pipeline": pipeline(project, &last)});
        let request = || client.request(Method::POST, &["aggregates", "query"]).json(&pipeline);
        let response = retry::call(client, note, request).await.context("the articles to publish cannot be read")?;
        let page: QueryResults<Map<String, Value>> = response.json()?;
        for row in &page.results {
            let id = row.get("_id").and_then(Value::as_str).unwrap_or_default();
            if let Some(act) = act(row) {
                let request = || match act {
                    "publish" => client.request(Method::POST, &["articles", id, "publish"]),
                    _ => client.request(Method::POST, &["articles", id, "unpublish"]),
                };
                // An article that was deleted after the query is not found.
                let done = unless_refused(retry::call(client, note, request).await, StatusCode::NOT_FOUND);
                done.with_context(|| format!("cannot {act} the article '{id}'"))?;
            }
            id.clone_into(&mut last);
        }
        if page.results.len() < PAGE {
            return Ok(());
        }
    }
}

/// Returns the operation that an article needs, or `None` if the article needs no operation.
fn act(row: &Map<String, Value>) -> Option<&'static str> {
    let is_visible = row.get(STATUS).and_then(Value::as_str) == Some(PUBLISHED);
    let is_current = is_visible && row.get(PUBLISHED_VERSION) == row.get("version");
    match article::is_published(row)? {
        true => (!is_current).then_some("publish"),
        false => is_visible.then_some("unpublish"),
    }
}

fn pipeline(project: &str, last: &str) -> Value {
    json!([
        {"$match": {"aggregate_type": "article", "project_id": project}},
        {"$fold": {}},
        {"$match": {"_id": {"$gt": last}}},
        {"$sort": {"_id": 1}},
        {"$limit": PAGE},
        {"$project": {
            STATUS: 1, PUBLISHED_VERSION: 1, "version": "$_version", "draft": "$front_matter.draft",
            "published": "$front_matter.published", "publish": "$front_matter.publish"
        }}
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_matter_and_the_version_decide_whether_an_article_is_published() {
        for (row, expected) in [
            (json!({"draft": false, "version": 3}), Some("publish")),
            (json!({"draft": false, "version": 3, "status": "published", "published_version": 2}), Some("publish")),
            (json!({"draft": false, "version": 3, "status": "published", "published_version": 3}), None),
            (json!({"draft": true, "version": 3, "status": "published", "published_version": 3}), Some("unpublish")),
            (json!({"draft": true, "version": 3, "status": "draft"}), None),
            (json!({"published": true, "version": 1}), Some("publish")),
            (json!({"version": 3, "status": "published", "published_version": 2}), None),
        ] {
            let Value::Object(row) = row else { panic!("an object") };
            assert_eq!(act(&row), expected, "{row:?}");
        }
    }
}
