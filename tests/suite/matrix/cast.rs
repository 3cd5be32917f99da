//! The callers of the matrix with their credentials, and two workspaces with one record of each kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::plan::PlanStatus;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle};
use foldwork_engine::workspace::keys::{DerivedKeys, NewKey};
use foldwork_engine::workspace::licenses::Device;
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::workspace::projects::NewProject;
use foldwork_engine::{AccessSettings, Administrator, Unlocker};
use foldwork_server::Config;
use foldwork_tests::handles::{Handles, join};
use foldwork_tests::issuer::Provider;
use foldwork_tests::server::Server;
use poem::{Body, Request};
use serde_json::{Value, json};
use strum::VariantArray;

use super::Operation;

const HOUR_MS: i64 = 3_600_000;

/// The ids of one workspace's records by kind, and texts that occur only in data of the workspace.
pub struct WorkspaceRecords {
    pub ids: BTreeMap<&'static str, String>,
    pub marks: Vec<String>,
}

/// The callers with their credentials, and the records of both workspaces.
pub struct Cast {
    pub server: Server,
    pub ours: WorkspaceRecords,
    pub theirs: WorkspaceRecords,
    pub expired: String,
    pub revoked: String,
}

/// Starts a server and creates the callers and the two workspaces.
pub async fn cast() -> anyhow::Result<Cast> {
    // Users get no personal workspace, so a token is valid for the workspace that its user has joined.
    let settings = AccessSettings { auto_provision: false, ..Provider::settings(&["ES256"]) };
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_deciding(&config, settings, Arc::default()).await?;
    let owner = server.workspace("owner").await?;
    let other = server.workspace("other").await?;
    let new =
        |expires_at| NewKey { name: "one".into(), scopes: Scope::VARIANTS.to_vec(), expires_at, ..NewKey::default() };
    let expired = owner.owner.create_key(new(Some(1_767_225_600_000 + HOUR_MS)), None).await?;
    let revoked = owner.owner.create_key(new(None), None).await?;
    owner.owner.revoke_key(&revoked.record.id, DerivedKeys::End).await?;
    for (name, role) in [("bob", Role::Viewer), ("cleo", Role::Owner)] {
        let token = server.key(name).expect("a token");
        join(&server.engine, &owner.owner, token, &format!("{name}@example.com"), role).await?;
    }
    let lapsed = server.engine.authenticate(server.key("cleo").expect("a token")).await?;
    let operator: Administrator =
        server.engine.enter(server.engine.authenticate(server.key("owner").expect("a key")).await?).await?;
    let plan = NewPlan { status: Some(PlanStatus::Canceled), ..NewPlan::default() };
    operator.set_plan(lapsed.user_id(), plan).await?;
    let ours = things(&server, &owner, "main", "owner").await?;
    let theirs = things(&server, &other, "else", "other").await?;
    server.clock.advance(HOUR_MS);
    let secret = |key: foldwork_engine::workspace::keys::CreatedKey| key.secret.expect("a key");
    Ok(Cast { server, ours, theirs, expired: secret(expired), revoked: secret(revoked) })
}

/// Creates one record of each kind in a workspace.
async fn things(server: &Server, workspace: &Handles, mark: &str, owner: &str) -> anyhow::Result<WorkspaceRecords> {
    let marked = format!("marked-of-{mark}");
    let project = NewProject { name: marked.clone(), ..NewProject::default() };
    let (project, _) = workspace.writer.create_project(project).await?;
    let change = ArticleChange { body: Some(marked.clone()), ..ArticleChange::default() };
    let article = NewArticle { title: marked.clone(), change, ..NewArticle::default() };
    let (article, _) = workspace.writer.create_article(article).await?;
    let key = NewKey { name: marked.clone(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
    let key = workspace.owner.create_key(key, None).await?;
    workspace.owner.invite(&format!("{marked}@example.com"), Role::Viewer).await?;
    let joins = format!("dan-{mark}@example.com");
    let mut claims = foldwork_tests::server::claims_of("dan");
    claims["sub"] = joins.clone().into();
    claims["email"] = joins.as_str().into();
    let token = foldwork_tests::issuer::signed_with(foldwork_tests::issuer::SECRET, &claims);
    let member = join(&server.engine, &workspace.owner, &token, &joins, Role::Viewer).await?;
    let invited = if mark == "main" { "dan@example.com" } else { "nobody@example.com" };
    let invitation = workspace.owner.invite(invited, Role::Viewer).await?;
    let caller = server.engine.authenticate(server.key(owner).expect("a key")).await?;
    let unlocker: Unlocker = server.engine.enter(caller).await?;
    let device = Device { instance_id: format!("device-of-{mark}"), name: Some(marked.clone()), ..Device::default() };
    let (activated, _) = unlocker.validate_device(device).await?;
    let type_name = format!("type_{mark}");
    let definition = json!({"type_name": type_name, "display_name": marked, "traits": [], "fields": []});
    let definition = serde_json::from_value(definition)?;
    workspace.writer.define_type(&definition, false).await?;
    let workspace_id = workspace.reader.record().id.to_string();
    let ids = BTreeMap::from([
        ("project", project.id.to_string()),
        ("article", article.id.to_string()),
        ("key", key.record.id.to_string()),
        ("member", member.user_id().to_owned()),
        ("invitation", invitation.id.to_string()),
        ("activation", activated.activation.expect("a device").id.to_string()),
        ("type", type_name),
        ("workspace", workspace_id.clone()),
    ]);
    let marks = ids.values().cloned().chain([marked, workspace_id]).collect();
    Ok(WorkspaceRecords { ids, marks })
}

/// The result of a call.
pub struct Answered {
    pub status: u16,
    pub code: String,
    pub required: Value,
    pub text: String,
}

impl Cast {
    /// Calls an operation with these ids in its path. Fails if an error response does not have the common format.
    pub async fn call(&self, operation: &Operation, ids: &[String], token: Option<&str>) -> Result<Answered, String> {
        let mut path = operation.path.clone();
        for (name, id) in operation.parameters.iter().zip(ids) {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        let uri: poem::http::Uri = path.parse().map_err(|error| format!("{path}: {error}"))?;
        let mut request = Request::builder().method(operation.method.clone()).uri(uri);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = match &operation.body {
            Some((media_type, body)) => request.header("content-type", media_type).body(Body::from(body.clone())),
            None => request.finish(),
        };
        let answer = self.server.call(request).await;
        let status = answer.status();
        let request_id = answer.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let text = answer.into_body().into_string().await.map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_client_error() || status.is_server_error() {
            let has_shape = body["error"].is_string()
                && (body["code"].is_string() || body["code"].is_i64())
                && body["request_id"].as_str() == request_id.as_deref();
            if !has_shape {
                return Err(format!("the response {status} does not have the common format of errors: {text}"));
            }
        }
        let code = body["code"].as_str().unwrap_or_default().to_owned();
        Ok(Answered { status: status.as_u16(), code, required: body["required"].clone(), text })
    }

    /// Returns the key or token with a name.
    pub fn token(&self, name: &str) -> Option<&str> {
        self.server.key(name)
    }
}
