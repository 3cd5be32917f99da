//! `foldwork keys`: creates, lists and revokes API keys, and creates a new owner key while the server is stopped.

use std::io::{self, Write};

use anyhow::Context;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, Connection};
use super::output::{print, print_line};
use super::reset;
use super::table::Table;

/// Creates, lists and revokes API keys, and creates a new owner key while the server is stopped.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Creates a key and prints it to standard output. The key is not shown again.
    Create {
        /// The purpose of the key.
        #[arg(long)]
        name: String,
        /// The scopes of the key, such as `api:read,content:read`.
        #[arg(long, value_delimiter = ',', default_value = "api:read,api:write")]
        scopes: Vec<String>,
        /// The expiry time of the key, such as 2026-12-31T00:00:00Z; by default, the key does not expire.
        #[arg(long)]
        expires_at: Option<String>,
        /// Prints the whole record as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists the keys without their secrets.
    List {
        /// Prints the records as JSON, one per line.
        #[arg(long)]
        json: bool,
    },
    /// Revokes a key and all keys derived from it, immediately.
    Revoke {
        /// The id of the key, as shown by `keys list`.
        id: String,
    },
    /// Creates a new key with every scope for the owner of the first workspace, and prints it to standard output. The
    /// server must be stopped.
    Reset(reset::Arguments),
}

#[derive(Debug, Deserialize)]
struct Page {
    data: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Runs a subcommand of `foldwork keys`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = || arguments.connection.client();
    match arguments.action {
        Action::Create { name, scopes, expires_at, json } => {
            create(&client()?, &name, &scopes, expires_at.as_deref(), json).await
        }
        Action::List { json } => list(&client()?, json).await,
        Action::Revoke { id } => revoke(&client()?, &id).await,
        Action::Reset(arguments) => reset::run(arguments).await,
    }
}

async fn create(
    client: &Client,
    name: &str,
    scopes: &[String],
    expires_at: Option<&str>,
    as_json: bool,
) -> anyhow::Result<()> {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.trim()).filter(|scope| !scope.is_empty()).collect();
    let request = client
        .request(Method::POST, &["keys"])
        .json(&json!({"name": name, "scopes": scopes, "expires_at": expires_at}));
    let record: Value = client.call(request).await?.json()?;
    if as_json {
        return print_line(&record.to_string());
    }
    let key = record.get("key").and_then(Value::as_str).context("the server's response has no key")?;
    // Only the key is printed to standard output, so that a script can capture it.
    let note = format!("{}The key is shown only once:\n", listing([&record]));
    // Ignores a failed note, so that the key is printed in any case.
    let _ = io::stderr().write_all(note.as_bytes());
    print_line(key)
}

async fn list(client: &Client, as_json: bool) -> anyhow::Result<()> {
    let mut records: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut request = client.request(Method::GET, &["keys"]).query(&[("limit", "200")]);
        if let Some(cursor) = &cursor {
            request = request.query(&[("cursor", cursor)]);
        }
        let page: Page = client.call(request).await?.json()?;
        records.extend(page.data);
        match page.next_cursor {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => break,
        }
    }
    if as_json {
        return print(&records.iter().map(|record| format!("{record}\n")).collect::<String>());
    }
    print(&listing(&records))
}

async fn revoke(client: &Client, id: &str) -> anyhow::Result<()> {
    client.call(client.request(Method::DELETE, &["keys", id])).await?;
    print_line(&format!("revoked {id}"))
}

fn listing<'a>(records: impl IntoIterator<Item = &'a Value>) -> String {
    const COLUMNS: [&str; 8] =
        ["id", "name", "display", "scopes", "created_at", "last_used_at", "expires_at", "derived_from"];
    let mut table = Table::new(&COLUMNS);
    for record in records {
        table.push(&COLUMNS.map(|column| record.get(column).unwrap_or(&Value::Null)));
    }
    table.render()
}
