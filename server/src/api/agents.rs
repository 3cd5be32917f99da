//! `/agents`: registration, status and workload of agents.

use std::sync::Arc;

use foldwork_engine::model::agent::{AgentProfile, AgentStatus};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::agents::{AgentChange, AgentView, NewAgent, Workload};
use foldwork_engine::{Error, Writer};
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::types::MaybeUndefined;
use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::{etag, expected_at};
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{AgentStatuses, AgentSwitch, OneOf};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent};
use crate::wire::json::{AnyObject, Text};
use crate::wire::page::{PageBody, PageBytes, Whole, limit, listed, page_limit, read_cursor};
use crate::wire::patch;
use crate::wire::response::{no_content, tagged};
use crate::wire::shown::shown;
use crate::wire::successor::{read_successor, successor_parameter};

pub struct Api;

shown! {
    /// An agent of the workspace. A program or a plugin does the agent's work.
    #[oai(rename = "Agent")]
    struct AgentBody from view: &AgentView where {
        let agent = &*view.agent;
        let profile = AgentProfile::from(agent);
    };

    id: Text = agent.id.text().into(),
    name: Text = profile.name.into(),
    description: Text = profile.description.into(),
    subscribed_traits: Vec<Text> = profile.subscribed_traits.into_iter().map(Text).collect(),
    /// The agent's capabilities. Maps each name to `true` if the agent has the capability, and to `false` otherwise.
    capabilities: AnyObject = AnyObject(profile.capabilities),
    status: OneOf<AgentStatuses> = view.status.name().into(),
    /// The name of the plugin that does the agent's work, or null if a program does the work.
    plugin: Option<Text> = profile.plugin.map(Text),
    last_seen_at: Option<String> = view.last_seen_at.map(format_date),
    version: u64 = agent.version,
    created_at: String = format_date(agent.created_at),
    updated_at: String = format_date(agent.last_event_at),
}

listed!(AgentBody as "AgentPage": "A page of agents.");

shown! {
    /// The card of an agent: a description for callers that want to assign tasks to the agent.
    #[oai(rename = "AgentCard")]
    struct CardBody from view: &AgentView where {
        let agent = AgentBody::from(view);
        let of_traits = agent.subscribed_traits.iter().map(SkillBody::from).collect();
    };

    id: Text = agent.id,
    name: Text = agent.name,
    description: Text = agent.description,
    capabilities: AnyObject = agent.capabilities,
    traits: Vec<Text> = agent.subscribed_traits,
    /// The skills of the agent, one per subscribed trait.
    skills: Vec<SkillBody> = of_traits,
    version: u64 = agent.version,
    status: OneOf<AgentStatuses> = agent.status,
    last_seen_at: Option<String> = agent.last_seen_at,
}

shown! {
    /// A skill of an agent.
    #[oai(rename = "AgentSkill")]
    struct SkillBody from trait_name: &Text;

    id: Text = trait_name.clone(),
    name: String = trait_name.0.replace(['-', '_'], " "),
    description: String = format!("works on content with the trait '{}'", trait_name.0),
}

shown! {
    /// The workload of an agent.
    #[oai(rename = "AgentWorkload")]
    struct WorkloadBody from (agent, workload): (Arc<Aggregate>, Workload);

    agent_id: Text = agent.id.text().into(),
    name: Text = AgentProfile::from(&*agent).name.into(),
    pending: u64 = workload.pending,
    /// The number of unread tasks. Tasks of every open status count, not only pending tasks.
    unread: u64 = workload.unread,
    in_progress: u64 = workload.in_progress,
    review: u64 = workload.review,
    oldest_pending_at: Option<String> = workload.oldest_pending_at.map(format_date),
}

/// A page of the workloads of the agents.
#[derive(Object, Serialize)]
#[oai(rename = "AgentRoster")]
struct RosterBody {
    data: Vec<WorkloadBody>,
    next_cursor: Option<String>,
}

/// An agent to register.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateAgent {
    /// The name, which must be unique in the workspace.
    name: String,
    description: Option<String>,
    /// The traits that the agent subscribes to. The agent gets a task for each new aggregate of a type with one of
    /// these traits. For the trait `publishable`, the agent gets the task when the aggregate is published.
    subscribed_traits: Option<Vec<String>>,
    /// The agent's capabilities. Maps each name to `true` if the agent has the capability, and to `false` otherwise.
    capabilities: Option<AnyObject>,
}

/// Changes to an agent. Absent fields do not change.
#[derive(Object, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ChangeAgent {
    #[oai(write_only)]
    name: MaybeUndefined<String>,
    /// Null removes the description.
    description: MaybeUndefined<String>,
    /// The traits, which replace the previous traits. Null removes all traits.
    subscribed_traits: MaybeUndefined<Vec<String>>,
    /// The capabilities, which replace the previous capabilities. Null removes all capabilities.
    capabilities: MaybeUndefined<AnyObject>,
    /// The new status. The server assigns new tasks to an `active` agent, but not to a `disabled` agent.
    #[oai(write_only)]
    status: MaybeUndefined<OneOf<AgentSwitch>>,
    /// The successor for the open tasks of an agent that becomes `disabled`: `agent:ID` or `user:ID`. Without a
    /// successor, the tasks are assigned to nobody and wait for people.
    reassign_to: Option<String>,
    /// The expected version. If the agent has another version, the request is rejected with 409.
    expected_version: Option<Whole>,
}

tagged!(AgentUpdateResponse of AgentBody: "The agent after the change.");

no_content!(AgentDeletionResponse: "The agent was deleted. Its history stays in the log.");

const LIST: &str = "agents";
const ROSTER: &str = "roster";
/// The approximate size of a workload as JSON, in bytes.
const WORKLOAD_BYTES: usize = 256;

#[OpenApi(tag = "Section::Agents")]
impl Api {
    /// Lists agents, newest first, including agents whose work a plugin does.
    ///
    /// An agent that is not `disabled` is `active` if the agent has connected, sent a heartbeat or worked on a task
    /// within the last three heartbeat intervals, or if an enabled plugin does the agent's work. Otherwise, the agent
    /// is `offline`. A page may have fewer rows than `limit`, because its size in bytes is limited as well.
    #[oai(path = "/agents", method = "get", operation_id = "list_agents")]
    async fn list_agents(
        &self,
        access: ApiRead,
        /// Only agents with this status.
        status: Query<Option<OneOf<AgentStatuses>>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<AgentBody>>> {
        let status = status.as_deref().map(read_status).transpose()?;
        let list = format!("{LIST}/{}", status.map_or("", AgentStatus::name));
        let before = read_cursor(&list, cursor.as_deref())?;
        let page = access.0.list_agents(status, before, page_limit(rows, *page_bytes.0)?).await?;
        let bytes = page.items.iter().map(|view| view.agent.size_bytes()).sum();
        Ok(JsonResponse::large(bytes, || PageBody::new(page, &list, |view| AgentBody::from(&view))))
    }

    /// Registers an agent.
    ///
    /// The name must be unique in the workspace (409 `name_taken`). If a type has one of the agent's traits, the agent
    /// gets a task for each later event `<type>.created`, even if the agent is offline. For the trait `publishable`,
    /// the agent gets a task for each event `<type>.published` instead. An agent gets one task per event, and a
    /// disabled agent gets no tasks. The plugin `trait_router` assigns these tasks; other plugins may assign tasks
    /// differently.
    #[oai(path = "/agents", method = "post", operation_id = "create_agent")]
    async fn create_agent(
        &self,
        access: ApiWrite,
        body: Body<CreateAgent>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<AgentBody>> {
        let Body { value: CreateAgent { name, description, subscribed_traits, capabilities }, text } = body;
        let capabilities = capabilities.map(AnyObject::into_object);
        let change = AgentChange { description, subscribed_traits, capabilities, ..AgentChange::default() };
        let make = async move |writer: Writer, request| {
            let (view, repeated) = writer.create_agent(NewAgent { name, change, request }).await?;
            let location = format!("{}/agents/{}", API, view.agent.id);
            Ok(CreationOutcome { body: AgentBody::from(&view), location, repeated })
        };
        idempotent(&access.0, key.0, "create_agent", &text, make).await
    }

    /// Lists the workload of every agent, newest agent first.
    ///
    /// A workload contains the numbers of pending tasks, of unread tasks, of tasks in progress and of tasks in review,
    /// and the creation time of the oldest pending task. All agents are on one page, unless the page reaches `limit` or
    /// its maximum size in bytes.
    #[oai(path = "/agents/roster", method = "get", operation_id = "get_roster")]
    async fn get_roster(
        &self,
        access: ApiRead,
        /// Rows per page, 1 to 200. By default, only the size of a page in bytes is limited.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<RosterBody>> {
        let rows = rows.map_or(Ok(usize::MAX), |rows| limit(Some(rows)))?;
        let before = read_cursor(ROSTER, cursor.as_deref())?;
        let page = access.0.roster(before, PageLimit { rows, bytes: page_bytes.0.0 }).await?;
        let bytes = page.items.len() * WORKLOAD_BYTES;
        Ok(JsonResponse::large(bytes, || {
            let PageBody { data, next_cursor } = PageBody::new(page, ROSTER, WorkloadBody::from);
            RosterBody { data, next_cursor }
        }))
    }

    /// Returns one agent.
    ///
    /// The response includes the agent's current status and the time at which the agent was last seen.
    #[oai(path = "/agents/:agent_id", method = "get", operation_id = "get_agent")]
    async fn get_agent(&self, access: ApiRead, agent_id: Path<String>) -> ApiResult<AgentUpdateResponse> {
        Ok(changed_response(&access.0.agent(&agent_id).await?))
    }

    /// Returns the card of an agent: a description for callers that want to assign tasks to the agent.
    ///
    /// The card contains one skill for each trait that the agent subscribes to.
    #[oai(path = "/agents/:agent_id/card", method = "get", operation_id = "get_agent_card")]
    async fn get_agent_card(&self, access: ApiRead, agent_id: Path<String>) -> ApiResult<JsonResponse<CardBody>> {
        Ok(JsonResponse::new(&CardBody::from(&access.0.agent(&agent_id).await?)))
    }

    /// Changes an agent. If a plugin does the agent's work, only `status` and `reassign_to` can be changed.
    ///
    /// Only the fields in the body change. A disabled agent gets no new tasks and cannot claim tasks. When an agent is
    /// disabled, its claims end, and its open tasks are assigned to `reassign_to` or, if `reassign_to` is absent, to
    /// nobody.
    #[oai(path = "/agents/:agent_id", method = "patch", operation_id = "change_agent")]
    async fn change_agent(
        &self,
        access: ApiWrite,
        agent_id: Path<String>,
        body: Body<ChangeAgent>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<AgentUpdateResponse> {
        let ChangeAgent { name, description, subscribed_traits, capabilities, status, reassign_to, expected_version } =
            body.value;
        let status = patch::required(status, "status", "active or disabled")?;
        let change = AgentChange {
            name: patch::required(name, "name", "a string")?,
            description: patch::clearable(description),
            subscribed_traits: patch::clearable(subscribed_traits),
            capabilities: patch::clearable(capabilities).map(AnyObject::into_object),
            is_disabled: status.as_deref().map(read_whether_disabled).transpose()?,
            successor: read_successor(reassign_to.as_deref(), |allowed| Error::invalid_at("/reassign_to", allowed))?,
        };
        let expected = expected_at(expected_version, if_match.as_deref())?;
        Ok(changed_response(&access.0.change_agent(&agent_id, change, expected).await?))
    }

    /// Deletes an agent. The agent's claims end. Its open tasks are assigned to `reassign_to` or, if `reassign_to` is
    /// absent, to nobody.
    ///
    /// The agent's history stays in the log. After the deletion, another agent can use the name. If an enabled plugin
    /// does the agent's work, the request gets 409 `scripted_agent`.
    #[oai(path = "/agents/:agent_id", method = "delete", operation_id = "delete_agent")]
    async fn delete_agent(
        &self,
        access: ApiWrite,
        agent_id: Path<String>,
        /// The successor for the open tasks of the agent: `agent:ID` or `user:ID`.
        reassign_to: Query<Option<String>>,
        expected_version: Query<Option<Whole>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<AgentDeletionResponse> {
        let expected = expected_at(expected_version.0, if_match.as_deref())?;
        let successor = read_successor(reassign_to.as_deref(), successor_parameter)?;
        access.0.delete_agent(&agent_id, expected, successor).await?;
        Ok(AgentDeletionResponse::Done)
    }
}

fn changed_response(view: &AgentView) -> AgentUpdateResponse {
    AgentUpdateResponse::Done(JsonResponse::new(&AgentBody::from(view)), etag(view.agent.version))
}

fn read_status(status: &str) -> Result<AgentStatus, Error> {
    AgentStatus::parse(status).ok_or_else(|| Error::invalid("`status` must be `active`, `offline` or `disabled`"))
}

fn read_whether_disabled(status: &str) -> Result<bool, Error> {
    match status {
        "active" => Ok(false),
        "disabled" => Ok(true),
        _ => Err(Error::invalid_at("/status", "expected active or disabled")),
    }
}
