//! The program: `foldwork serve`, and the commands that call a server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use foldwork_plugins::memory::Counting;
use foldwork_server::{Config, cli, openapi, serve, telemetry};
use tikv_jemallocator::Jemalloc;

/// The allocator of the program. Appends and pipelines allocate many small values and would spend a third of their time
/// in the system's allocator. jemalloc also returns free memory to the system: after an hour of steady load, the
/// program uses no more memory than at the beginning. The wrapper counts the memory that scripts allocate.
#[global_allocator]
static ALLOCATOR: Counting<Jemalloc> = Counting(Jemalloc);

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
    /// The address to listen on. Port 0 takes a free port.
    #[arg(long)]
    listen: Option<String>,
    /// The store of the data: surrealkv://PATH, mem:// or ws://HOST:PORT.
    #[arg(long)]
    database: Option<String>,
    /// The store of file contents: file://PATH, mem://, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or
    /// az://CONTAINER/PREFIX.
    #[arg(long)]
    files: Option<String>,
}

#[derive(clap::Args)]
struct Demo {
    /// A folder in the repository to import; the default is the current folder.
    repository: Option<PathBuf>,
    /// The address to listen on. Port 0 takes a free port.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: String,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
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
            let runtime = start(&config)?;
            let ended = runtime.block_on(async {
                let server = serve::listen(config.clone()).await?;
                serve::end_in_time(&config)?;
                server.announce()?;
                server.run(serve::stop_signal()).await
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
    config.store.url = "surrealkv://data/demo".into();
    config.files.url = "file://data/demo-files".into();
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
        cli::demo::present(&cli::client::Client::new(&url, &key)?, &repository).await?;
        serving.await?
    });
    serve::end(runtime);
    ended.map(|()| ExitCode::SUCCESS)
}

/// Initialises logging and returns the runtime for all tasks.
fn start(config: &Config) -> anyhow::Result<tokio::runtime::Runtime> {
    telemetry::start_log(&config.log)?;
    Ok(tokio::runtime::Runtime::new()?)
}
