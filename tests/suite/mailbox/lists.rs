//! Tests lists of tasks: the size of a page is limited, and no task is missing.

use foldwork_server::Config;
use foldwork_tests::server::Server;
use serde_json::{Value, json};

use super::board::{get, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_tasks_ends_at_the_byte_limit_and_the_next_page_continues() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config.constants.page_bytes = 64 << 10;
    let server = Server::start_with(&config).await.expect("a server");
    let sizes = [1, 20 << 10, 20 << 10, 200 << 10, 1, 1, 20 << 10, 20 << 10, 20 << 10, 1];
    let mut created = Vec::new();
    for size in sizes {
        let body = json!({"title": "Read it", "metadata": {"text": "x".repeat(size)}});
        let (status, task) = post(&server, "/mailbox", &body).await;
        assert_eq!(status, 201, "{task}");
        created.insert(0, task["id"].clone());
    }
    let (mut found, mut pages, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let after = cursor.as_str().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (status, page) = get(&server, &format!("/mailbox?limit=200{after}")).await;
        assert_eq!(status, 200, "{page}");
        let tasks = page["data"].as_array().expect("tasks");
        // A task that is larger than the maximum size of a page is alone on its page.
        assert!(page.to_string().len() <= config.constants.page_bytes || tasks.len() == 1, "{} tasks", tasks.len());
        pages.push(tasks.len());
        found.extend(tasks.iter().map(|task| task["id"].clone()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, created);
    assert!(pages.len() > 3 && pages.len() < sizes.len(), "{pages:?}");
}
