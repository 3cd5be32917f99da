//! The commands of the program: some call a server over HTTP, and some work without a server.

mod archive;
mod backup;
mod batch;
pub mod client;
pub mod dashboard;
#[cfg(test)]
mod delivery_tests;
pub mod demo;
mod event;
pub mod export;
mod git;
pub mod import;
pub mod input;
mod keys;
mod members;
pub mod output;
mod pages;
mod plans;
mod plugins;
pub mod portable;
pub mod progress;
mod projects;
mod rebuild;
mod reset;
mod restore;
mod retry;
pub mod sender;
#[cfg(test)]
mod stub;
mod table;
mod types;
mod uploads;
mod workspaces;

use std::io;
use std::process::ExitCode;

/// A command other than `serve`.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Creates, lists, rotates and revokes API keys, and creates a new owner key while the server is stopped.
    Keys(keys::Arguments),
    /// Prints a link that signs a browser in to the dashboard once.
    Dashboard(dashboard::Arguments),
    /// Lists, invites, changes and removes members of the workspace.
    Members(members::Arguments),
    /// Sets the plans of users.
    Plans(plans::Arguments),
    /// Lists, renames and deletes workspaces of the installation, and cancels deletions.
    Workspaces(workspaces::Arguments),
    /// Lists the users of the installation.
    Users(workspaces::UserArguments),
    /// Imports an export, other events in an NDJSON file, the history of a git repository, or a folder of Markdown
    /// files.
    Import(import::Arguments),
    /// Writes the workspace as NDJSON that `import` reads, and the bytes of its files to a folder.
    Export(export::Arguments),
    /// Creates a backup key, lists the backups of a server, and verifies an archive without a server.
    Backup(backup::Arguments),
    /// Restores the installation or one workspace from an archive, while the server is stopped.
    Restore(restore::Arguments),
    /// Rebuilds data that is derived from the log. The old data serves requests until the new data is complete.
    Rebuild(rebuild::Arguments),
    /// Lists plugins, and runs the test cases of scripted plugins without a server.
    Plugins(plugins::Arguments),
}

/// Runs a command and returns the exit code. The caller prints an error with its causes and exits with code 1.
pub async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let outcome = match command {
        Command::Keys(arguments) => keys::run(arguments).await,
        Command::Dashboard(arguments) => dashboard::run(arguments).await,
        Command::Members(arguments) => members::run(arguments).await,
        Command::Plans(arguments) => plans::run(arguments).await,
        Command::Workspaces(arguments) => workspaces::run(arguments).await,
        Command::Users(arguments) => workspaces::run_users(arguments).await,
        // The exit code of an import differs if files are left out with `--strict`.
        Command::Import(arguments) => import::run(arguments).await.map(|of_import| code = of_import),
        Command::Export(arguments) => export::run(arguments).await,
        Command::Backup(arguments) => backup::run(arguments).await,
        Command::Restore(arguments) => restore::run(arguments).await,
        Command::Rebuild(arguments) => rebuild::run(arguments).await,
        Command::Plugins(arguments) => plugins::run(arguments),
    };
    match outcome {
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => Ok(code),
    }
}

/// Returns whether an error means that the reader of standard output has closed the pipe, as `head` does. Such an error
/// is not a failure of the command.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
