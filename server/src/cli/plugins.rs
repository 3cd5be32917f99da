//! `foldwork plugins`: lists plugins, and runs the test cases of scripted plugins without a server.

use std::path::{Path, PathBuf};

use foldwork_engine::hook::{Hook, Plugin, PluginDescription};
use foldwork_plugins::PluginFolder;
use foldwork_plugins::script::{Script, case};
use serde_json::{Value, json};

use super::output::{counted, print, print_line};
use super::table::Table;
use crate::config::Config;

/// Lists plugins, and runs the test cases of scripted plugins.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The configuration file; the default is config.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Runs the test cases stored with the scripts. Prints a line for each case, the log of the script, and a
    /// difference for each failed case.
    Test {
        /// The folder of a plugin or of several plugins; the default is the configured folder and the shipped plugins.
        folder: Option<PathBuf>,
        /// Fails if a plugin has no cases.
        #[arg(long)]
        strict: bool,
    },
    /// Lists plugins with their descriptions and the events for which the plugins are called.
    List {
        /// The folder of a plugin or of several plugins; the default is the configured folder, the shipped plugins and
        /// the native plugins.
        folder: Option<PathBuf>,
    },
}

/// Runs a subcommand of `foldwork plugins`.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = Config::load(arguments.config.as_deref())?;
    match arguments.action {
        Action::Test { folder, strict } => test(&config, folder.as_deref(), strict),
        Action::List { folder } => list(&config, folder.as_deref()),
    }
}

fn test(config: &Config, folder: Option<&Path>, strict: bool) -> anyhow::Result<()> {
    let (mut passed, mut failed, mut refused, mut untested) = (0, 0, 0, 0);
    for folder in folders(config, folder)? {
        let outcomes = folder.and_then(|folder| {
            let script = Script::load(&folder, config.plugins.limits)?;
            Ok((folder.name.clone(), case::run(&script, &folder)?))
        });
        match outcomes {
            Err(refusal) => {
                refused += 1;
                print_line(&format!("refused  {refusal}"))?;
            }
            Ok((plugin, outcomes)) => {
                if outcomes.is_empty() {
                    untested += 1;
                    print_line(&format!("warning  {plugin}: no cases in cases.toml, so nothing is tested"))?;
                }
                for case::CaseOutcome { name, failure, logged } in outcomes {
                    let (count, line) = match failure {
                        None => (&mut passed, format!("ok       {plugin}: {name}")),
                        Some(failure) => (&mut failed, format!("failed   {plugin}: {name}\n{failure}")),
                    };
                    *count += 1;
                    print_line(&line)?;
                    for line in logged {
                        print_line(&format!("         {line}"))?;
                    }
                }
            }
        }
    }
    print_line(&format!("{passed} passed, {failed} failed"))?;
    let cases = (failed > 0).then(|| format!("{failed} of {} cases failed", passed + failed));
    let plugins = (refused > 0).then(|| format!("{} refused", counted(refused, "plugin")));
    let faults: Vec<String> = cases.into_iter().chain(plugins).collect();
    anyhow::ensure!(faults.is_empty(), "{}", faults.join(", "));
    anyhow::ensure!(
        !strict || untested == 0,
        "--strict requires cases for every plugin; found {} without cases",
        counted(untested, "plugin")
    );
    Ok(())
}

fn list(config: &Config, folder: Option<&Path>) -> anyhow::Result<()> {
    const COLUMNS: [&str; 6] = ["name", "version", "enabled", "hooks", "on", "description"];
    let mut table = Table::new(&COLUMNS);
    let mut refused = Vec::new();
    for folder in folders(config, folder)? {
        match folder.and_then(|folder| Script::load(&folder, config.plugins.limits)) {
            Err(error) => refused.push(format!("refused: {error}\n")),
            Ok(script) => table.push(&row(config, script.about()).each_ref()),
        }
    }
    for native in folder.map_or_else(foldwork_plugins::natives, |_| Vec::new()) {
        table.push(&row(config, native.plugin.about()).each_ref());
    }
    print(&format!("{}{}", table.render(), refused.concat()))?;
    match refused.len() {
        0 => Ok(()),
        refused => anyhow::bail!("refused {}", counted(refused as u64, "plugin")),
    }
}

fn row(config: &Config, about: &PluginDescription) -> [Value; 6] {
    let enabled = config.plugins.enabled.iter().position(|name| *name == *about.name);
    [
        json!(&*about.name),
        json!(about.version),
        enabled.map_or(Value::Null, |index| json!(index + 1)),
        json!(about.hooks.iter().map(|hook| Hook::name(*hook)).collect::<Vec<_>>()),
        json!(about.on.events.iter().chain(&about.on.traits).map(|name| &**name).collect::<Vec<_>>()),
        json!(about.description),
    ]
}

/// Returns the selected scripted plugins. If `folder` is the folder of a plugin, returns this plugin. Otherwise,
/// returns the plugins in the folders within `folder`. If `folder` is `None`, returns all scripted plugins that the
/// configuration can enable.
fn folders(
    config: &Config,
    folder: Option<&Path>,
) -> anyhow::Result<Vec<Result<PluginFolder, foldwork_plugins::LoadError>>> {
    let Some(folder) = folder else {
        let scripts = Path::new(&config.plugins.folder);
        return Ok(PluginFolder::names(scripts)
            .iter()
            .filter_map(|name| PluginFolder::find(scripts, name).transpose())
            .collect());
    };
    if folder.join("plugin.toml").is_file() {
        return Ok(vec![PluginFolder::read(folder)]);
    }
    let within = PluginFolder::within(folder);
    anyhow::ensure!(!within.is_empty(), "{} has no folder with a plugin.toml", folder.display());
    Ok(within.iter().map(|name| PluginFolder::read(&folder.join(name))).collect())
}
