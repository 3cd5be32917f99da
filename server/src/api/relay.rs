//! Operations for the programs of agents: connecting, heartbeats, and the feed for programs without a WebSocket.

use foldwork_engine::model::agent::{AgentProfile, HEARTBEAT_MS};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::feed::Delivery;
use foldwork_engine::model::value::Object as Fields;
use foldwork_engine::workspace::events::EventLimit;
use foldwork_engine::workspace::feed::Item;
use foldwork_engine::workspace::listener;
use poem::Request;
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::follow::{LogResponse, Start, is_stream, stream_of_feed};
use super::long_poll::{LiveContext, wait_time};
use super::section::Section;
use crate::auth::AgentListen;
use crate::http::error::ApiResult;
use crate::http::public_url::PublicUrl;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::delivery;
use crate::wire::json::{AnyObject, SerializedObject, Text};
use crate::wire::page::{Whole, cursor as cursor_at, limit, read_cursor};
use crate::wire::shown::shown;

pub struct Api;

/// The agents to connect.
#[derive(Object, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ConnectBody {
    /// The ids of 1 to 100 agents. The default is all enabled agents that the caller may access and that no plugin
    /// runs.
    agent_ids: Option<Vec<String>>,
}

/// The URL and the token for connecting to the channels of the agents.
#[derive(Object, Serialize)]
struct Connection {
    /// The URL for clients of Supabase Realtime or Phoenix, which append `/websocket` themselves.
    url: String,
    /// A token that is valid only for the channels of the agents in `agent_ids`. Without `agent_ids`, the token is
    /// valid for the channels of all agents that the caller may access. The token expires after an hour, or earlier
    /// together with the caller's key or token.
    anon_key: String,
    expires_at: String,
    channels: Vec<ChannelBody>,
    /// The time between heartbeats in milliseconds.
    heartbeat_interval: i64,
}

shown! {
    /// The channel on which an agent receives notifications.
    #[oai(rename = "Channel")]
    struct ChannelBody from agent: &Aggregate;

    agent_id: String = agent.id.to_string(),
    name: Text = AgentProfile::from(agent).name.into(),
    channel: String = format!("agent:{}", agent.id),
}

/// The agents to mark as online, and the claims to renew.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeartbeatBody {
    agent_ids: Vec<String>,
    /// The claims of the worker, at most 1000. Other claims of the agents are not renewed.
    claims: Option<Vec<NamedClaim>>,
    /// The name that the worker sent as `instance` when it claimed tasks. Only the claims of this worker are renewed.
    /// Not allowed together with `claims`. Without `claims` and `instance`, the claims without an instance that were
    /// made with the caller's key or in the caller's session are renewed.
    instance: Option<String>,
}

/// A claim on a task.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedClaim {
    task_id: String,
    /// The number of the claim. The response to the request that claimed the task contains this number in `lease`.
    claim: u64,
}

/// The result of a heartbeat.
#[derive(Object, Serialize)]
struct Heartbeat {
    updated: Vec<String>,
    unknown: Vec<String>,
    next_heartbeat_ms: i64,
    /// The number of renewed claims. 0 if the caller may not act for the agents.
    renewed: u64,
    /// Maps the id of each agent to its number of pending tasks.
    pending: AnyObject,
}

shown! {
    /// A notification for an agent.
    struct DeliveryBody from delivery: &Delivery;

    event: String = delivery.news.name().to_owned(),
    /// The `event_id` of the event that caused the notification.
    id: String = delivery.id().to_string(),
    position: u64 = delivery.position(),
    /// An object with `task`, `event_id`, `position` and `cause`.
    payload: SerializedObject = delivery::payload(delivery),
}

/// A page of an agent's feed.
#[derive(Object, Serialize)]
struct FeedPage {
    data: Vec<DeliveryBody>,
    next_cursor: Option<String>,
    /// The position at which this page ends. A client sends this position as `after` to continue after this page.
    position: u64,
}

#[OpenApi(tag = "Section::Agents")]
impl Api {
    /// Marks agents as online, and returns the URL and the token for their channels.
    ///
    /// Clients of Supabase Realtime and Phoenix can use the response unchanged. The token is valid only for the
    /// channels, because clients send the token as part of a URL.
    #[oai(path = "/agents/connect", method = "post", operation_id = "connect_agents")]
    async fn connect_agents(
        &self,
        access: AgentListen,
        body: Body<ConnectBody>,
        request: &Request,
        public_url: Data<&PublicUrl>,
    ) -> ApiResult<JsonResponse<Connection>> {
        let connected = access.0.connect(body.value.agent_ids).await?;
        Ok(JsonResponse::new(&Connection {
            url: realtime_url(&public_url.base(request)),
            anon_key: connected.credential,
            expires_at: format_date(connected.expires_at),
            channels: connected.agents.iter().map(|agent| ChannelBody::from(&**agent)).collect(),
            heartbeat_interval: HEARTBEAT_MS,
        }))
    }

    /// Marks agents as online and renews the claims of the worker. If none of the agents exists, the response is 404.
    ///
    /// With `claims`, the request renews these claims. With `instance`, the request renews the claims of this instance.
    /// Without both, the request renews the claims without an instance that were made with the caller's key or in the
    /// caller's session. Renewing claims needs `api:write`, at least the role `editor`, and a plan that has not lapsed.
    /// A caller without these rights renews no claims, and a request of such a caller with `claims` or `instance` gets
    /// 403.
    ///
    /// Clients send the next heartbeat after `next_heartbeat_ms` milliseconds. An agent that misses three heartbeats is
    /// offline. A claim that is not renewed ends after its `lease_seconds`. The task then waits for another attempt, or
    /// fails after the last attempt.
    #[oai(path = "/agents/heartbeat", method = "post", operation_id = "send_heartbeat")]
    async fn send_heartbeat(
        &self,
        access: AgentListen,
        body: Body<HeartbeatBody>,
    ) -> ApiResult<JsonResponse<Heartbeat>> {
        let HeartbeatBody { agent_ids, claims, instance } = body.value;
        let claims = claims.map(|claims| claims.into_iter().map(|named| (named.task_id, named.claim)).collect());
        let heartbeat = access.0.heartbeat(listener::Heartbeat { agent_ids, claims, instance }).await?;
        let pending = heartbeat.updated.iter().map(|(agent, pending)| (agent.clone(), *pending as i64));
        Ok(JsonResponse::new(&Heartbeat {
            pending: pending.collect::<Fields>().into(),
            updated: heartbeat.updated.iter().map(|(agent, _)| agent.to_string()).collect(),
            unknown: heartbeat.unknown,
            next_heartbeat_ms: HEARTBEAT_MS,
            renewed: heartbeat.renewed as u64,
        }))
    }

    /// Lists an agent's feed: the notifications of its channel, for programs without a WebSocket.
    ///
    /// Without a position the feed begins after the position that the agent has acknowledged. A stream ends when the
    /// agent is deleted.
    #[oai(path = "/agents/:agent_id/events", method = "get", operation_id = "list_agent_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn list_agent_events(
        &self,
        access: AgentListen,
        agent_id: Path<String>,
        /// The position after which the page begins.
        after: Query<Option<Whole>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The maximum time to wait for a notification if there is none yet, in milliseconds; the default is 0. The
        /// server waits at most 30,000 milliseconds.
        wait_ms: Query<Option<Whole>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        #[oai(name = "Accept")] accept: Header<Option<String>>,
        #[oai(name = "Last-Event-ID")] last_event_id: Header<Option<String>>,
        live: LiveContext,
    ) -> ApiResult<LogResponse<FeedPage>> {
        let listener = access.0;
        let agent = listener.agent(&agent_id).await?;
        let list = format!("agents/{}/events", agent.id);
        let requested = match is_stream(accept.as_deref()) {
            true => Start::position(last_event_id.as_deref())?,
            false => read_cursor(&list, cursor.as_deref())?,
        };
        let after = match requested.or(after.0.map(u64::from)) {
            Some(after) => listener.reached(after).await?,
            None => listener.cursor(&agent).await?,
        };
        let mut feed = listener.feed(&agent, after);
        if is_stream(accept.as_deref()) {
            let permit = live.streams.enter(&listener.record().id)?;
            return Ok(stream_of_feed(&listener, feed, permit, live));
        }
        let limit = EventLimit { events: limit(rows)?, bytes: live.page_bytes };
        let wait = wait_time(wait_ms.0);
        let page_now = async { listener.feed(&agent, after).next(limit).await };
        let page = live.wait(listener.grant(), wait, feed.wait(limit, wait), page_now).await?;
        let bytes = page.items.iter().map(Item::size_bytes).sum();
        Ok(LogResponse::Page(JsonResponse::large(bytes, || FeedPage {
            data: page.items.into_iter().filter_map(delivered).collect(),
            next_cursor: page.more.then(|| cursor_at(&list, page.position)),
            position: page.position,
        })))
    }
}

fn delivered(item: Item) -> Option<DeliveryBody> {
    let Item::Delivery(delivery) = item else { return None };
    Some(DeliveryBody::from(&delivery))
}

/// Returns the URL for WebSocket clients.
fn realtime_url(base: &str) -> String {
    let base = match base.strip_prefix("http") {
        Some(rest) => format!("ws{rest}"),
        None => base.to_owned(),
    };
    format!("{base}{}", crate::http::routes::REALTIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_urls_use_wss_for_https_and_ws_for_http() {
        assert_eq!(realtime_url("https://example.org"), "wss://example.org/realtime/v1");
        assert_eq!(realtime_url("http://localhost:8080"), "ws://localhost:8080/realtime/v1");
    }
}
