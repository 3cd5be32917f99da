//! The JSON of an API key in responses.

use foldwork_engine::model::access::KeyRecord;
use foldwork_engine::model::date::format_date;
use poem_openapi::Object;
use serde::Serialize;

use super::closed_sets::{OneOf, Scopes};

/// An API key without its secret.
#[derive(Object, Serialize)]
#[oai(rename = "Key")]
pub struct KeyBody {
    pub id: String,
    pub name: String,
    pub scopes: Vec<OneOf<Scopes>>,
    /// The part of the key that may be shown, such as `sk_ab12…9f`.
    pub display: String,
    pub created_at: String,
    pub last_used_at: Option<String>,
    pub expires_at: Option<String>,
    /// The id of the key that this key depends on: the key that created this key, or the successor of that key. If no
    /// key created this key, `session:` with the id of the session, or `user:` with the id of the user.
    pub derived_from: Option<String>,
    /// Whether the key is valid for every workspace of its user. Other keys are valid only for the workspace in which
    /// they were created.
    pub all_workspaces: bool,
    /// The agents to which the key is bound, or null. A key that is bound to agents can read, and can otherwise only
    /// work on the tasks of these agents, report their presence, and revoke itself.
    pub agent_ids: Option<Vec<String>>,
}

impl From<&KeyRecord> for KeyBody {
    fn from(key: &KeyRecord) -> KeyBody {
        KeyBody {
            id: key.id.to_string(),
            name: key.name.clone(),
            scopes: key.scopes.iter().map(|scope| scope.name().into()).collect(),
            display: key.display.clone(),
            created_at: format_date(key.created_at),
            last_used_at: key.last_used_at.map(format_date),
            expires_at: key.expires_at.map(format_date),
            derived_from: key.derived_from.as_deref().map(str::to_owned),
            all_workspaces: key.opens_all,
            agent_ids: key.agents.as_ref().map(|agents| agents.iter().map(ToString::to_string).collect()),
        }
    }
}
