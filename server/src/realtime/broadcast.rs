//! What is told on a channel, written once for all who are told.

use std::sync::Arc;

use foldwork_engine::model::feed::Delivery;
use serde::Serialize;
use serde_json::value::RawValue;

use super::frame::BROADCAST;

/// Something that is told to the sockets of a channel.
#[derive(Debug)]
pub enum Broadcast {
    /// An event of the protocol, with its payload as JSON.
    Json { event: &'static str, payload: String },
    /// A user's bytes, under the event that the user chose.
    Bytes { event: String, data: Vec<u8> },
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
}

impl Broadcast {
    /// What an agent is told.
    pub fn delivery(delivery: &Delivery, replayed: bool) -> Arc<Broadcast> {
        let meta = Some(Meta { id: delivery.id(), replayed });
        Broadcast::of_json(delivery.news.name(), &delivery.payload(), meta)
    }

    /// What a client says to others.
    pub fn of_client(event: &str, payload: &RawValue) -> Arc<Broadcast> {
        Broadcast::of_json(event, payload, None)
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
