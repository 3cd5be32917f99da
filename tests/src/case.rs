//! Runs pipeline cases. A case file contains events, and pipelines over these events with the rows that each pipeline
//! returns.
//!
//! A file begins with the sections `--- types` (one definition per line), `--- projects` (one name per line) and
//! `--- events` (one event per line: `id`, `type`, `verb`, and optionally `payload`, `project`, `at`, `metadata`). The
//! cases follow. Each case has a line `=== name`, the pipeline, and sections that `UPDATE=1` writes: `--- rows` or
//! `--- error`, `--- warnings`, and `--- plan` if the case already has a plan section.

use std::path::Path;

use anyhow::{Context as _, bail};
use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::SourceChoice;
use foldwork_engine::pipeline::error::PipelineErrorCode;
use foldwork_engine::workspace::query::Query;
use serde::Deserialize;

use crate::expectation::read;
use crate::handles::Handles;
use crate::json::{pretty, spaced};
use crate::server::{Server, consumed};

const CASE: &str = "\n=== ";
const SECTION: &str = "\n--- ";

/// The sources from which a query can read states.
const SOURCES: [SourceChoice; 4] = [SourceChoice::Auto, SourceChoice::Resident, SourceChoice::Nodes, SourceChoice::Log];

/// An event as written in a case file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    id: String,
    r#type: String,
    verb: String,
    #[serde(default)]
    payload: Object,
    #[serde(default)]
    metadata: Object,
    #[serde(default)]
    project: Option<String>,
    #[serde(default)]
    at: Option<String>,
}

/// Runs the cases of a file and returns the text that the file should contain.
///
/// Each case runs with every source, with and without optimizer rules, and with and without columns. Each case runs
/// before the followers of the log have caught up, and again afterwards. The rows must be the same every time.
pub async fn run(path: &Path) -> anyhow::Result<String> {
    let text = read(path);
    let (head, cases) = text.split_once(CASE).with_context(|| format!("{} has no line '=== name'", path.display()))?;
    let server = Server::start().await?;
    let workspace = server.workspace("owner").await?;
    given(&workspace, head).await?;
    let mut out = head.trim_end().to_owned();
    let mut early = Vec::new();
    for case in cases.split(CASE) {
        let case = Case::read(case).with_context(|| format!("in {}", path.display()))?;
        early.push((case, answer_of(&workspace, &case.pipeline()?).await?));
    }
    consumed(&workspace).await?;
    for (case, early) in early {
        let late = answer_of(&workspace, &case.pipeline()?).await?;
        if early != late {
            bail!("'{}' returns{early}\nbefore the followers have caught up, but afterwards{late}", case.name);
        }
        out += &format!("\n{CASE}{}\n{}{late}", case.name, case.text);
        if case.with_plan {
            let plan = workspace.reader.query(Query { dry_run: true, ..Query::new(case.pipeline()?) }).await?.plan;
            let plan = json(&plan.unwrap_or_default())?;
            out += &format!("{SECTION}plan\n{}", pretty(&plan["plan"], 0));
        }
    }
    Ok(out + "\n")
}

/// A case as written in its file.
#[derive(Clone, Copy)]
struct Case<'a> {
    name: &'a str,
    text: &'a str,
    with_plan: bool,
}

impl<'a> Case<'a> {
    fn read(case: &'a str) -> anyhow::Result<Case<'a>> {
        let (name, rest) = case.split_once('\n').context("expected a pipeline after the name of a case")?;
        let text = rest.split(SECTION).next().unwrap_or_default().trim_end();
        Ok(Case { name, text, with_plan: rest.contains("\n--- plan") })
    }

    fn pipeline(&self) -> anyhow::Result<Value> {
        serde_json::from_str(self.text).with_context(|| format!("cannot parse the pipeline of '{}'", self.name))
    }
}

/// Prepares the workspace for the cases of a file. Defines the types, creates the projects and appends the events that
/// the beginning of the file (`head`) lists.
async fn given(workspace: &Handles, head: &str) -> anyhow::Result<()> {
    for section in head.split(SECTION).skip(1) {
        let (name, lines) = section.split_once('\n').unwrap_or((section, ""));
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let what = || format!("{name}: {line}");
            match name {
                "types" => {
                    drop(workspace.writer.define_type(&serde_json::from_str(line).with_context(what)?, false).await?)
                }
                "events" => {
                    let event: Given = serde_json::from_str(line).with_context(what)?;
                    workspace.writer.append_events(vec![new_event(event)]).await.with_context(what)?;
                }
                "projects" => {
                    let new =
                        foldwork_engine::workspace::projects::NewProject { name: line.into(), ..Default::default() };
                    workspace.writer.create_project(new).await.with_context(what)?;
                }
                other => bail!("unknown section '{other}'; expected types, projects or events"),
            }
        }
    }
    Ok(())
}

fn new_event(event: Given) -> NewEvent {
    NewEvent {
        aggregate_id: event.id,
        event_type: format!("{}.{}", event.r#type, event.verb),
        aggregate_type: event.r#type,
        project: event.project,
        payload: event.payload,
        metadata: event.metadata,
        occurred_at: event.at.as_deref().and_then(parse_date),
        ..NewEvent::default()
    }
}

/// Returns the result of a pipeline in the format of a case file. Fails if the result differs between sources.
async fn answer_of(workspace: &Handles, pipeline: &Value) -> anyhow::Result<String> {
    let mut first: Option<String> = None;
    for source in SOURCES {
        for (push_down, columns) in [(true, true), (true, false), (false, false)] {
            let query = Query { source, push_down, columns, ..Query::new(pipeline.clone()) };
            let answer = shown(workspace.reader.query(query).await)?;
            match &first {
                None => first = Some(answer),
                Some(first) if *first == answer => {}
                Some(first) => {
                    let pipeline = spaced(&json(pipeline)?);
                    let options = format!("rules: {push_down}, columns: {columns}");
                    bail!(
                        "{pipeline}\nfrom {source:?} ({options}) returns{answer}\nbut from the source that the query \
                         chooses{first}"
                    )
                }
            }
        }
    }
    Ok(first.unwrap_or_default())
}

fn shown(answer: Result<foldwork_engine::workspace::query::QueryOutput, Error>) -> anyhow::Result<String> {
    match answer {
        Ok(answer) => {
            let mut text = format!("{SECTION}rows");
            for row in &answer.rows {
                text += &format!("\n{}", pretty(&json(row)?, 0));
            }
            if !answer.warnings.is_empty() {
                text += &format!("{SECTION}warnings\n{}", answer.warnings.join("\n"));
            }
            Ok(text)
        }
        Err(Error::Pipeline(error)) => {
            let code = match error.code {
                PipelineErrorCode::Number(number) => number.to_string(),
                PipelineErrorCode::QueryTimeout => "query_timeout".to_owned(),
            };
            let stage = error.stage.map(|stage| format!(" in stage {stage}")).unwrap_or_default();
            let hint = error.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            Ok(format!("{SECTION}error\n{code}{stage}: {}{hint}", error.message))
        }
        Err(error) => Err(error.into()),
    }
}

fn json(value: &Value) -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::from_str(&serde_json::to_string(value)?)?)
}
