//! The payloads of clients' messages. Most fields are optional, because clients send different fields and types.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::replay::Replay;

/// The payload of a join.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Join {
    #[serde(deserialize_with = "or_default")]
    pub config: JoinConfig,
    pub access_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct JoinConfig {
    #[serde(deserialize_with = "or_default")]
    pub broadcast: BroadcastConfig,
    pub presence: Option<PresenceConfig>,
    #[serde(deserialize_with = "or_default")]
    pub postgres_changes: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct BroadcastConfig {
    /// Whether the server acknowledges the client's broadcasts. If absent, broadcasts are acknowledged.
    #[serde(deserialize_with = "flag")]
    pub ack: Option<bool>,
    #[serde(rename = "self", deserialize_with = "flag")]
    pub to_self: Option<bool>,
    pub replay: Option<Replay>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PresenceConfig {
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    #[serde(deserialize_with = "flag")]
    pub enabled: Option<bool>,
}

impl JoinConfig {
    /// Returns whether the client receives presence messages. A presence configuration without `enabled`, as older
    /// clients send it, enables the messages.
    pub fn sees_presence(&self) -> bool {
        self.presence.as_ref().is_some_and(|presence| presence.enabled.unwrap_or(true))
    }
}

/// Reads `null` as the default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a boolean, which some clients send as a string. Reads any other value as `None`.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Bool(flag) => Some(flag),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// The payload of a message that replaces the token of a socket.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NewToken {
    pub access_token: Option<String>,
}

/// A message from one client to the other clients of a channel.
#[derive(Debug, Deserialize)]
pub struct UserBroadcast<'a> {
    pub event: String,
    #[serde(borrow, default)]
    pub payload: Option<&'a RawValue>,
}

/// The position up to which an agent has processed its feed.
#[derive(Debug, Deserialize)]
pub struct Acknowledgement {
    pub position: u64,
}

/// A client's presence message.
#[derive(Debug, Deserialize)]
pub struct PresenceMessage {
    pub event: String,
    #[serde(default)]
    pub payload: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(text: &str) -> Join {
        serde_json::from_str(text).expect("a join")
    }

    #[test]
    fn join_payloads_may_have_flags_as_strings_and_null_or_missing_fields() {
        let parsed = join(
            r#"{"config":{"broadcast":{"ack":"true","self":false},"presence":{"key":"","enabled":"false"},
            "postgres_changes":[],"private":true},"access_token":"t","version":"x"}"#,
        );
        assert_eq!((parsed.config.broadcast.ack, parsed.config.broadcast.to_self), (Some(true), Some(false)));
        assert_eq!((parsed.config.sees_presence(), parsed.access_token.as_deref()), (false, Some("t")));
        for text in ["{}", r#"{"config":null}"#, r#"{"config":{"broadcast":null,"presence":null}}"#] {
            let parsed = join(text);
            assert_eq!((parsed.config.broadcast.ack, parsed.config.sees_presence()), (None, false), "{text}");
        }
        let parsed = join(r#"{"config":{"broadcast":{"replay":{"since":5,"limit":2}}}}"#);
        assert!(parsed.config.broadcast.replay.is_some());
    }
}
