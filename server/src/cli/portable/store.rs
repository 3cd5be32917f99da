//! The access of a command to the configured store while the server is stopped.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::offline::Offline;
use foldwork_engine::{Engine, Plugins, StoreError};

use super::lines::ExportedWorkspace;
use crate::config::Config;
use crate::serve;
use crate::serve::place::DataFolder;

/// The arguments of a command that can work on a store instead of calling a server.
#[derive(clap::Args, Debug, Default)]
pub struct StoreArguments {
    /// Works on the configured store instead of calling a server. The server must be stopped.
    #[arg(long)]
    pub offline: bool,
    /// The configuration file; the default is config.toml.
    #[arg(long, value_name = "FILE", requires = "offline")]
    config: Option<PathBuf>,
    /// The id or the name of the workspace. By default, an import of an export chooses the workspace with the id in the
    /// file, and creates the workspace if needed. If the store contains several workspaces, an export requires this
    /// option, and so does an import of a file that is not an export.
    #[arg(long, value_name = "WORKSPACE", requires = "offline")]
    pub workspace: Option<String>,
}

/// A workspace of a store that no server has open.
pub struct OpenStore {
    pub engine: Arc<Engine>,
    pub workspace: Offline,
}

impl StoreArguments {
    /// Opens the configured store, and creates the store if needed.
    pub async fn engine(&self) -> anyhow::Result<Arc<Engine>> {
        open_engine(&Config::load(self.config.as_deref())?).await
    }

    /// Opens the configured store. Fails if the store does not exist.
    pub async fn existing_engine(&self) -> anyhow::Result<Arc<Engine>> {
        let config = Config::load(self.config.as_deref())?;
        check_presence(&config)?;
        open_engine(&config).await
    }
}

/// Fails if the configured store is in a folder that has no store yet, because opening the store would create a store.
pub fn check_presence(config: &Config) -> anyhow::Result<()> {
    match DataFolder::of(&config.store.url, "surrealkv").filter(DataFolder::is_new) {
        Some(folder) => bail!(
            "there is no store in {}; use --config to name the configuration file of the store",
            folder.path.display()
        ),
        None => Ok(()),
    }
}

/// Opens the configured store, without plugins. Fails if the store is in a folder and another process has the store
/// open.
pub async fn open_engine(config: &Config) -> anyhow::Result<Arc<Engine>> {
    let store = match serve::open_store(config).await {
        Err(error) if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(StoreError::Locked))) => {
            let advice = "another process, such as a server, has the store open; stop the other process first";
            return Err(error.context(advice));
        }
        opened => opened?,
    };
    serve::open_engine(config, store, Plugins::none()?).await
}

impl OpenStore {
    /// Opens the chosen workspace. Without `chosen`, opens the only workspace of the store.
    pub async fn open(engine: Arc<Engine>, chosen: Option<&str>) -> anyhow::Result<Self> {
        let record = match (find(&engine, chosen).await?, chosen) {
            (Some(record), _) => record,
            (None, Some(name)) => bail!("the store has no workspace '{name}'; {}", known(&engine).await?),
            (None, None) => bail!("choose a workspace with --workspace; {}", known(&engine).await?),
        };
        let unopened = || format!("the workspace {} cannot be opened", record.id);
        let workspace = engine.offline(&record.id).await.with_context(unopened)?;
        Ok(Self { engine, workspace })
    }

    /// Returns the description of the workspace for an export.
    pub fn about(&self) -> ExportedWorkspace {
        let record = self.workspace.record();
        ExportedWorkspace {
            id: record.id.to_string(),
            name: record.name.clone(),
            slug: record.slug.clone(),
            owner_id: record.owner_id.to_string(),
            created_at: format_date(record.created_at),
        }
    }
}

/// Returns the workspace with the id or the name `chosen`, or `None` if the store has no such workspace. Fails if
/// several workspaces have this name. Without `chosen`, returns the only workspace, or `None` if the store contains no
/// workspace or several workspaces.
pub async fn find(engine: &Engine, chosen: Option<&str>) -> anyhow::Result<Option<WorkspaceRecord>> {
    let mut all = engine.workspaces().await?;
    let Some(chosen) = chosen else {
        return Ok(if all.len() == 1 { all.pop() } else { None });
    };
    if let Some(index) = all.iter().position(|record| *record.id == *chosen) {
        return Ok(Some(all.swap_remove(index)));
    }
    all.retain(|record| record.name == chosen);
    if all.len() > 1 {
        let ids: Vec<&str> = all.iter().take(10).map(|record| &*record.id).collect();
        let more = if all.len() > 10 { ", …" } else { "" };
        bail!("several workspaces have the name '{chosen}'; choose one by its id: {}{more}", ids.join(", "));
    }
    Ok(all.pop())
}

/// Returns a list of the workspaces, as the end of a message. Fails if the store has no workspaces.
async fn known(engine: &Engine) -> anyhow::Result<String> {
    let all = engine.workspaces().await?;
    if all.is_empty() {
        bail!("the store has no workspaces");
    }
    let names: Vec<String> = all.iter().take(10).map(|record| format!("{} ({})", record.id, record.name)).collect();
    let more = if all.len() > 10 { ", …" } else { "" };
    Ok(format!("the workspaces of the store are {}{more}", names.join(", ")))
}
