//! `foldwork keys`: creates, lists, rotates and revokes API keys, and creates a new owner key while the server is
//! stopped.

use anyhow::Context;
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{CallError, Client, ServerArguments};
use super::output::{note, print_line};
use super::{pages, reset, table};

/// The scopes of a key for which no scopes are given.
const DEFAULT_SCOPES: [&str; 2] = ["api:read", "api:write"];

/// The arguments of `foldwork keys`.
pub type Arguments = ServerArguments<Action>;

#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Creates a key and prints it to standard output. The key is not shown again.
    Create {
        /// The purpose of the key.
        #[arg(long)]
        name: String,
        /// The scopes of the key, such as `api:read,content:read`; the default is `api:read,api:write`.
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// The expiry time of the key, such as 2026-12-31T00:00:00Z; by default, the key does not expire.
        #[arg(long)]
        expires_at: Option<String>,
        /// Prints the whole record as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists the keys without their secrets.
    List(table::ListFormat),
    /// Replaces a key by a successor with the same name, scopes, agents and expiry time, and prints the successor to
    /// standard output. The old key ends after the time in --after, or at its expiry time if that time is earlier. The
    /// keys derived from the old key stay valid.
    Rotate {
        /// The id of the key, as shown by `keys list`.
        id: String,
        /// The time for which the old key stays valid after the rotation, such as `90m` or `24h`, at most 720h.
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
        after: SignedDuration,
        /// Prints the whole record of the successor as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revokes a key immediately. Fails if other keys are derived from the key, unless --cascade states whether these
    /// keys are revoked as well.
    Revoke {
        /// The id of the key, as shown by `keys list`.
        id: String,
        /// Whether the keys derived from the key are revoked as well (`true`) or stay valid (`false`).
        #[arg(long, value_name = "BOOL")]
        cascade: Option<bool>,
    },
    /// Creates a new key with every scope for the owner of the first workspace, and prints the key to standard output.
    /// The server must be stopped.
    Reset(reset::Arguments),
}

/// Runs a subcommand of `foldwork keys`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = || arguments.connection.client();
    match arguments.action {
        Action::Create { name, scopes, expires_at, json } => {
            create(&client()?, &name, &scopes, expires_at.as_deref(), json).await
        }
        Action::List(format) => list(&client()?, format.json).await,
        Action::Rotate { id, after, json } => rotate(&client()?, &id, after, json).await,
        Action::Revoke { id, cascade } => revoke(&client()?, &id, cascade).await,
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
    let given: Vec<&str> = scopes.iter().map(|scope| scope.trim()).filter(|scope| !scope.is_empty()).collect();
    let scopes = if given.is_empty() { &DEFAULT_SCOPES[..] } else { &given };
    let request = client
        .request(Method::POST, &["keys"])
        .json(&json!({"name": name, "scopes": scopes, "expires_at": expires_at}));
    let record: Value = client.call(request).await?.json()?;
    if as_json {
        return print_line(&record.to_string());
    }
    let origin = if given.is_empty() { " (the default; --scopes selects others)" } else { "" };
    let about = format!("{}scopes: {}{origin}\n", listing([&record]), scopes.join(", "));
    print_key(&record, &about)
}

/// Prints a new key to standard output, and `about` to standard error, so that a script can capture the key.
fn print_key(record: &Value, about: &str) -> anyhow::Result<()> {
    let key = record.get("key").and_then(Value::as_str).context("the server's response has no key")?;
    // Prints the key even if the note cannot be written.
    note(&format!("{about}The key is shown only once:\n"));
    print_line(key)
}

async fn list(client: &Client, as_json: bool) -> anyhow::Result<()> {
    let records: Vec<Value> = pages::rows(client, &["keys"], &[], None).await?;
    table::print_records(&records, as_json, || listing(&records))
}

async fn rotate(client: &Client, id: &str, after: SignedDuration, as_json: bool) -> anyhow::Result<()> {
    let body = json!({"ends_after_seconds": after.as_secs()});
    let request = client.request(Method::POST, &["keys", id, "rotate"]).json(&body);
    let successor: Value = client.call(request).await?.json()?;
    if as_json {
        return print_line(&successor.to_string());
    }
    // The list fails if the client's own key is the old key and has ended. Prints the new key in any case.
    let all: Vec<Value> = pages::rows(client, &["keys"], &[], None).await.unwrap_or_default();
    print_key(&successor, &changes(id, &successor, &all))
}

/// Returns a message with the successor, the expiry time of the old key, and the keys that are now derived from the
/// successor. `all` are the keys after the rotation.
fn changes(old: &str, successor: &Value, all: &[Value]) -> String {
    let text = |record: &Value, name: &str| record.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let replaced = all.iter().find(|record| text(record, "id") == old);
    let end = replaced.map_or_else(|| "ends".to_owned(), |record| format!("ends at {}", text(record, "expires_at")));
    let mut lines = format!("{}the old key {old} {end}\n", listing([successor]));
    let id = text(successor, "id");
    let derived: Vec<&Value> = all.iter().filter(|record| text(record, "derived_from") == id).collect();
    if !derived.is_empty() {
        lines += "these keys were derived from the old key, and depend on the new key from now on:\n";
        lines += &listing(derived);
    }
    lines
}

async fn revoke(client: &Client, id: &str, cascade: Option<bool>) -> anyhow::Result<()> {
    let cascade: Vec<(&str, bool)> = cascade.map(|cascade| ("cascade", cascade)).into_iter().collect();
    let Err(error) = client.call(client.request(Method::DELETE, &["keys", id]).query(&cascade)).await else {
        return print_line(&format!("revoked {id}"));
    };
    if let CallError::Refused(refusal) = &error
        && let Some(derived) = refusal.body.get("derived_keys").and_then(Value::as_array)
    {
        note(&table::listing(&["id", "name", "display"], derived));
        return Err(error).context("--cascade true revokes these keys as well, --cascade false keeps them");
    }
    Err(error.into())
}

/// Parses a time such as `90m`. Rejects negative times.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let parsed = text.parse::<SignedDuration>().ok().filter(|time| !time.is_negative());
    parsed.ok_or_else(|| format!("`{text}` is not a time such as 30s, 90m or 24h"))
}

fn listing<'a>(records: impl IntoIterator<Item = &'a Value>) -> String {
    const COLUMNS: [&str; 8] =
        ["id", "name", "display", "scopes", "created_at", "last_used_at", "expires_at", "derived_from"];
    table::listing(&COLUMNS, records)
}

#[cfg(test)]
mod tests {
    use super::super::stub::Stub;
    use super::*;

    #[test]
    fn only_durations_of_at_least_zero_are_accepted() {
        assert_eq!(duration("90m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(duration("0s"), Ok(SignedDuration::ZERO));
        assert!(duration("-1h").is_err() && duration("soon").is_err());
    }

    #[tokio::test]
    async fn the_request_for_the_first_page_of_keys_has_no_parameters() {
        let stub = Stub::start(|_| (200, "", json!({"data": [{"id": "1"}], "next_cursor": null}))).await;
        list(&stub.client(), true).await.expect("listed");
        assert_eq!(stub.requests("GET").pop().expect("a request").target, "/api/v1/keys");
    }

    #[test]
    fn a_rotation_reports_derived_keys_and_the_expiry_of_the_old_key() {
        let successor = json!({"id": "new", "name": "n", "scopes": ["api:read"]});
        let all = [
            json!({"id": "old", "name": "n", "expires_at": "2026-01-01T01:00:00.000Z"}),
            json!({"id": "below", "name": "phone", "derived_from": "new"}),
        ];
        let said = changes("old", &successor, &all);
        assert!(said.contains("the old key old ends at 2026-01-01T01:00:00.000Z"), "{said}");
        assert!(said.contains("phone"), "{said}");
        assert!(changes("old", &successor, &[]).contains("the old key old ends\n"));
    }
}
