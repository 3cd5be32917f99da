//! `/parked`: steps that failed and were put aside.

use foldwork_engine::Error;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::parked::{Parked, Replayed, StepId};
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::{ApiResult, answer};
use crate::wire::body::{Body, Written};
use crate::wire::closed_sets::{Hooks, Word};
use crate::wire::page::limit;

pub struct Api;

/// A plugin's hook for an event, put aside after it failed.
#[derive(Object, Serialize)]
#[oai(rename = "ParkedStep")]
pub struct ParkedBody {
    id: String,
    plugin: String,
    hook: Word<Hooks>,
    event_id: String,
    event_type: String,
    aggregate_id: String,
    position: u64,
    /// A word for the kind of failure, as `thrown`, `deadline`, `memory` or `circuit_open`.
    kind: String,
    /// What went wrong.
    message: String,
    /// Where in the plugin's file.
    #[oai(nullable)]
    line: Option<u32>,
    #[oai(nullable)]
    column: Option<u32>,
    /// The plugin's version that failed.
    version: String,
    attempts: u32,
    parked_at: String,
}

/// A page of parked steps.
#[derive(Object, Serialize)]
struct ParkedPage {
    data: Vec<ParkedBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

/// Which parked steps are tried again.
#[derive(Object, Deserialize)]
struct ReplayParked {
    /// Those of one plugin; all where it is not given.
    #[oai(nullable)]
    plugin: Option<String>,
}

/// What became of steps that were tried again.
#[derive(Object, Serialize)]
struct ReplayedBody {
    done: u64,
    /// Those that failed again, with the new reason.
    failed: Vec<ParkedBody>,
    /// There are more steps to be tried: ask again.
    more: bool,
}

#[derive(ApiResponse)]
enum Deleted {
    /// The step is given up.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Steps that failed and were put aside, in the order of their events.
    ///
    /// A step is one plugin's hook for one event. Each says why it failed and how often it was tried.
    #[oai(path = "/parked", method = "get", operation_id = "list_parked")]
    async fn list_parked(
        &self,
        access: ApiRead,
        /// Those of one plugin.
        plugin: Query<Option<String>>,
        /// How many at the most, 1 to 200; 50 where it is not given.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the page before.
        cursor: Query<Option<String>>,
    ) -> ApiResult<Written<ParkedPage>> {
        let rows = answer(limit(rows))?;
        let after = answer(cursor.0.as_deref().map(read_cursor).transpose())?;
        let mut steps = answer(access.0.list_parked(plugin.0.as_deref(), after.as_ref(), rows + 1).await)?;
        let more = steps.len() > rows;
        steps.truncate(rows);
        let next_cursor = steps.last().filter(|_| more).map(|last| hex::encode(last.id.text()));
        Ok(Written::new(&ParkedPage { data: steps.iter().map(ParkedBody::from).collect(), next_cursor }))
    }

    /// Tries a parked step again.
    ///
    /// It leaves the list where it succeeds; where it fails again, its new reason is answered.
    #[oai(path = "/parked/:step_id/replay", method = "post", operation_id = "replay_parked_step")]
    async fn replay_parked_step(&self, access: ApiWrite, step_id: Path<String>) -> ApiResult<Written<ReplayedBody>> {
        Ok(Written::new(&ReplayedBody::from(answer(access.0.replay_parked(&step_id).await)?)))
    }

    /// Tries the parked steps of a plugin, or all, again, oldest first.
    ///
    /// At most 1,000 in one request; `more` tells that there are others left.
    #[oai(path = "/parked/replay", method = "post", operation_id = "replay_parked")]
    async fn replay_parked(&self, access: ApiWrite, body: Body<ReplayParked>) -> ApiResult<Written<ReplayedBody>> {
        let replayed = answer(access.0.replay_all_parked(body.plugin.as_deref()).await)?;
        Ok(Written::new(&ReplayedBody::from(replayed)))
    }

    /// Gives a parked step up.
    ///
    /// What the plugin would have found in the event stays unknown, until it is replayed over the log.
    #[oai(path = "/parked/:step_id", method = "delete", operation_id = "delete_parked_step")]
    async fn delete_parked_step(&self, access: ApiWrite, step_id: Path<String>) -> ApiResult<Deleted> {
        answer(access.0.delete_parked(&step_id).await)?;
        Ok(Deleted::Done)
    }
}

/// The step that a page ended with.
fn read_cursor(cursor: &str) -> Result<StepId, Error> {
    let text = hex::decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let step = text.and_then(|text| StepId::parse(&text));
    step.ok_or_else(|| Error::invalid("the cursor is not one of this list"))
}

impl From<&Parked> for ParkedBody {
    fn from(parked: &Parked) -> ParkedBody {
        let Parked { id, reason } = parked;
        ParkedBody {
            id: id.text(),
            plugin: id.plugin.to_string(),
            hook: (&*id.hook).into(),
            event_id: reason.event_id.to_string(),
            event_type: reason.event_type.to_string(),
            aggregate_id: reason.aggregate_id.to_string(),
            position: id.position,
            kind: reason.kind.to_string(),
            message: reason.message.clone(),
            line: reason.line,
            column: reason.column,
            version: reason.version.clone(),
            attempts: reason.attempts,
            parked_at: format_date(reason.parked_at),
        }
    }
}

impl From<Replayed> for ReplayedBody {
    fn from(replayed: Replayed) -> ReplayedBody {
        let failed = replayed.failed.iter().map(ParkedBody::from).collect();
        ReplayedBody { done: replayed.done, failed, more: replayed.more }
    }
}
