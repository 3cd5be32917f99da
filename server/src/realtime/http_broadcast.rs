//! Sends messages to channels over HTTP, for clients without a socket.

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::duplicate_names::repeated_name;
use foldwork_engine::{Error, Listener};
use poem::http::StatusCode;
use poem::web::Path;
use poem::{Body, Request, Response, handler};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Realtime;
use super::broadcast::{Broadcast, BroadcastSender, is_reserved};
use crate::http::bodies;
use crate::http::error::ApiError;

/// The maximum number of messages in one request.
const MAX_MESSAGES: usize = 100;

#[derive(Deserialize)]
struct Messages {
    messages: Vec<ChannelMessage>,
}

#[derive(Deserialize)]
struct ChannelMessage {
    topic: String,
    event: String,
    payload: Box<RawValue>,
}

/// `POST /api/broadcast`: sends several messages, possibly to different channels.
#[handler]
pub async fn broadcast_several(
    request: &Request,
    body: Body,
    realtime: poem::web::Data<&Realtime>,
) -> poem::Result<Response> {
    let listener = realtime.listener(request).await?;
    let text = bodies::read(request, body).await?;
    let Messages { messages } = read(&text)?;
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        let message = format!("expected 1 to {MAX_MESSAGES} messages, found {}", messages.len());
        return Err(ApiError::invalid_body(&message).into());
    }
    // Checks all messages before the first message is sent, because after an error the client sends all messages again.
    let mut broadcasts = Vec::with_capacity(messages.len());
    for ChannelMessage { topic, event, payload } in &messages {
        reach(&listener, topic).await?;
        check_event(event)?;
        let broadcast = Broadcast::of_client(&BroadcastSender::of(&listener), event, payload);
        check_size(&broadcast)?;
        broadcasts.push((topic, broadcast));
    }
    for (topic, broadcast) in broadcasts {
        send_broadcast(&realtime, &listener, topic, &broadcast);
    }
    Ok(accepted())
}

/// `POST /api/broadcast/{topic}/events/{event}`: sends one message with the body as its payload.
#[handler]
pub async fn broadcast_one(
    request: &Request,
    Path((topic, event)): Path<(String, String)>,
    body: Body,
    realtime: poem::web::Data<&Realtime>,
) -> poem::Result<Response> {
    let listener = realtime.listener(request).await?;
    reach(&listener, &topic).await?;
    check_event(&event)?;
    let sender = BroadcastSender::of(&listener);
    let data = bodies::read(request, body).await?;
    let is_bytes = request.content_type().is_some_and(|kind| kind.starts_with("application/octet-stream"));
    let broadcast = if is_bytes {
        Broadcast::of_client_bytes(&sender, event, data)
    } else {
        let payload: &[u8] = if data.is_empty() { b"{}" } else { &data };
        Broadcast::of_client(&sender, &event, read(payload)?)
    };
    check_size(&broadcast)?;
    send_broadcast(&realtime, &listener, &topic, &broadcast);
    Ok(accepted())
}

/// Rejects event names that are reserved for the server.
fn check_event(event: &str) -> poem::Result<()> {
    if !is_reserved(event) {
        return Ok(());
    }
    let message = "event names that begin with `task.` are reserved for the server";
    Err(ApiError::new(StatusCode::FORBIDDEN, ErrorCode::ReservedEvent, message).into())
}

fn agent_of(topic: &str) -> Option<&str> {
    topic.strip_prefix("realtime:").unwrap_or(topic).strip_prefix("agent:")
}

/// Returns an error if the caller may not send messages to the channel.
async fn reach(listener: &Listener, topic: &str) -> poem::Result<()> {
    let refused = || {
        let message = "expected the channel `agent:ID` of an agent that the caller may access";
        ApiError::new(StatusCode::FORBIDDEN, ErrorCode::UnauthorizedChannel, message)
    };
    match listener.agent(agent_of(topic).ok_or_else(refused)?).await {
        Ok(_) => Ok(()),
        Err(Error::NotFound { .. }) => Err(refused().into()),
        Err(error) => Err(ApiError::from(error).into()),
    }
}

/// Rejects a message of more than 257 KiB: 256 KiB of payload, and 1 KiB for the other fields of the message. If the
/// payload is bytes, only the payload counts, so it may have up to 257 KiB.
fn check_size(broadcast: &Broadcast) -> poem::Result<()> {
    if broadcast.size_bytes() <= foldwork_engine::model::feed::MAX_BYTES + 1_024 {
        return Ok(());
    }
    let message = "a message may be at most 256 KiB long";
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::PayloadTooLarge, message).into())
}

fn send_broadcast(realtime: &Realtime, listener: &Listener, topic: &str, broadcast: &std::sync::Arc<Broadcast>) {
    if let (Some(agent), Some(hub)) = (agent_of(topic), realtime.hubs.find(&listener.record().id)) {
        hub.send_broadcast(agent, broadcast, None);
    }
}

/// Parses a body. Fails if an object in the body contains a name twice.
fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> poem::Result<T> {
    if let Some(repeated) = repeated_name(body) {
        return Err(ApiError::faulty_body(vec![repeated]).into());
    }
    Ok(serde_json::from_slice(body).map_err(|error| ApiError::unparsed_body(&error))?)
}

fn accepted() -> Response {
    Response::builder().status(StatusCode::ACCEPTED).finish()
}
