//! `foldwork workspaces` and `foldwork users`: the workspaces and users of an installation, for its operators.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, ServerConnection};
use super::output::print;
use super::table::Table;

/// Lists, renames and deletes workspaces of the installation, and cancels deletions.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    connection: ServerConnection,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Lists all workspaces.
    List {
        /// Prints the records as JSON, one per line.
        #[arg(long)]
        json: bool,
    },
    /// Changes the name of a workspace.
    Rename {
        /// The id, as shown by `workspaces list`.
        id: String,
        name: String,
    },
    /// Deletes a workspace after the grace period in the server's settings, and informs its owners.
    Delete {
        /// The id, as shown by `workspaces list`.
        id: String,
    },
    /// Cancels the deletion of a workspace whose grace period has not ended.
    Restore {
        /// The id, as shown by `workspaces list`.
        id: String,
    },
}

/// Lists the users of the installation.
#[derive(clap::Args, Debug)]
pub struct UserArguments {
    #[command(subcommand)]
    action: UserAction,
    #[command(flatten)]
    connection: ServerConnection,
}

#[derive(clap::Subcommand, Debug)]
enum UserAction {
    /// Lists all users with their plans and workspaces.
    List {
        /// Prints the records as JSON, one per line.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Deserialize)]
struct WorkspaceListPage {
    data: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

const WORKSPACE: [&str; 5] = ["id", "name", "owner_id", "created_at", "delete_at"];
const USER: [&str; 3] = ["id", "name", "email"];

/// Runs a subcommand of `foldwork workspaces`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    let request = match &arguments.action {
        Action::List { json } => return list(&client, "workspaces", &WORKSPACE, *json).await,
        Action::Rename { id, name } => client.request(Method::PATCH, &["workspaces", id]).json(&json!({"name": name})),
        Action::Delete { id } => client.request(Method::DELETE, &["workspaces", id]),
        Action::Restore { id } => client.request(Method::POST, &["workspaces", id, "restore"]),
    };
    let workspace: Value = client.call(request).await?.json()?;
    print(&listing(&[workspace], &WORKSPACE))
}

/// Runs a subcommand of `foldwork users`.
pub async fn run_users(arguments: UserArguments) -> anyhow::Result<()> {
    let UserAction::List { json } = arguments.action;
    list(&arguments.connection.client()?, "users", &USER, json).await
}

/// Prints a list page by page.
async fn list(client: &Client, path: &str, columns: &[&str], as_json: bool) -> anyhow::Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let mut request = client.request(Method::GET, &[path]).query(&[("limit", "200")]);
        if let Some(cursor) = &cursor {
            request = request.query(&[("cursor", cursor)]);
        }
        let page: WorkspaceListPage = client.call(request).await?.json()?;
        print(&match as_json {
            true => page.data.iter().map(|record| format!("{record}\n")).collect::<String>(),
            false => listing(&page.data, columns),
        })?;
        match page.next_cursor {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok(()),
        }
    }
}

fn listing(records: &[Value], columns: &[&str]) -> String {
    let mut table = Table::new(columns);
    for record in records {
        let cells: Vec<&Value> = columns.iter().map(|column| record.get(*column).unwrap_or(&Value::Null)).collect();
        table.push(&cells);
    }
    table.render()
}
