//! `/system/backups` and `/system/restores`: the archives of all workspaces, and restores from these archives, for
//! operators.

use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::archive::{Backups, RestoreEnd, RestoreFrom, reason};
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{Administrator, Error, StoreError};
use futures_util::future::join_all;
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::OperatorWrite;
use crate::http::archiving::ServerArchive;
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::backup::{BackupBody, BackupPage, RestoreBody};
use crate::wire::body::{Body, JsonResponse};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent_kept};
use crate::wire::page::{PageBody, Whole, limit, named_cursor, read_named_cursor, time_at};

pub struct Api;

const BACKUPS: &str = "backups";
/// The maximum number of archives that a request reads at the same time.
const CONCURRENCY: usize = 16;
/// The time limit for listing the archived workspaces, and for reading the description of one workspace's archive.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The options of a restore: the archive, the last event to restore, and the name of the new workspace.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRestore {
    /// The id of the archived workspace.
    workspace_id: String,
    /// The position of the last event to restore; the default is the end of the archive.
    position: Option<Whole>,
    /// The time of the last event to restore, RFC 3339: events that were appended later are left out. Not allowed
    /// together with `position`.
    at: Option<String>,
    /// The epoch of the archive to restore; the default is the newest epoch.
    epoch: Option<Whole>,
    /// The name of the new workspace, 1 to 200 characters; the default is the id of the archived workspace, followed by
    /// `restored`.
    name: Option<String>,
}

/// The response to a request that begins a restore.
#[derive(ApiResponse)]
enum RestoreResponse {
    /// The restore has begun.
    #[oai(status = 202)]
    Accepted(JsonResponse<RestoreBody>, #[oai(header = "Location")] String),
    /// The request repeats an earlier request. The response is the result of that earlier request, without the key.
    #[oai(status = 200)]
    Repeated(
        JsonResponse<RestoreBody>,
        #[oai(header = "Location")] String,
        #[oai(header = "Idempotency-Replayed")] String,
    ),
}

impl From<CreationResponse<RestoreBody>> for RestoreResponse {
    fn from(response: CreationResponse<RestoreBody>) -> RestoreResponse {
        match response {
            CreationResponse::New(body, location) => RestoreResponse::Accepted(body, location),
            CreationResponse::Repeated(body, location, replayed) => RestoreResponse::Repeated(body, location, replayed),
        }
    }
}

#[OpenApi(tag = "Section::Operators")]
impl Api {
    /// Lists the backups of all workspaces, in the order of the workspaces' ids.
    ///
    /// `position` is the position of the last event in the archive. If several servers share the store, the server that
    /// leads the workspace archives the workspace. Only the responses of this server contain `head`, `lag` and the
    /// error of the last attempt to archive the workspace. `verified` is the result of the last verification. A server
    /// without a backup responds with 409 `backup_disabled`. Only owners of the installation's first workspace can do
    /// this (`operator_required`).
    #[oai(path = "/system/backups", method = "get", operation_id = "list_backups")]
    async fn list_backups(
        &self,
        _access: OperatorWrite,
        archiving: Data<&ServerArchive>,
        /// Only the backup of this workspace, given by its id.
        workspace_id: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<BackupPage>> {
        let (after, rows) = (read_named_cursor(BACKUPS, cursor.as_deref())?, limit(rows)?);
        let enabled = archiving.enabled()?;
        let archive = enabled.backups.archive();
        let listed = tokio::time::timeout(READ_WITHIN, archive.workspaces()).await;
        let mut ids = listed.unwrap_or_else(|_| Err(Error::Unavailable(StoreError::Unresponsive)))?;
        ids.retain(|id| after.as_deref().is_none_or(|after| **id > *after));
        ids.retain(|id| workspace_id.as_deref().is_none_or(|wanted| **id == *wanted));
        let has_next = ids.len() > rows;
        ids.truncate(rows);
        let next_cursor = ids.last().filter(|_| has_next).map(|id| named_cursor(BACKUPS, id));
        Ok(JsonResponse::new(&BackupPage {
            url: enabled.url.to_string(),
            control_at: archive.control_at().await?.map(format_date),
            workspaces: described(&enabled.backups, &ids).await,
            next_cursor,
        }))
    }

    /// Begins to restore a workspace from its archive into a new workspace.
    ///
    /// The archived workspace does not change. The new workspace appears when the restore is complete, and its owner is
    /// the caller. If the caller's key is valid in only one workspace, the response contains a `key` for the new
    /// workspace. `GET /system/restores/{id}` returns the progress. A server without a backup responds with 409
    /// `backup_disabled`. Requires an owner of the installation's first workspace (`operator_required`).
    #[oai(path = "/system/restores", method = "post", operation_id = "create_restore")]
    async fn create_restore(
        &self,
        access: OperatorWrite,
        archiving: Data<&ServerArchive>,
        body: Body<CreateRestore>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<RestoreResponse> {
        let Body { value: CreateRestore { workspace_id, position, at, epoch, name }, text } = body;
        let until = until(position, at.as_deref())?;
        let name = name.unwrap_or_else(|| format!("{workspace_id} restored"));
        let from = RestoreFrom { workspace_id: workspace_id.into(), until, epoch: epoch.map(u64::from) };
        let backups = archiving.enabled()?.backups.clone();
        let make = async move |by: Administrator, request: Option<IdempotentRequest>| {
            let id = request.map(|request| by.restore_id(&request));
            let begun = backups.begin_restore(from, &name, by.caller(), id).await?;
            let location = format!("{}/system/restores/{}", API, begun.restore.id);
            let body = RestoreBody::with_key(&begun.restore, begun.key);
            Ok(CreationOutcome { body, location, repeated: begun.repeated })
        };
        let begun = idempotent_kept(&access.0, key.0, "create_restore", &text, make, RestoreBody::without_key).await?;
        Ok(begun.into())
    }

    /// Lists the newest restores of the installation, newest first.
    ///
    /// The list contains at most 100 restores, including the restores that other servers of the store began. A server
    /// without a backup responds with 409 `backup_disabled`. Only owners of the installation's first workspace can do
    /// this (`operator_required`).
    #[oai(path = "/system/restores", method = "get", operation_id = "list_restores")]
    async fn list_restores(
        &self,
        _access: OperatorWrite,
        archiving: Data<&ServerArchive>,
    ) -> ApiResult<JsonResponse<PageBody<RestoreBody>>> {
        let restores = archiving.enabled()?.backups.restores().await?;
        let data = restores.iter().map(RestoreBody::from).collect();
        Ok(JsonResponse::new(&PageBody { data, next_cursor: None }))
    }

    /// Returns a restore with its progress.
    ///
    /// `position` grows up to `end`. If a restore has failed, `message` is the reason. If a restore lacks the bytes of
    /// some files, `message` states the number of these files. A server without a backup responds with 409
    /// `backup_disabled`. Requires an owner of the installation's first workspace (`operator_required`).
    #[oai(path = "/system/restores/:restore_id", method = "get", operation_id = "get_restore")]
    async fn get_restore(
        &self,
        _access: OperatorWrite,
        archiving: Data<&ServerArchive>,
        restore_id: Path<String>,
    ) -> ApiResult<JsonResponse<RestoreBody>> {
        let restore = archiving.enabled()?.backups.restore(&restore_id).await?;
        Ok(JsonResponse::new(&RestoreBody::from(&restore)))
    }
}

/// Reads the descriptions of archives. Leaves out an archive that was removed after its id was listed. If an archive
/// cannot be read, its description contains the reason as the error.
async fn described(backups: &Backups, ids: &[Arc<str>]) -> Vec<BackupBody> {
    let progress = backups.progress();
    let mut bodies = Vec::with_capacity(ids.len());
    for ids in ids.chunks(CONCURRENCY) {
        let describe = |id| tokio::time::timeout(READ_WITHIN, backups.archive().describe(id));
        for (id, found) in ids.iter().zip(join_all(ids.iter().map(|id| describe(id))).await) {
            let here = progress.iter().find(|here| here.workspace_id == *id);
            match found.unwrap_or_else(|_| Err(Error::Unavailable(StoreError::Unresponsive))) {
                Ok(Some(described)) => bodies.push(BackupBody::from((&described, here))),
                Ok(None) => {}
                Err(error) => bodies.push(BackupBody::unreadable(id, here, reason(&error))),
            }
        }
    }
    bodies
}

/// Returns the end of a restore: the given position, the given time or, without both, the end of the archive.
fn until(position: Option<Whole>, at: Option<&str>) -> Result<RestoreEnd, Error> {
    match (position, at) {
        (None, at) => Ok(time_at("/at", at)?.map_or(RestoreEnd::End, RestoreEnd::Time)),
        (Some(position), None) => Ok(RestoreEnd::Position(position.into())),
        (Some(_), Some(_)) => Err(Error::invalid_at("/at", "expected either `position` or `at`, not both")),
    }
}
