//! `foldwork dashboard`: prints a link that signs a browser in once.

use foldwork_engine::clock::{Clock, SystemClock};
use foldwork_engine::model::access::Scope;
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::date::{format_date, parse_date};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{Client, ServerConnection, unless_refused};
use super::output::{note, print_line};

/// The maximum time that a browser stays signed in, in milliseconds.
const SESSION_MS: i64 = 12 * 3_600_000;
/// The time in which the printed link can be opened, in minutes.
const MINUTES: u32 = 10;

/// Prints a link that signs a browser in once.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    connection: ServerConnection,
}

/// Runs `foldwork dashboard`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let link = link(&arguments.connection.client()?, MINUTES).await?;
    // Only the link is printed to standard output, so that a script can pass it to a browser.
    note(&format!("This link signs a browser in once, within {MINUTES} minutes:\n"));
    print_line(&link)
}

/// Creates a sign-in code with the scopes of the client's token, and returns the address of the dashboard with the code
/// after `#`. A browser does not send this part of an address to the server, so the code appears in no log.
pub async fn link(client: &Client, minutes: u32) -> anyhow::Result<String> {
    let (scopes, expires_at) = own_rights(client).await?;
    let latest = SystemClock.now_ms().saturating_add(SESSION_MS);
    let expires_at = expires_at.map_or(latest, |own| own.min(latest));
    let request = client.request(Method::POST, &["keys", "sign-in-codes"]).json(&json!({
        "name": "dashboard",
        "scopes": scopes,
        "expires_at": format_date(expires_at),
        "expires_in_seconds": minutes * 60,
    }));
    let made: Value = client.call(request).await?.json()?;
    let code = made.get("code").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("{}/sign-in#{code}", client.server()))
}

/// Returns the scopes and the expiry time of the client's token. If the token is not a key, returns every scope and no
/// expiry time.
async fn own_rights(client: &Client) -> anyhow::Result<(Value, Option<i64>)> {
    let answer = client.call(client.request(Method::GET, &["keys", "self"])).await;
    // A token of an identity provider is not a key. Such a token has every scope that the plan allows.
    let Some(answer) = unless_refused(answer, StatusCode::NOT_FOUND)? else {
        return Ok((names::<Scope>().into(), None));
    };
    let key: Value = answer.json()?;
    let expires_at = key.get("expires_at").and_then(Value::as_str).and_then(parse_date);
    Ok((key.get("scopes").cloned().unwrap_or_default(), expires_at))
}

#[cfg(test)]
mod tests {
    use super::super::stub::Stub;
    use super::*;

    #[tokio::test]
    async fn the_link_has_the_scopes_and_the_expiration_time_of_the_token() {
        let stub = Stub::start(|request| match request.target.as_str() {
            "/api/v1/keys/self" => (200, "", json!({"scopes": ["api:read"], "expires_at": "2026-01-01T00:00:00.000Z"})),
            _ => (201, "", json!({"code": "sic_1"})),
        })
        .await;
        let client = stub.client();
        let found = link(&client, 10).await.expect("a link");
        assert_eq!(found, format!("{}/sign-in#sic_1", client.server()));
        let sent = stub.requests("POST").pop().expect("a request").body;
        let expected = json!({
            "name": "dashboard", "scopes": ["api:read"], "expires_at": "2026-01-01T00:00:00.000Z",
            "expires_in_seconds": 600,
        });
        assert_eq!(sent, expected);
    }

    #[tokio::test]
    async fn the_link_has_every_scope_if_the_token_is_not_a_key() {
        let stub = Stub::start(|request| match request.target.as_str() {
            "/api/v1/keys/self" => (404, "", json!({"error": "key 'self' not found"})),
            _ => (201, "", json!({"code": "sic_1"})),
        })
        .await;
        link(&stub.client(), 10).await.expect("a link");
        let sent = stub.requests("POST").pop().expect("a request").body;
        assert_eq!(sent["scopes"].as_array().map(Vec::len), Some(names::<Scope>().len()));
    }
}
