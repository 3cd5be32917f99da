//! `foldwork members`: lists, invites, changes and removes members.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::ServerArguments;
use super::output::{print, print_line};
use super::{pages, table};

/// The arguments of `foldwork members`.
pub type Arguments = ServerArguments<Action>;

#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Lists the members and the invited persons.
    List(table::ListFormat),
    /// Invites an e-mail address. A user whose identity provider has verified this address can accept the invitation.
    Invite {
        email: String,
        /// The role: owner, editor or viewer.
        #[arg(long, default_value = "editor")]
        role: String,
    },
    /// Changes the role of a member or of an invited person.
    Role {
        /// The id, as shown by `members list`.
        id: String,
        /// The role: owner, editor or viewer.
        role: String,
        /// Makes the member the owner of the workspace, whose plan limits the workspace. The new role must be owner.
        #[arg(long)]
        workspace_owner: bool,
    },
    /// Removes a member and all their keys from the workspace, or withdraws an invitation.
    Remove {
        /// The id, as shown by `members list`.
        id: String,
        /// The successor for the member's open tasks: `user:ID` or `agent:ID`; by default, the tasks are assigned to
        /// nobody.
        #[arg(long)]
        reassign_to: Option<String>,
    },
}

/// Runs a subcommand of `foldwork members`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.action {
        Action::List(format) => {
            let records: Vec<Value> = pages::rows(&client, &["members"], &[], None).await?;
            table::print_records(&records, format.json, || listing(&records))
        }
        Action::Invite { email, role } => {
            let request = client.request(Method::POST, &["members"]).json(&json!({"email": email, "role": role}));
            print(&listing([&client.call(request).await?.json()?]))
        }
        Action::Role { id, role, workspace_owner } => {
            let mut body = json!({"role": role});
            if workspace_owner {
                body["workspace_owner"] = true.into();
            }
            let request = client.request(Method::PATCH, &["members", &id]).json(&body);
            print(&listing([&client.call(request).await?.json()?]))
        }
        Action::Remove { id, reassign_to } => {
            let successor: Vec<(&str, String)> = reassign_to.map(|to| ("reassign_to", to)).into_iter().collect();
            client.call(client.request(Method::DELETE, &["members", &id]).query(&successor)).await?;
            print_line(&format!("removed {id}"))
        }
    }
}

fn listing<'a>(records: impl IntoIterator<Item = &'a Value>) -> String {
    table::listing(&["id", "name", "email", "role", "status", "created_at"], records)
}
