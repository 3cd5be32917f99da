//! Reads the lists of the server page by page.

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::client::{CallError, Client};
use super::retry;

#[derive(Debug, Deserialize)]
struct ListPage {
    data: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Returns all rows of the list at `path`. If `note` is given, a failed request for a page is sent again, and `note`
/// receives the reason.
pub async fn rows(client: &Client, path: &[&str], note: Option<&dyn Fn(&str)>) -> Result<Vec<Value>, CallError> {
    let (mut rows, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let query: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
        let request = || client.request(Method::GET, path).query(&query);
        let page: ListPage = match note {
            Some(note) => retry::call(client, note, request).await?.json()?,
            None => client.call(request()).await?.json()?,
        };
        rows.extend(page.data);
        match page.next_cursor {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::stub::Stub;

    #[tokio::test]
    async fn every_page_is_read_once() {
        let stub = Stub::start(|request| {
            let body = match request.target.as_str() {
                "/api/v1/keys" => json!({"data": [1, 2], "next_cursor": "a"}),
                "/api/v1/keys?cursor=a" => json!({"data": [3], "next_cursor": "b"}),
                _ => json!({"data": [4], "next_cursor": "b"}),
            };
            (200, "", body)
        })
        .await;
        let rows = rows(&stub.client(), &["keys"], None).await.expect("the rows");
        assert_eq!(rows, [json!(1), json!(2), json!(3), json!(4)]);
    }
}
