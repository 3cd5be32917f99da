//! The JSON of an API key in responses.

use foldwork_engine::model::access::KeyRecord;
use foldwork_engine::model::date::format_date;

use super::closed_sets::{OneOf, Scopes};
use super::shown::shown;

shown! {
    /// An API key without its secret.
    #[oai(rename = "Key")]
    pub struct KeyBody from key: &KeyRecord;

    pub id: String = key.id.to_string(),
    pub name: String = key.name.clone(),
    pub scopes: Vec<OneOf<Scopes>> = key.scopes.iter().map(|scope| scope.name().into()).collect(),
    /// The part of the key that may be shown, such as `sk_ab12…9f`.
    pub display: String = key.display.clone(),
    pub created_at: String = format_date(key.created_at),
    pub last_used_at: Option<String> = key.last_used_at.map(format_date),
    pub expires_at: Option<String> = key.expires_at.map(format_date),
    /// The id of the key that this key depends on: the key that created this key, or a successor of the creating key.
    /// If a user created this key in a session, the value is `session:` and the id of the session. If there is neither
    /// a key nor a session, the value is `user:` and the id of the user. If the creating key was revoked and this key
    /// stayed valid, the value is the `derived_from` of the revoked key. Null for a key that the server created for the
    /// owner of a workspace, and for a key that takes the place of such a key.
    pub derived_from: Option<String> = key.derived_from.as_deref().map(str::to_owned),
    /// Whether the key is valid for every workspace of its user. If false, the key is valid only for the workspace in
    /// which the key was created.
    pub all_workspaces: bool = key.opens_all,
    /// The ids of the agents to which the key is bound, or null. Apart from reading, a key that is bound to agents can
    /// only work on the tasks of these agents, claim unassigned tasks for these agents, report the presence of these
    /// agents, acknowledge their feeds, and revoke itself.
    pub agent_ids: Option<Vec<String>> =
        key.agents.as_ref().map(|agents| agents.iter().map(ToString::to_string).collect()),
}
