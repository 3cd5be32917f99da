//! The members of the first workspace of a test server, who send requests with keys and in sessions.

use foldwork_engine::model::access::{Caller, Role};
use foldwork_tests::handles::join;
use foldwork_tests::issuer::{SECRET, signed_with};
use foldwork_tests::server::{Server, claims_of};
use serde_json::{Value, json};

use super::board::post_in;

/// A created key.
pub struct Made {
    pub id: String,
    pub secret: String,
}

/// Adds a user of the tests to the first workspace.
pub async fn joined(server: &Server, name: &str, role: Role) -> Caller {
    let workspace = server.workspace("owner").await.expect("the workspace");
    let token = server.key(name).expect("a token").to_owned();
    join(&server.engine, &workspace.owner, &token, &format!("{name}@example.com"), role).await.expect("joined")
}

/// Returns the id of the first workspace.
pub async fn first_workspace(server: &Server) -> String {
    server.workspace("owner").await.expect("the workspace").reader.record().id.to_string()
}

/// Returns a token of a user for a second session.
pub fn other_session(name: &str) -> String {
    let mut claims = claims_of(name);
    claims["session_id"] = json!(format!("another session of {name}"));
    signed_with(SECRET, &claims)
}

/// Creates a key. The credential of the request is `bearer`, which is a key or a token. `more` contains further fields
/// of the request.
pub async fn key_of(server: &Server, workspace: &str, bearer: &str, more: &Value) -> Made {
    let mut body = json!({"name": "a key", "scopes": ["api:read", "api:write"]});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    let (status, made) = post_in(server, workspace, bearer, "/keys", &body).await;
    assert_eq!(status, 201, "{made}");
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    Made { id: text("id"), secret: text("key") }
}
