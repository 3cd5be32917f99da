//! What clients ask for in the payloads of their messages. Every field may be missing, and clients differ in types.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::replay::Replay;

/// What comes with a join.
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
    /// Whether what the client says is answered; a client that says nothing of it likes to know.
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
    /// Whether the client wants to know who is present: older ones that speak of it at all do.
    pub fn sees_presence(&self) -> bool {
        self.presence.as_ref().is_some_and(|presence| presence.enabled.unwrap_or(true))
    }
}

/// `null` is as good as nothing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A flag, which some clients write as a text.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Bool(flag) => Some(flag),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// What comes with a new token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NewToken {
    pub access_token: Option<String>,
}

/// What one client says to the others.
#[derive(Debug, Deserialize)]
pub struct UserBroadcast<'a> {
    pub event: String,
    #[serde(borrow, default)]
    pub payload: Option<&'a RawValue>,
}

/// How far an agent has taken in its feed.
#[derive(Debug, Deserialize)]
pub struct Acknowledged {
    pub position: u64,
}

/// What a client says of itself.
#[derive(Debug, Deserialize)]
pub struct Presence {
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
    fn clients_ask_in_their_own_ways() {
        let asked = join(
            r#"{"config":{"broadcast":{"ack":"true","self":false},"presence":{"key":"","enabled":"false"},
            "postgres_changes":[],"private":true},"access_token":"t","version":"x"}"#,
        );
        assert_eq!((asked.config.broadcast.ack, asked.config.broadcast.to_self), (Some(true), Some(false)));
        assert_eq!((asked.config.sees_presence(), asked.access_token.as_deref()), (false, Some("t")));
        for text in ["{}", r#"{"config":null}"#, r#"{"config":{"broadcast":null,"presence":null}}"#] {
            let asked = join(text);
            assert_eq!((asked.config.broadcast.ack, asked.config.sees_presence()), (None, false), "{text}");
        }
        let asked = join(r#"{"config":{"broadcast":{"replay":{"since":5,"limit":2}}}}"#);
        assert!(asked.config.broadcast.replay.is_some());
    }
}
