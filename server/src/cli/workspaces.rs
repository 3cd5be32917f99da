//! `foldwork workspaces` and `foldwork users`: the workspaces and users of an installation, for its operators.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Client, ServerArguments};
use super::output::print;
use super::pages::{self, ListPage};
use super::table;

/// The arguments of `foldwork workspaces`.
pub type Arguments = ServerArguments<Action>;

#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Lists all workspaces.
    List(table::ListFormat),
    /// Changes the name of a workspace.
    Rename {
        /// The id, as shown by `workspaces list`.
        id: String,
        name: String,
    },
    /// Deletes a workspace after the grace period in the server's settings, and informs the owners of the workspace.
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

/// The arguments of `foldwork users`.
pub type UserArguments = ServerArguments<UserAction>;

#[derive(clap::Subcommand, Debug)]
pub enum UserAction {
    /// Lists all users, and with --json also their plans and workspaces.
    List(table::ListFormat),
}

const WORKSPACE: [&str; 5] = ["id", "name", "owner_id", "created_at", "delete_at"];
const USER: [&str; 3] = ["id", "name", "email"];

/// Runs a subcommand of `foldwork workspaces`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    let request = match &arguments.action {
        Action::List(format) => return list(&client, "workspaces", &WORKSPACE, format.json).await,
        Action::Rename { id, name } => client.request(Method::PATCH, &["workspaces", id]).json(&json!({"name": name})),
        Action::Delete { id } => client.request(Method::DELETE, &["workspaces", id]),
        Action::Restore { id } => client.request(Method::POST, &["workspaces", id, "restore"]),
    };
    let workspace: Value = client.call(request).await?.json()?;
    print(&table::listing(&WORKSPACE, [&workspace]))
}

/// Runs a subcommand of `foldwork users`.
pub async fn run_users(arguments: UserArguments) -> anyhow::Result<()> {
    let UserAction::List(format) = arguments.action;
    list(&arguments.connection.client()?, "users", &USER, format.json).await
}

/// Prints a list page by page.
async fn list(client: &Client, path: &str, columns: &[&str], as_json: bool) -> anyhow::Result<()> {
    let print_page = |page: ListPage<Value>| {
        table::print_records(&page.data, as_json, || table::listing(columns, &page.data))?;
        Ok::<_, anyhow::Error>(page.next_cursor)
    };
    pages::each(client, &[path], &[("limit", "200")], None, print_page).await
}
