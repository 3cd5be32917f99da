//! `foldwork plans`: sets the plan of a user.

use reqwest::Method;
use serde_json::{Map, Value};

use super::client::ServerArguments;
use super::output::print_line;

/// The arguments of `foldwork plans`.
pub type Arguments = ServerArguments<Action>;

#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Sets the plan of a user and prints it as JSON. If the user keeps the plan, values that are not given stay
    /// unchanged. If the plan changes, these values are taken from the server's settings for the new plan, or for the
    /// default plan if the settings do not contain the new plan. A status other than trialing removes the end of the
    /// trial.
    Set {
        /// The user's id, as shown by `users list`.
        user: String,
        /// The plan's id.
        #[arg(long)]
        plan: Option<String>,
        /// The status: trialing, active, past_due or canceled.
        #[arg(long)]
        status: Option<String>,
        /// The end of a trial, such as 2026-12-31T00:00:00Z.
        #[arg(long)]
        trial_ends_at: Option<String>,
    },
}

/// Runs a subcommand of `foldwork plans`.
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
