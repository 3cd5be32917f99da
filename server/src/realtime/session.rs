//! The state of a socket, and the handling of its messages.

use std::collections::HashMap;
use std::sync::Arc;

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::feed::MAX_BYTES;
use foldwork_engine::{Engine, Error, Grant, Listener};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use super::allowance::Allowance;
use super::broadcast::{Broadcast, BroadcastSender, is_reserved};
use super::frame::{BROADCAST, BroadcastBody, ClientMessage, MessagePayload, ProtocolVersion};
use super::hub::{ChannelMember, ChannelMembership, HubGuard};
use super::line::ChannelLine;
use super::payload::{Acknowledgement, Join, JoinConfig, NewToken, PresenceMessage, UserBroadcast};
use super::queue::Queue;
use super::replay::JoiningMember;
use crate::config::SocketLimits;

/// The maximum length in bytes of the key of a client's presence data. The server keeps the key for as long as the
/// client is on the channel.
const MAX_PRESENCE_KEY: usize = 255;
/// The name of the event that acknowledges a log position.
const ACKNOWLEDGE: &str = "ack";

/// The state of a socket.
pub struct SocketSession {
    pub grant: Grant,
    engine: Arc<Engine>,
    listener: Listener,
    /// The token that authenticated `listener`.
    token: String,
    hub: HubGuard,
    queue: Arc<Queue>,
    version: ProtocolVersion,
    channels: HashMap<Arc<str>, JoinedChannel>,
    max_channels: usize,
    joins: Allowance,
    messages: Allowance,
}

/// A channel that the socket has joined.
struct JoinedChannel {
    line: Arc<ChannelLine>,
    agent: Arc<Aggregate>,
    config: JoinConfig,
    membership: ChannelMembership,
    /// The handle that aborts the replay of missed events.
    missed: AbortHandle,
    presence_key: String,
}

impl Drop for JoinedChannel {
    fn drop(&mut self) {
        self.missed.abort();
    }
}

/// The result of authenticating a socket: the state for a new session.
pub struct AuthenticatedSocket {
    pub engine: Arc<Engine>,
    pub listener: Listener,
    pub token: String,
    pub hub: HubGuard,
}

impl SocketSession {
    pub fn new(
        admitted: AuthenticatedSocket,
        queue: Arc<Queue>,
        version: ProtocolVersion,
        limits: &SocketLimits,
    ) -> SocketSession {
        let AuthenticatedSocket { engine, listener, token, hub } = admitted;
        let SocketLimits { channels, joins_per_second, messages_per_second, .. } = *limits;
        SocketSession {
            grant: listener.grant(),
            engine,
            listener,
            token,
            hub,
            queue,
            version,
            channels: HashMap::new(),
            max_channels: channels,
            // A reconnecting client joins all of its channels in one burst.
            joins: Allowance::new(joins_per_second, channels),
            messages: Allowance::new(messages_per_second, messages_per_second as usize),
        }
    }

    /// Handles one message. If the client exceeds its message limit, messages are handled with a delay.
    pub async fn handle(&mut self, inbound: Option<ClientMessage>) {
        self.messages.wait().await;
        let Some(inbound) = inbound else { return };
        let reference = inbound.reference.as_deref();
        if inbound.topic == "phoenix" {
            if inbound.event == "heartbeat" {
                self.line(&inbound).answer_heartbeat(reference);
            }
            return;
        }
        if inbound.event == "phx_join" {
            return self.join(inbound).await;
        }
        let Some(channel) = self.channels.get(&*inbound.topic) else {
            let line = self.line(&inbound);
            return match &*inbound.event {
                "phx_leave" => line.ok(reference),
                _ => line.error(reference, "unmatched topic"),
            };
        };
        if inbound.join_ref.is_some() && inbound.join_ref.as_deref() != channel.line.join_ref.as_deref() {
            // Ignores a message that the client sent before it rejoined the channel.
            return;
        }
        match &*inbound.event {
            "phx_leave" => {
                channel.line.ok(reference);
                channel.line.close();
                self.channels.remove(&*inbound.topic);
            }
            "access_token" => self.renew(inbound).await,
            "presence" => self.presence(channel, &inbound),
            BROADCAST => self.broadcast(channel, &inbound).await,
            ACKNOWLEDGE => self.acknowledge(channel, reference, json_of(&inbound)).await,
            _ => channel.line.error(reference, "unknown event"),
        }
    }

    /// Closes all channels and sends the reason to the client.
    pub fn end_all(&mut self, reason: &str) {
        for (_, channel) in self.channels.drain() {
            channel.line.end(reason);
        }
    }

    fn line(&self, inbound: &ClientMessage) -> ChannelLine {
        let join_ref = inbound.join_ref.as_deref().map(Arc::from);
        ChannelLine { queue: self.queue.clone(), version: self.version, topic: inbound.topic.as_str().into(), join_ref }
    }

    async fn join(&mut self, inbound: ClientMessage) {
        // With version one of the serializer, clients send only a message reference and no join reference.
        let join_ref = inbound.join_ref.clone().or_else(|| inbound.reference.clone());
        let line = Arc::new(ChannelLine { join_ref: join_ref.as_deref().map(Arc::from), ..self.line(&inbound) });
        let reference = inbound.reference.as_deref();
        let (agent, config) = match self.admit(&inbound).await {
            Ok(admitted) => admitted,
            Err(reason) => return line.error(reference, &reason),
        };
        if let Err(reason) = self.check_replay(&config).await {
            return line.error(reference, &reason);
        }
        if let Some(former) = self.channels.remove(&line.topic) {
            former.line.close();
        }
        line.reply(reference, "ok", &json!({"postgres_changes": []}));
        let sees_presence = config.sees_presence();
        let hub = self.hub.hub.clone();
        let membership = hub.join(agent.id.text(), ChannelMember::new(line.clone(), sees_presence));
        if sees_presence {
            line.presence_state(&hub.present(agent.id.as_str()));
        }
        let missed = JoiningMember {
            listener: self.listener.clone(),
            hub,
            line: line.clone(),
            agent: agent.clone(),
            member: membership.id,
            joined_at: membership.joined_at,
            replay: config.broadcast.replay,
        };
        let missed = tokio::spawn(missed.deliver()).abort_handle();
        let chosen = config.presence.as_ref().map(|presence| presence.key.clone()).filter(|key| !key.is_empty());
        let presence_key = chosen.unwrap_or_else(|| self.listener.new_id());
        let topic = line.topic.clone();
        self.channels.insert(topic, JoinedChannel { line, agent, config, membership, missed, presence_key });
    }

    /// Returns the agent and the configuration of the channel to join, or the reason why the client cannot join. If the
    /// message contains a token, replaces the socket's token.
    async fn admit(&mut self, inbound: &ClientMessage) -> Result<(Arc<Aggregate>, JoinConfig), String> {
        if self.channels.len() >= self.max_channels && !self.channels.contains_key(&*inbound.topic) {
            return Err(format!("ChannelRateLimitReached: a socket may join at most {} channels", self.max_channels));
        }
        if !self.joins.take() {
            let per_second = self.joins.per_second();
            return Err(format!(
                "ClientJoinRateLimitReached: a socket may join at most {per_second} channels per second on average"
            ));
        }
        let join: Join = json_of(inbound).ok_or("InvalidPayload: the payload of a join must be an object")?;
        if !join.config.postgres_changes.is_empty() {
            return Err("PostgresChangesUnsupported: the server requires empty postgres_changes".into());
        }
        if join.config.presence.as_ref().is_some_and(|presence| presence.key.len() > MAX_PRESENCE_KEY) {
            return Err(format!("InvalidPayload: the presence key may have at most {MAX_PRESENCE_KEY} bytes"));
        }
        let channel = inbound.topic.strip_prefix("realtime:").unwrap_or(&inbound.topic);
        let unauthorized =
            || format!("Unauthorized: You do not have permissions to read from this Channel topic: {channel}");
        let id = channel.strip_prefix("agent:").ok_or_else(unauthorized)?;
        if let Some(token) = join.access_token {
            self.replace_token(token).await.map_err(|_| unauthorized())?;
        }
        match self.listener.agent(id).await {
            Ok(agent) => Ok((agent, join.config)),
            Err(Error::NotFound { .. }) => Err(unauthorized()),
            Err(error) => Err(unavailable(&self.listener, &error)),
        }
    }

    /// Returns an error with the reason if events cannot be sent again from the position that a client requests.
    async fn check_replay(&self, config: &JoinConfig) -> Result<(), String> {
        let Some(after) = config.broadcast.replay.and_then(|replay| replay.after) else { return Ok(()) };
        match self.listener.reached(after).await {
            Ok(_) => Ok(()),
            Err(error @ Error::Invalid { .. }) => Err(format!("PositionBeyondHead: {error}")),
            Err(error) => Err(unavailable(&self.listener, &error)),
        }
    }

    /// Replaces the token, and closes the channels to which the new token has no access. Returns an error and changes
    /// nothing if the new token is invalid, belongs to another workspace, or cannot be checked.
    async fn replace_token(&mut self, token: String) -> Result<(), Error> {
        if token == self.token {
            return Ok(());
        }
        let listener = self.engine.listen(&token).await?;
        if listener.record().id != self.listener.record().id {
            return Err(Error::Unauthenticated("the token belongs to another workspace"));
        }
        // The new token might lack access to some of the joined channels.
        let mut out_of_reach = Vec::new();
        for (topic, channel) in &self.channels {
            match listener.agent(channel.agent.id.as_str()).await {
                Ok(_) => {}
                Err(Error::NotFound { .. }) => out_of_reach.push(topic.clone()),
                Err(error) => return Err(error),
            }
        }
        self.grant = listener.grant();
        self.listener = listener;
        self.token = token;
        for channel in out_of_reach.iter().filter_map(|topic| self.channels.remove(topic)) {
            channel.line.end("the access token has no access to this channel");
        }
        Ok(())
    }

    /// Handles a message with a new token. The message gets no reply. If the token is rejected or cannot be checked,
    /// the channel is closed.
    async fn renew(&mut self, inbound: ClientMessage) {
        let NewToken { access_token } = json_of(&inbound).unwrap_or_default();
        let Some(token) = access_token else { return };
        if let Err(error) = self.replace_token(token).await
            && let Some(channel) = self.channels.remove(&*inbound.topic)
        {
            channel.line.end(&format!("the access token is rejected: {error}"));
        }
    }

    fn presence(&self, channel: &JoinedChannel, inbound: &ClientMessage) {
        let (line, reference) = (&channel.line, inbound.reference.as_deref());
        let hub = &self.hub.hub;
        match json_of::<PresenceMessage>(inbound) {
            Some(PresenceMessage { event, payload }) if event.eq_ignore_ascii_case("track") => {
                match hub.track(&channel.membership, &channel.presence_key, payload) {
                    true => line.ok(reference),
                    false => line.error(reference, "PresenceTooLarge: the channel has no capacity for the data"),
                }
            }
            Some(PresenceMessage { event, .. }) if event.eq_ignore_ascii_case("untrack") => {
                hub.untrack(&channel.membership);
                line.ok(reference);
            }
            _ => line.error(reference, "InvalidPayload: the event of a presence message must be track or untrack"),
        }
    }

    async fn broadcast(&self, channel: &JoinedChannel, inbound: &ClientMessage) {
        let (line, reference) = (&channel.line, inbound.reference.as_deref());
        let invalid = || line.error(reference, "InvalidPayload: a broadcast must be an object with an event");
        let refused =
            || line.error(reference, "ReservedEvent: event names that begin with `task.` are reserved for the server");
        let sender = BroadcastSender::of(&self.listener);
        let (message, bytes) = match &inbound.payload {
            MessagePayload::Json(json) => {
                let Some(user_broadcast) = object_of::<UserBroadcast<'_>>(json) else { return invalid() };
                let payload = user_broadcast.payload.unwrap_or(RawValue::NULL);
                if user_broadcast.event == ACKNOWLEDGE {
                    return self.acknowledge(channel, reference, object_of(payload)).await;
                }
                if is_reserved(&user_broadcast.event) {
                    return refused();
                }
                let bytes = user_broadcast.event.len() + payload.get().len();
                (Broadcast::of_client(&sender, &user_broadcast.event, payload), bytes)
            }
            MessagePayload::User { event, body: BroadcastBody::Json(json) } if event == ACKNOWLEDGE => {
                self.queue.peer_sent_bytes();
                return self.acknowledge(channel, reference, object_of(json)).await;
            }
            MessagePayload::User { event, .. } if is_reserved(event) => return refused(),
            MessagePayload::User { event, body: BroadcastBody::Json(json) } => {
                self.queue.peer_sent_bytes();
                (Broadcast::of_client(&sender, event, json), json.get().len())
            }
            MessagePayload::User { event, body: BroadcastBody::Bytes(data) } => {
                self.queue.peer_sent_bytes();
                (Broadcast::of_client_bytes(&sender, event.clone(), data.clone()), data.len())
            }
            MessagePayload::Bytes => return invalid(),
        };
        if bytes > MAX_BYTES {
            return line.error(reference, "PayloadTooLarge: a message may be at most 256 KiB long");
        }
        let config = &channel.config.broadcast;
        let except = (config.to_self != Some(true)).then_some(channel.membership.id);
        self.hub.hub.send_broadcast(&channel.membership.agent, &message, except);
        // Acknowledges by default, because a client that does not set `ack` may wait for an acknowledgement.
        if config.ack != Some(false) {
            line.ok(reference);
        }
    }

    async fn acknowledge(&self, channel: &JoinedChannel, reference: Option<&str>, payload: Option<Acknowledgement>) {
        let Some(Acknowledgement { position }) = payload else {
            return channel.line.error(reference, "InvalidPayload: an acknowledgement must have a position");
        };
        match self.listener.acknowledge(&channel.agent, position).await {
            Ok(()) => channel.line.ok(reference),
            Err(error @ Error::Forbidden { .. }) => channel.line.error(reference, &format!("Unauthorized: {error}")),
            Err(error @ Error::Invalid { .. }) => channel.line.error(reference, &format!("InvalidPayload: {error}")),
            Err(error) => {
                let (workspace, agent) = (&self.listener.record().id, &channel.agent.id);
                tracing::warn!(%error, %workspace, %agent, "an acknowledgement cannot be stored");
                channel.line.error(reference, "Unavailable: try again");
            }
        }
    }
}

/// Logs the error that prevented a client from joining a channel, and returns the error message for the client.
fn unavailable(listener: &Listener, error: &Error) -> String {
    tracing::warn!(%error, workspace = %listener.record().id, "failed to join a channel");
    "Unavailable: try again".into()
}

/// Parses the payload of a message. Returns `None` if the payload is not JSON or does not match `T`.
fn json_of<T: DeserializeOwned>(inbound: &ClientMessage) -> Option<T> {
    match &inbound.payload {
        MessagePayload::Json(json) => object_of(json),
        _ => None,
    }
}

/// Parses a JSON object. Rejects arrays, because serde would read an array's items as the fields of a struct.
fn object_of<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Option<T> {
    if !json.get().starts_with('{') {
        return None;
    }
    serde_json::from_str(json.get()).ok()
}
