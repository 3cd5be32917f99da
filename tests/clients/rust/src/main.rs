//! Tests the client that progenitor generates, with a sequence of requests to a server.

#[expect(warnings, reason = "generated code is not linted")]
mod client {
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
}

use std::error::Error;

use client::{Client, types};
use progenitor_client::{Error as CallError, ResponseValue};
use serde_json::{Map, Value, json};

type Step = Result<(), Box<dyn Error>>;

/// The content of the uploaded file.
const BYTES: &[u8] = b"Flour, water, salt, time.\n";
/// The content of the uploaded file in base64.
const BASE64: &str = "RmxvdXIsIHdhdGVyLCBzYWx0LCB0aW1lLgo=";

/// The state of a run: the server's base URL, a suffix that makes names unique, the owner's client, and the records
/// that earlier steps created.
struct Story {
    base: String,
    run: String,
    slug: String,
    owner: Client,
    project: String,
    article: String,
}

fn open(base: &str, token: Option<&str>) -> Result<Client, Box<dyn Error>> {
    let mut headers = reqwest::header::HeaderMap::new();
    if let Some(token) = token {
        headers.insert("authorization", format!("Bearer {token}").parse()?);
    }
    Ok(Client::new_with_client(base, reqwest::Client::builder().default_headers(headers).build()?))
}

fn check(holds: bool, context: impl std::fmt::Debug) -> Step {
    if holds { Ok(()) } else { Err(format!("{context:?}").into()) }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Checks that a response is an error with this status, this code and the common fields of errors.
fn refused<T: std::fmt::Debug>(
    answer: Result<ResponseValue<T>, CallError<types::Error>>,
    status: u16,
    code: &str,
) -> Step {
    match answer {
        Err(CallError::ErrorResponse(error)) => {
            let has_details = !error.error.is_empty() && !error.request_id.is_empty();
            let has_code = serde_json::to_value(&error.code)? == code;
            check(error.status().as_u16() == status && has_code && has_details, error)
        }
        other => Err(format!("expected {status}, found {other:?}").into()),
    }
}

impl Story {
    async fn a_project(&mut self) -> Step {
        let slug = self.slug.clone();
        let made = self.owner.create_project().body_map(|body| body.name("Rust").slug(slug)).send().await?;
        check(made.status() == 201 && made.slug == self.slug && made.description.is_none(), &made)?;
        self.project = made.id.clone();
        let listed = self.owner.list_projects().limit(200u64).send().await?;
        check(listed.data.iter().any(|known| known.id == self.project), listed.data.len())
    }

    async fn a_type(&mut self) -> Step {
        let body: types::TypeDefinition = serde_json::from_value(json!({
            "type_name": "ticket",
            "display_name": "Ticket",
            "traits": ["content-bearing"],
            "fields": [
                {"name": "subject", "type": "string", "required": true, "label": true},
                {"name": "points", "type": "number"},
            ],
        }))?;
        let made = self.owner.define_type().body(body).send().await?;
        check(made.fields.len() == 2, &made)?;
        let schema = self.owner.get_type_schema().type_name("ticket").send().await?;
        check(schema.fields.iter().any(|field| field.name == "subject" && field.required == Some(true)), &schema)
    }

    async fn an_event(&mut self) -> Step {
        let payload = fields(json!({"subject": format!("Leaking tap {}", self.run), "points": 3}));
        let event: types::StreamEvent = types::StreamEvent::builder()
            .aggregate_type("ticket".to_owned())
            .event_type("ticket.created")
            .project_id(self.slug.clone())
            .payload(payload)
            .try_into()?;
        let id = format!("ticket:{}", self.slug);
        let made = self.owner.append_event().aggregate_id(id).body(event).send().await?;
        check(made.status() == 201 && made.version == 1, &made)
    }

    async fn several_events(&mut self) -> Step {
        let body: types::StreamEvents = serde_json::from_value(json!({"events": [
            {"event_type": "ticket.updated", "payload": {"points": 4}},
            {"event_type": "ticket.updated", "payload": {"points": 3}},
        ]}))?;
        let id = format!("ticket:{}", self.slug);
        let made = self.owner.append_event().aggregate_id(id).body(body).send().await?;
        check(made.version == 3 && made.data.len() == 2 && made.appended == Some(2), &made)
    }

    /// Runs the example code from `openapi/README.md`.
    async fn the_lines_of_the_readme(&mut self) -> Step {
        use client as foldwork;
        include!(concat!(env!("OUT_DIR"), "/usage.rs"))
    }

    async fn an_article(&mut self) -> Step {
        let body: types::CreateArticle = serde_json::from_value(json!({
            "project_id": self.slug,
            "title": format!("Kneading dough {}", self.run),
            "body": "# Dough",
            "slug": self.slug,
            "tags": ["bread", "basics"],
        }))?;
        let made = self.owner.create_article().idempotency_key(&*self.slug).body(body.clone()).send().await?;
        check(made.status == types::PublicationStatus::Draft && made.published_at.is_none(), &made)?;
        self.article = made.aggregate_id.clone();
        let again = self.owner.create_article().idempotency_key(&*self.slug).body(body).send().await?;
        check(again.status() == 200 && again.aggregate_id == self.article, &again)
    }

    async fn publishing(&mut self) -> Step {
        let published = self.owner.publish_article().aggregate_id(&*self.article).send().await?;
        check(published.status == types::PublicationStatus::Published && published.published_at.is_some(), &published)
    }

    async fn a_query(&mut self) -> Step {
        let stages = [
            json!({"$match": {"aggregate_type": "ticket", "project_id": self.project}}),
            json!({"$fold": {}}),
            json!({"$project": {"subject": 1, "double": {"$multiply": ["$points", 2]}}}),
        ];
        let stages: Vec<Map<String, Value>> = stages.into_iter().map(fields).collect();
        let found = self.owner.query_aggregates().body_map(|body| body.pipeline(stages)).send().await?;
        check(found.count == 1 && found.results.first().is_some_and(|row| row["double"] == 6), &found)
    }

    async fn a_search(&mut self) -> Step {
        let body: types::SearchBody = serde_json::from_value(json!({
            "query": format!("kneeding dough {}", self.run), "type": "article", "project_id": self.slug, "limit": 5,
        }))?;
        let found = self.owner.search_aggregates().body(body).send().await?;
        check(found.results.first().is_some_and(|hit| hit.aggregate_id == self.article), &found)
    }

    async fn a_file(&mut self) -> Step {
        let body: types::UploadFile = serde_json::from_value(json!({
            "filename": "dough.txt", "data": BASE64, "mime_type": "text/plain", "project_id": self.slug,
        }))?;
        let made = self.owner.create_file().body(body).send().await?;
        check(made.path.split('/').count() > 3, &made)?;
        let link = self.owner.get_file().path(&*made.path).send().await?;
        let url = reqwest::Url::parse(&self.base)?.join(&link.url)?;
        let bytes = reqwest::get(url).await?.error_for_status()?.bytes().await?;
        check(bytes == BYTES, &bytes)
    }

    async fn an_agent_and_a_task(&mut self) -> Step {
        let name = format!("Baker {}", self.slug);
        let body: types::CreateAgent =
            serde_json::from_value(json!({"name": name, "description": "Bakes.", "capabilities": {"bake": true}}))?;
        let agent = self.owner.create_agent().body(body).send().await?;
        let body: types::CreateTask = serde_json::from_value(json!({
            "title": "Bake it", "assignee_type": "agent", "assignee_id": agent.id, "priority": "high", "project_id": self.slug,
        }))?;
        let made = self.owner.create_task().body(body).send().await?;
        check(made.status == types::TaskStatus::Pending, &made)?;
        let roster = self.owner.get_roster().send().await?;
        check(roster.data.iter().any(|entry| entry.agent_id == agent.id && entry.pending == 1), &roster)?;
        let comment = || Some("Well done".to_owned());
        let approve = || self.owner.approve_task().task_id(&*made.id).body_map(|body| body.comment(comment()));
        let approved = approve().send().await?;
        check(approved.status == types::TaskStatus::Approved, &approved)?;
        let whole = self.owner.get_task().task_id(&*made.id).send().await?;
        check(whole.timeline.iter().any(|entry| entry.event_type == "task.approved"), &whole)?;
        refused(approve().send().await, 409, "task_state_conflict")
    }

    async fn refusals(&mut self) -> Step {
        refused(self.owner.list_articles().cursor("nonsense").send().await, 400, "invalid_cursor")?;
        refused(open(&self.base, None)?.get_workspace().send().await, 401, "unauthenticated")?;
        let scopes = vec![types::Scope::ApiRead];
        let made = self.owner.create_key().body_map(|body| body.name("reader").scopes(scopes)).send().await?;
        let reader = open(&self.base, made.key.as_deref())?;
        let answer = reader.create_project().body_map(|body| body.name("Refused")).send().await;
        refused(answer, 403, "insufficient_scope")?;
        refused(self.owner.get_article().aggregate_id("not-there").send().await, 404, "not_found")?;
        let slug = self.slug.clone();
        let answer = self.owner.create_project().body_map(|body| body.name("Again").slug(slug)).send().await;
        refused(answer, 409, "slug_taken")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Step {
    let setting = |name: &str| std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"));
    let (base, run) = (setting("FOLDWORK_BASE")?, setting("FOLDWORK_RUN")?);
    let owner = open(&base, Some(&setting("FOLDWORK_TOKEN")?))?;
    let slug = format!("rust-{run}");
    let mut story = Story { base, run, slug, owner, project: String::new(), article: String::new() };
    story.a_project().await?;
    story.a_type().await?;
    story.an_event().await?;
    story.several_events().await?;
    story.the_lines_of_the_readme().await?;
    story.an_article().await?;
    story.publishing().await?;
    story.a_query().await?;
    story.a_search().await?;
    story.a_file().await?;
    story.an_agent_and_a_task().await?;
    story.refusals().await?;
    println!("progenitor: 12 steps passed");
    Ok(())
}
