//! The program `foldwork`: the commands `serve`, `demo` and `openapi`, and the commands of `foldwork_server::cli`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use foldwork_plugins::memory::CountingAllocator;
use foldwork_server::config::Format;
use foldwork_server::{Config, cli, openapi, serve, telemetry};
use tikv_jemallocator::Jemalloc;

/// The allocator of the program: jemalloc, in a wrapper that counts the memory that scripts allocate.
///
/// Appends and pipelines allocate many small values. With the system's allocator, appends and pipelines would spend a
/// third of their time on allocation. The threads of jemalloc return free memory to the system. Therefore the memory of
/// the program does not grow under a steady load, and shrinks while the program is idle.
#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator(Jemalloc);

/// The time limit in milliseconds for a call of a script in the demo, unless the configured limit is higher.
const DEMO_DEADLINE_MS: u64 = 5_000;

/// An event-sourced server whose folded state is queried with pipelines.
#[derive(Parser)]
#[command(name = "foldwork", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the API.
    Serve(Serve),
    /// Serves a separate store filled with a repository's Markdown history, and answers three sample questions.
    Demo(Demo),
    /// Prints the OpenAPI document.
    Openapi,
    #[command(flatten)]
    Client(cli::Command),
}

#[derive(clap::Args)]
struct Serve {
    /// The configuration file; the default is config.toml.
    #[arg(long)]
    config: Option<PathBuf>,
    /// The address to listen on. Port 0 selects a free port.
    #[arg(long)]
    listen: Option<String>,
    /// The URL of the data store: surrealkv://PATH, mem://, ws://HOST:PORT or wss://HOST:PORT.
    #[arg(long)]
    database: Option<String>,
    /// The URL of the file store: file://PATH, mem://, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX.
    #[arg(long)]
    files: Option<String>,
    /// Checks the configuration, the plugins and the store, prints the result of each check, and exits: with 0 if
    /// everything is in order, with 1 if a check failed, and with 3 if the only problem is that another process has the
    /// store open.
    #[arg(long)]
    check: bool,
}

#[derive(clap::Args)]
struct Demo {
    /// A folder in the repository to import; the default is the current folder.
    repository: Option<PathBuf>,
    /// The address to listen on. Port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: String,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let format = match &command {
        Command::Serve(arguments) => Config::log_format(arguments.config.as_deref()),
        // All other commands are for people at a terminal.
        Command::Demo(_) | Command::Openapi | Command::Client(_) => Format::Text,
    };
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            telemetry::report(format, &error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => {
            let mut config = Config::load(arguments.config.as_deref())?;
            if let Some(listen) = arguments.listen {
                config.http.listen = listen;
            }
            if let Some(url) = arguments.database {
                config.store.url = url;
            }
            if let Some(url) = arguments.files {
                config.files.url = url;
            }
            if arguments.check {
                // Does not start the log, because the report is the output of this command.
                let runtime = tokio::runtime::Runtime::new()?;
                let checked = runtime.block_on(serve::check::check(&config));
                serve::end(runtime);
                return checked;
            }
            let runtime = start(&config)?;
            config.warnings().iter().for_each(|message| tracing::warn!("{message}"));
            let ended = runtime.block_on(async {
                let server = serve::listen(config.clone()).await?;
                serve::end_in_time(&config)?;
                // Listens for signals before the address is printed, because a reader of the address may stop the
                // server immediately.
                let signal = serve::stop_signal();
                server.announce()?;
                server.run(signal).await
            });
            serve::end(runtime);
            ended.map(|()| ExitCode::SUCCESS)
        }
        Command::Demo(arguments) => demo(arguments),
        Command::Openapi => {
            cli::output::print_line(&format!("{:#}", openapi(&Config::default())))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Client(command) => tokio::runtime::Runtime::new()?.block_on(cli::run(command)),
    }
}

fn demo(arguments: Demo) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(None)?;
    config.http.listen = arguments.listen;
    // Turns off the access log, because lines about requests would interrupt the text that the demo prints.
    config.log.hide_requests();
    // Raises the time limit of scripts, because a debug build on a busy machine is slow, and the demo shows the
    // proposals of its agents.
    config.plugins.limits.deadline_ms = config.plugins.limits.deadline_ms.max(DEMO_DEADLINE_MS);
    config.store.url = "surrealkv://data/demo".into();
    config.files.url = "file://data/demo-files".into();
    // Turns off the backup, because the archive belongs to the configured store. Removes the public URL, because this
    // URL leads to the configured server.
    config.backup.url.clear();
    config.http.public_url.clear();
    let repository = match arguments.repository {
        Some(folder) => folder,
        None => std::env::current_dir()?,
    };
    let runtime = start(&config)?;
    let ended = runtime.block_on(async {
        let key = cli::demo::key(std::path::Path::new("data/demo.key"))?;
        let server = serve::listen_with(config.clone(), Some(key.clone()), |_| Ok(())).await?;
        serve::end_in_time(&config)?;
        server.announce()?;
        let url = server.url();
        let serving = tokio::spawn(server.run(serve::stop_signal()));
        let client = cli::client::Client::new(&url, &key)?;
        cli::demo::present(&client, &repository, config.dashboard.enabled).await?;
        serving.await?
    });
    serve::end(runtime);
    ended.map(|()| ExitCode::SUCCESS)
}

/// Initializes logging and returns the runtime for all tasks.
fn start(config: &Config) -> anyhow::Result<tokio::runtime::Runtime> {
    telemetry::start_log(&config.log)?;
    Ok(tokio::runtime::Runtime::new()?)
}
