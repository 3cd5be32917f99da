//! Reads the lists of the server page by page.

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::{CallError, Client};
use super::retry;

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct ListPage<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}

/// The rows that a pipeline returns.
#[derive(Debug, Deserialize)]
pub struct QueryResults<T> {
    pub results: Vec<T>,
}

/// Returns all rows of the list at `path`. `query` is the query of each request. If `note` is given, retries the
/// request for each page as [`retry::call`] does, and passes a message for each wait to `note`.
pub async fn rows<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    query: &[(&str, &str)],
    note: Option<&dyn Fn(&str)>,
) -> Result<Vec<T>, CallError> {
    let mut rows = Vec::new();
    let take = |page: ListPage<T>| {
        rows.extend(page.data);
        Ok::<_, CallError>(page.next_cursor)
    };
    each(client, path, query, note, take).await?;
    Ok(rows)
}

/// Passes each page of the list at `path` to `take`, which returns the cursor of the next page. Stops if `take` returns
/// `None` or the cursor of the same page. `query` and `note` are as in [`rows`].
pub async fn each<P: DeserializeOwned, E: From<CallError>>(
    client: &Client,
    path: &[&str],
    query: &[(&str, &str)],
    note: Option<&dyn Fn(&str)>,
    mut take: impl FnMut(P) -> Result<Option<String>, E>,
) -> Result<(), E> {
    let mut cursor = None::<String>;
    loop {
        let cursor_of = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let request = || client.request(Method::GET, path).query(query).query(cursor_of.as_slice());
        let page: P = match note {
            Some(note) => retry::call(client, note, request).await?.json()?,
            None => client.call(request()).await?.json()?,
        };
        match take(page)? {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok(()),
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
        let rows: Vec<Value> = rows(&stub.client(), &["keys"], &[], None).await.expect("the rows");
        assert_eq!(rows, [json!(1), json!(2), json!(3), json!(4)]);
    }
}
