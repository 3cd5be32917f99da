//! Reads the lists of the server page by page.

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::{CallError, Client};
use super::retry;

#[derive(Debug, Deserialize)]
struct ListPage<T> {
    data: Vec<T>,
    next_cursor: Option<String>,
}

/// Returns all rows of the list at `path`, read in pages of `limit` rows. If `note` is given, a failed request for a
/// page is sent again, and `note` receives the reason.
pub async fn rows<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    limit: Option<&str>,
    note: Option<&dyn Fn(&str)>,
) -> Result<Vec<T>, CallError> {
    let (mut rows, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let limit = limit.map(|limit| ("limit", limit));
        let cursor_of = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let query: Vec<(&str, &str)> = limit.into_iter().chain(cursor_of).collect();
        let request = || client.request(Method::GET, path).query(&query);
        let page: ListPage<T> = match note {
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
    use serde_json::{Value, json};

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
        let rows: Vec<Value> = rows(&stub.client(), &["keys"], None, None).await.expect("the rows");
        assert_eq!(rows, [json!(1), json!(2), json!(3), json!(4)]);
    }
}
