//! Reads the state of a project before an import: the record, and the articles with their fields.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, bail};
use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::Value;

use super::record::{self, Record, Row};
use super::source::SourceIdentity;
use super::state::ArticleState;
use super::walk::{Article, ProjectArticles};
use crate::cli::client::{CallError, Client, unless_refused};
use crate::cli::pages::{self, ListPage};
use crate::cli::projects::Projects;

/// The maximum number of slugs that are tried for the project of a source, if other sources have the same name.
const MAX_PROJECTS: u32 = 100;

/// The state of a project before an import.
pub struct ProjectState {
    /// The slug of the project.
    pub project: String,
    pub record: Record,
    /// The path of the folder in the record that was found, if the folder may have been moved since the record was
    /// written. Otherwise `None`.
    pub moved_from: Option<String>,
    pub held: ProjectArticles,
    /// Whether the workspace defines the type of import records.
    pub is_type_defined: bool,
}

/// A reader of the workspace.
pub struct WorkspaceReader<'a> {
    pub client: &'a Client,
    pub note: &'a dyn Fn(&str),
    /// The source that is imported.
    pub source: &'a SourceIdentity,
    /// A function that returns whether the source contains a commit.
    pub knows: &'a dyn Fn(&str) -> bool,
}

impl WorkspaceReader<'_> {
    /// Reads the project with the id or the slug `project`. Without `project`, reads the project of the source. The
    /// slug of this project is the value of `default`. If a project with this slug belongs to another source, a number
    /// is added to the slug.
    pub async fn load(&self, project: Option<&str>, default: &str) -> anyhow::Result<ProjectState> {
        let projects = Projects::load(self.client, self.note).await?;
        let (rows, is_type_defined) = self.records().await.context("the records of imports cannot be read")?;
        let of_project = |slug: &str| -> Vec<&Row> {
            let id = projects.id(slug);
            rows.iter().filter(|row| id.is_some() && row.project_id.as_deref() == id).collect()
        };
        let is_named = project.is_some();
        let project = match project {
            Some(project) => projects.slug(project).unwrap_or(project).to_owned(),
            None => self.project_of(default, of_project)?,
        };
        let (of_default, of_project) = (of_project(default), of_project(&project));
        let own = Row::of(&of_project, self.source, self.knows);
        let moved = match own {
            None if is_named => self.moved(&of_project, &project)?,
            _ => None,
        };
        let mut record = match own.or(moved) {
            Some(row) => row.to_record(self.source),
            None => Record::new(self.source, &project, &rows),
        };
        if !is_named && !record.exists {
            let namesakes = rows.iter().filter(|row| row.is_namesake(self.source));
            self.note_other(&project, namesakes.chain(of_default), &projects);
        }
        let held = match projects.id(&project) {
            None => ProjectArticles::default(),
            Some(_) => {
                let held = self.held(&mut record, &project, &of_project).await;
                held.with_context(|| format!("the articles of project `{project}` cannot be read"))?
            }
        };
        let held = ProjectArticles { seed: record.seed.clone(), salt: record.version, ..held };
        let moved_from = moved.map(|row| row.identity.root.clone());
        Ok(ProjectState { project, record, moved_from, held, is_type_defined })
    }

    /// Returns the slug of the project for the source: `default`, or `default` with a number. Returns the first of
    /// these slugs whose project has the record of the source. If there is no such project, returns the first slug
    /// whose project has no record of any source.
    fn project_of<'r>(&self, default: &str, records: impl Fn(&str) -> Vec<&'r Row>) -> anyhow::Result<String> {
        let numbered = (2..=MAX_PROJECTS).map(|number| format!("{default}-{number}"));
        let slugs: Vec<String> = std::iter::once(default.to_owned()).chain(numbered).collect();
        let is_own = |slug: &&String| Row::of(&records(slug), self.source, self.knows).is_some();
        let is_free = |slug: &&String| records(slug).is_empty();
        let found = slugs.iter().find(is_own).or_else(|| slugs.iter().find(is_free)).cloned();
        found.with_context(|| {
            format!("the projects `{default}` to `{default}-{MAX_PROJECTS}` belong to other sources; set --project")
        })
    }

    /// Returns the record with the name of the folder and a path that does not exist on this machine, or `None` if no
    /// record matches. The record was probably written before the folder was moved. Fails if several records match.
    /// `rows` are the records of the project that the user has named.
    fn moved<'r>(&self, rows: &[&'r Row], project: &str) -> anyhow::Result<Option<&'r Row>> {
        let moved = Row::of_moved(rows, self.source);
        match moved.as_slice() {
            [] => Ok(None),
            [row] => Ok(Some(*row)),
            several => {
                let name = &self.source.name;
                let paths = several.iter().map(|row| row.identity.root.as_str()).collect::<Vec<_>>().join(", ");
                bail!(
                    "project `{project}` has the articles of several folders with the name `{name}` that are not on \
                     this machine: {paths}; rename the folder, or set --project to another project"
                )
            }
        }
    }

    /// Prints a note that a source without a record is imported into `project`, although another project may already
    /// have the articles of the source. This is the case if the source was imported on another machine, or before its
    /// folder was moved. The note names the source and the project of the first record in `others` that has a project.
    /// If no record in `others` has a project, prints nothing.
    fn note_other<'r>(&self, project: &str, mut others: impl Iterator<Item = &'r Row>, projects: &Projects) {
        let found = others.find_map(|row| Some((row.identity.shown(), projects.slug(row.project_id.as_deref()?)?)));
        if let Some((other, slug)) = found {
            let own = self.source.shown();
            (self.note)(&format!(
                "note: {own} is imported into project `{project}`; project `{slug}` has the articles of {other}; if \
                 both are the same, import with `--project {slug}` instead, and delete the articles of `{project}`"
            ));
        }
    }

    /// Returns the import records of the workspace, and whether the type of import records is defined.
    async fn records(&self) -> anyhow::Result<(Vec<Row>, bool)> {
        let query = [("limit", "200"), ("type", record::TYPE)];
        let rows = pages::rows(self.client, &["aggregates"], &query, Some(self.note)).await;
        // The server rejects a list of an unknown type.
        let rows = unless_refused(rows, StatusCode::BAD_REQUEST)?;
        Ok(rows.map_or_else(|| (Vec::new(), false), |rows| (rows, true)))
    }

    async fn held(&self, record: &mut Record, project: &str, records: &[&Row]) -> anyhow::Result<ProjectArticles> {
        let mut owners = self.owners(records).await?;
        let mut found = Vec::new();
        self.pages(&["aggregates"], &[("type", "article"), ("project_id", project)], |row| {
            found.extend(article(row));
            true
        })
        .await?;
        let has_old = found.iter().any(|(article, _)| !article.path.is_empty() && !owners.contains_key(&article.id));
        if !record.exists && self.source.kind == "git" && has_old {
            self.add_unrecorded(record, project, &mut owners).await?;
        }
        let mut held =
            ProjectArticles { deletion_times: self.deletion_times(project).await?, ..ProjectArticles::default() };
        for (article, slug) in found {
            match owners.get(&article.id) {
                Some(owner) if *owner == record.id => held.articles.push(article),
                None if !article.path.is_empty() => held.others.push(article),
                _ => held.further.push((article.id, slug)),
            }
        }
        Ok(held)
    }

    /// Returns a map from the id of each article that was deleted to the time of its last deletion. The map is empty
    /// for a folder: events of a folder get the server's time, which is later than every deletion.
    async fn deletion_times(&self, project: &str) -> anyhow::Result<HashMap<String, Timestamp>> {
        let mut ended: HashMap<String, Timestamp> = HashMap::new();
        if self.source.kind != "git" {
            return Ok(ended);
        }
        self.pages(&["events"], &[("types", "article.deleted"), ("project_id", project)], |event| {
            if let (Some(id), Some(at)) = (text(&event, "/aggregate_id"), text(&event, "/occurred_at"))
                && let Ok(time) = at.parse()
            {
                let last = ended.entry(id.to_owned()).or_insert(time);
                *last = time.max(*last);
            }
            true
        })
        .await?;
        Ok(ended)
    }

    /// Returns a map from the id of each imported article to the id of the import record that lists the article.
    async fn owners(&self, records: &[&Row]) -> anyhow::Result<HashMap<String, String>> {
        let mut owners = HashMap::new();
        for record in records {
            let mut add = |event: Value| {
                let added = event.pointer("/payload/added").and_then(Value::as_array).into_iter().flatten();
                let ids = added.filter_map(Value::as_str);
                owners.extend(ids.map(|id| (id.to_owned(), record.id.clone())));
                true
            };
            self.pages(&["aggregates", &record.id, "events"], &[], &mut add).await?;
        }
        Ok(owners)
    }

    /// Adds to the record the articles that an earlier import created without a record. The new import continues at the
    /// commit of the latest event of these articles.
    async fn add_unrecorded(
        &self,
        record: &mut Record,
        project: &str,
        owners: &mut HashMap<String, String>,
    ) -> anyhow::Result<()> {
        let query = [("types", "article.created"), ("project_id", project)];
        let (mut own, mut others) = (HashSet::new(), HashSet::new());
        self.pages(&["events"], &query, |event| {
            if let Some((id, is_known)) = self.taken(&event) {
                let found = if is_known { &mut own } else { &mut others };
                found.insert(id.to_owned());
            }
            true
        })
        .await?;
        owners.extend(others.into_iter().map(|id| (id, String::new())));
        owners.extend(own.iter().map(|id| (id.clone(), record.id.clone())));
        record.unrecorded = own.iter().cloned().collect();
        let query = [("aggregate_type", "article"), ("project_id", project), ("direction", "desc")];
        self.pages(&["events"], &query, |event| {
            let commit = text(&event, "/metadata/commit").unwrap_or_default();
            let is_last = text(&event, "/aggregate_id").is_some_and(|id| own.contains(id)) && (self.knows)(commit);
            if is_last {
                commit.clone_into(&mut record.progress.towards);
            }
            !is_last
        })
        .await?;
        Ok(())
    }

    /// If an event was imported from git, returns the id of its article, and whether the source has the commit of the
    /// event.
    fn taken<'e>(&self, event: &'e Value) -> Option<(&'e str, bool)> {
        let is_git = text(event, "/metadata/source") == Some("git") && event.pointer("/payload/path").is_some();
        let (id, commit) = (text(event, "/aggregate_id")?, text(event, "/metadata/commit")?);
        is_git.then(|| (id, (self.knows)(commit)))
    }

    /// Reads a list page by page, until `take` returns false.
    async fn pages(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        mut take: impl FnMut(Value) -> bool,
    ) -> Result<(), CallError> {
        let query = [&[("limit", "200")][..], query].concat();
        let take_page = |page: ListPage<Value>| {
            let goes_on = page.data.into_iter().all(&mut take);
            Ok(page.next_cursor.filter(|_| goes_on))
        };
        pages::each(self.client, path, &query, Some(self.note), take_page).await
    }
}

/// Returns the text at a place in an event.
fn text<'e>(event: &'e Value, pointer: &str) -> Option<&'e str> {
    event.pointer(pointer)?.as_str()
}

/// Returns the article in a row, and the article's slug. An article without a path has no file.
fn article(row: Value) -> Option<(Article, String)> {
    let Value::Object(mut row) = row else { return None };
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, path, slug) = (text("_id"), text("path"), text("slug"));
    let last: Option<Timestamp> = text("_last_event_at").parse().ok();
    row.retain(|name, _| !name.starts_with('_'));
    let state = (!path.is_empty()).then(|| ArticleState::new(&row));
    Some((Article { id, path, state, last, ..Article::default() }, slug))
}
