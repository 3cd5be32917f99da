//! `foldwork plans`: what plan a user has.

use reqwest::Method;
use serde_json::{Map, Value};

use super::client::Connection;
use super::output::print_line;

/// Gives users plans.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Gives a user a plan and prints it as JSON. What is not given is as the server's settings say it for that plan.
    Set {
        /// The user's id, as `members list` shows it.
        user: String,
        /// The plan's id.
        #[arg(long)]
        plan: Option<String>,
        /// trialing, active, past_due or canceled.
        #[arg(long)]
        status: Option<String>,
        /// When a trial ends, as 2026-12-31T00:00:00Z.
        #[arg(long)]
        trial_ends_at: Option<String>,
    },
}

/// Runs one action on plans.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    let Action::Set { user, plan, status, trial_ends_at } = arguments.action;
    let fields = [("id", plan), ("status", status), ("trial_ends_at", trial_ends_at)];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let body = Value::Object(given.collect::<Map<_, _>>());
    let request = client.request(Method::PUT, &["users", &user, "plan"]).json(&body);
    let plan: Value = client.call(request).await?.json()?;
    print_line(&plan.to_string())
}
