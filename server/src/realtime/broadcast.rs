//! A message on a channel, serialized once for all sockets that receive it.

use std::sync::Arc;

use foldwork_engine::Listener;
use foldwork_engine::model::feed::Delivery;
use serde::Serialize;
use serde_json::value::RawValue;

use super::frame::BROADCAST;
use crate::wire::delivery;

/// A message for the sockets of a channel.
#[derive(Debug)]
pub enum Broadcast {
    /// An event of the protocol, with its payload as JSON.
    Json { event: &'static str, payload: String },
    /// Bytes from a client. `event` is the name that the client chose, and `meta` is JSON that identifies the sender.
    Bytes { event: String, meta: String, data: Vec<u8> },
}

/// The prefix of event names that are reserved for the server.
const OWN_EVENTS: &str = "task.";

/// The client that sends a message to the other clients of a channel.
pub struct BroadcastSender {
    /// The actor of the client, written as in events: `key:` or `user:` with an id.
    pub actor: Arc<str>,
    /// The id of the message.
    pub id: String,
}

impl BroadcastSender {
    pub fn of(listener: &Listener) -> BroadcastSender {
        BroadcastSender { actor: listener.actor(), id: listener.new_id() }
    }

    fn meta(&self) -> BroadcastMeta<'_> {
        BroadcastMeta { id: &self.id, replayed: false, sender: Some(&self.actor) }
    }
}

/// Returns whether only the server may use this event name. Ignores white space around the name. Ignores case, because
/// clients ignore case when they compare event names. Clients have different rules for case, so the name is converted
/// to upper case and then to lower case to match all rules.
pub fn is_reserved(event: &str) -> bool {
    event.trim().to_uppercase().to_lowercase().starts_with(OWN_EVENTS)
}

#[derive(Serialize)]
struct Content<'a, P: Serialize> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: &'a str,
    payload: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<BroadcastMeta<'a>>,
}

#[derive(Serialize)]
struct BroadcastMeta<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// The client that sent the message. Absent in messages from the server. The server sets this field, so a client
    /// cannot omit or forge its identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
}

impl Broadcast {
    /// Creates the message that delivers a notification to an agent.
    pub fn delivery(delivery: &Delivery, replayed: bool) -> Arc<Broadcast> {
        let meta = Some(BroadcastMeta { id: delivery.id(), replayed, sender: None });
        Broadcast::of_json(delivery.news.name(), &delivery::payload(delivery), meta)
    }

    /// Creates the message with a client's JSON.
    pub fn of_client(sender: &BroadcastSender, event: &str, payload: &RawValue) -> Arc<Broadcast> {
        Broadcast::of_json(event, payload, Some(sender.meta()))
    }

    /// Creates the message with a client's bytes.
    pub fn of_client_bytes(sender: &BroadcastSender, event: String, data: Vec<u8>) -> Arc<Broadcast> {
        let meta = serde_json::to_string(&sender.meta()).unwrap_or_default();
        Arc::new(Broadcast::Bytes { event, meta, data })
    }

    fn of_json(event: &str, payload: &(impl Serialize + ?Sized), meta: Option<BroadcastMeta<'_>>) -> Arc<Broadcast> {
        let content = Content { kind: BROADCAST, event, payload, meta };
        // Serializing strings and JSON values cannot fail.
        let payload = serde_json::to_string(&content).unwrap_or_default();
        Arc::new(Broadcast::Json { event: BROADCAST, payload })
    }

    pub fn size_bytes(&self) -> usize {
        match self {
            Broadcast::Json { payload, .. } => payload.len(),
            Broadcast::Bytes { data, .. } => data.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_of_the_server_are_reserved_regardless_of_case_and_outer_spaces() {
        for event in
            ["task.created", "TASK.Created", " task.asked", "tas\u{212a}.created", "ta\u{17f}k.created", "task."]
        {
            assert!(is_reserved(event), "{event}");
        }
        for event in ["note", "tasks", "my.task.created", "*", "", "task"] {
            assert!(!is_reserved(event), "{event}");
        }
    }
}
