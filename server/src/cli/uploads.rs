//! Uploads the files of an export to a server.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use foldwork_engine::model::file_path::{FileOwner, FilePath};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde::Deserialize;

use super::client::{Client, unless_refused};
use super::portable::folder::FilesFolder;
use super::portable::lines::ExportedWorkspace;
use super::projects::Projects;
use super::retry;

/// The time limit for one attempt to upload a file.
const UPLOAD_TIME: Duration = Duration::from_secs(60 * 60);

/// A file of an export, as the payload of its event describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct NamedFile {
    filename: String,
    mime_type: String,
    size: u64,
    sha256: String,
    attached_id: Option<String>,
    attached_type: Option<String>,
    /// The id or slug of the file's project, from the event. The payload does not contain the project.
    #[serde(skip)]
    pub project: Option<String>,
}

/// The digest of a file, from the response to the lookup or to the upload of the file.
#[derive(Deserialize)]
struct ServerFile {
    sha256: String,
}

/// Uploads the files of one import.
#[derive(Debug, Default)]
pub struct Uploads {
    /// The id of the server's workspace. The paths of files begin with this id. Fetched for the first file.
    workspace: Option<String>,
}

impl Uploads {
    /// Stores a file unless the server has a file with the same content at the same path. Returns whether the file was
    /// stored. The path may differ from the path in the export, because a path contains the ids of the workspace and
    /// the project.
    pub async fn store(
        &mut self,
        client: &Client,
        projects: &Projects,
        folder: &FilesFolder,
        file: &NamedFile,
        note: &dyn Fn(&str),
    ) -> anyhow::Result<bool> {
        let path = self.path(client, projects, file, note).await?;
        let id = FilePath::aggregate_id(path.as_str()).to_string();
        let known = unless_refused(retry::get(client, note, &["aggregates", &id]).await, StatusCode::NOT_FOUND);
        let known = known.with_context(|| format!("the file '{}' cannot be looked up", file.filename))?;
        let known = known.map(|answer| answer.json::<ServerFile>()).transpose()?;
        if known.is_some_and(|known| known.sha256 == file.sha256) {
            return Ok(false);
        }
        let segments: Vec<&str> = ["files"].into_iter().chain(path.as_str().split('/')).collect();
        let request = || {
            client
                .request(Method::PUT, &segments)
                .timeout(UPLOAD_TIME)
                .header(CONTENT_TYPE, &file.mime_type)
                .body(folder.body(&file.sha256, file.size))
        };
        // Fails before the request if the folder does not have the bytes.
        folder.read(&file.sha256, file.size).await.map(drop)?;
        let unstored = || format!("the file '{}' cannot be stored", file.filename);
        let stored: ServerFile = retry::call(client, note, request).await.with_context(unstored)?.json()?;
        ensure!(
            stored.sha256 == file.sha256,
            "the stored bytes of the file '{}' have the SHA-256 {}, expected {}",
            file.filename,
            stored.sha256,
            file.sha256
        );
        Ok(true)
    }

    async fn path(
        &mut self,
        client: &Client,
        projects: &Projects,
        file: &NamedFile,
        note: &dyn Fn(&str),
    ) -> anyhow::Result<FilePath> {
        if self.workspace.is_none() {
            let found = retry::get(client, note, &["workspace"]).await;
            let found = found.and_then(|answer| answer.json::<ExportedWorkspace>());
            self.workspace = Some(found.context("the workspace cannot be read")?.id);
        }
        let workspace = self.workspace.as_deref().unwrap_or_default();
        let named = file.project.as_deref().map(|name| projects.id(name).unwrap_or(name).to_owned());
        // A file is in the project of the aggregate to which it is attached.
        let attached = match &file.attached_id {
            Some(id) => {
                let name = &file.filename;
                let about = || format!("the aggregate '{id}', to which the file '{name}' is attached, cannot be read");
                let found = retry::get(client, note, &["aggregates", id]).await;
                unless_refused(found, StatusCode::NOT_FOUND).with_context(about)?
            }
            None => None,
        };
        let project = attached.map_or(Ok(named), |answer| answer.json::<FileScope>().map(|scope| scope.project_id))?;
        let place =
            FileOwner { project, aggregate_type: file.attached_type.clone(), aggregate_id: file.attached_id.clone() };
        let path = FilePath::new(workspace, &place, &file.filename);
        path.map_err(|(part, message)| anyhow!("/payload: {part}: {message}"))
    }
}

/// The project of an aggregate. The paths of files that are attached to the aggregate contain this project.
#[derive(Deserialize)]
struct FileScope {
    project_id: Option<String>,
}
