//! What is told on a channel, written once for all who are told.

use std::sync::Arc;

use foldwork_engine::Listener;
use foldwork_engine::model::feed::Delivery;
use serde::Serialize;
use serde_json::value::RawValue;

use super::frame::BROADCAST;

/// Something that is told to the sockets of a channel.
#[derive(Debug)]
pub enum Broadcast {
    /// An event of the protocol, with its payload as JSON.
    Json { event: &'static str, payload: String },
    /// A client's bytes, under the event that the client chose, with the mark that they are a client's.
    Bytes { event: String, meta: String, data: Vec<u8> },
}

/// What the names of the server's own events begin with. No client may use such a name.
const OWN_EVENTS: &str = "task.";

/// Who says something to the others on a channel.
pub struct Sender {
    /// As in events: `key:` or `user:` with an id.
    pub actor: Arc<str>,
    /// The id of what is said.
    pub id: String,
}

impl Sender {
    pub fn of(listener: &Listener) -> Sender {
        Sender { actor: listener.actor(), id: listener.new_id() }
    }

    fn meta(&self) -> Meta<'_> {
        Meta { id: &self.id, replayed: false, sender: Some(&self.actor) }
    }
}

/// Whether only the server may say this. Clients compare names of events without regard to case, each in its own way, so
/// letters that any of these ways takes for one another count as equal.
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
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// The client that says it. The server's own deliveries have none, and no client can leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
}

impl Broadcast {
    /// What an agent is told.
    pub fn delivery(delivery: &Delivery, replayed: bool) -> Arc<Broadcast> {
        let meta = Some(Meta { id: delivery.id(), replayed, sender: None });
        Broadcast::of_json(delivery.news.name(), &delivery.payload(), meta)
    }

    /// What a client says to others.
    pub fn of_client(sender: &Sender, event: &str, payload: &RawValue) -> Arc<Broadcast> {
        Broadcast::of_json(event, payload, Some(sender.meta()))
    }

    /// Bytes that a client sends to others.
    pub fn of_client_bytes(sender: &Sender, event: String, data: Vec<u8>) -> Arc<Broadcast> {
        let meta = serde_json::to_string(&sender.meta()).unwrap_or_default();
        Arc::new(Broadcast::Bytes { event, meta, data })
    }

    fn of_json(event: &str, payload: &(impl Serialize + ?Sized), meta: Option<Meta<'_>>) -> Arc<Broadcast> {
        let content = Content { kind: BROADCAST, event, payload, meta };
        // Texts and values of JSON: all of it can be written.
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
    fn no_spelling_of_the_servers_events_is_left_to_clients() {
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
