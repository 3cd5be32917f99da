//! A key, as responses show it.

use foldwork_engine::model::access::KeyRecord;
use foldwork_engine::model::date::format_date;
use poem_openapi::Object;
use serde::Serialize;

use super::closed_sets::{Scopes, Word};

/// A key, without its secret.
#[derive(Object, Serialize)]
#[oai(rename = "Key")]
pub struct KeyBody {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Word<Scopes>>,
    /// The part of the key that may be shown, such as `sk_ab12…9f`.
    pub display: String,
    pub created_at: String,
    #[oai(nullable)]
    pub last_used_at: Option<String>,
    #[oai(nullable)]
    pub expires_at: Option<String>,
    /// The id of the key that created this key, or `session:` or `user:` with the id of its creator. The key stops
    /// working with the one it was derived from.
    #[oai(nullable)]
    pub derived_from: Option<String>,
    /// Whether the key is valid for every workspace of its user, not only the one it was created in.
    pub all_workspaces: bool,
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
        }
    }
}
