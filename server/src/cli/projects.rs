//! Finds projects of the workspace by id or slug, and creates the missing projects of an import.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::client::Client;
use super::portable::lines::ExportedProject;
use super::{pages, retry};

/// The known projects of the workspace.
#[derive(Debug, Default)]
pub struct Projects {
    slugs: HashMap<String, String>,
    names: HashSet<String>,
    /// The projects in the last list from the server or the store, without projects that `ensure` has created since.
    pub listed: Vec<ExportedProject>,
}

impl Projects {
    /// Fetches all projects from the server.
    pub async fn load(client: &Client, note: impl Fn(&str)) -> anyhow::Result<Self> {
        let listed = pages::rows::<ExportedProject>(client, &["projects"], &[("limit", "200")], Some(&note)).await;
        Ok(listed.context("the projects cannot be listed")?.into_iter().collect())
    }

    /// Returns the slug of the project with this id. Finds only projects in `listed`.
    pub fn slug(&self, id: &str) -> Option<&str> {
        self.slugs.get(id).map(String::as_str)
    }

    /// Returns the id of the project with this slug. Finds only projects in `listed`.
    pub fn id(&self, slug: &str) -> Option<&str> {
        self.slugs.iter().find(|(_, known)| *known == slug).map(|(id, _)| id.as_str())
    }

    /// Returns whether a project with this id or slug is known.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Creates a project with the slug `name`. Does nothing if `name` is the id or the slug of a known project. If
    /// `about` contains the project of an export, the created project gets the name and the description of this
    /// project.
    pub async fn ensure(
        &mut self,
        client: &Client,
        name: &str,
        about: Option<&ExportedProject>,
        note: impl Fn(&str),
    ) -> anyhow::Result<()> {
        if self.contains(name) {
            return Ok(());
        }
        let title = about.map(|about| about.name.as_str()).filter(|title| !title.is_empty()).unwrap_or(name);
        let description = about.and_then(|about| about.description.as_deref()).unwrap_or_default();
        let body = json!({"name": title, "slug": name, "description": description});
        let made = retry::call(client, &note, || client.request(Method::POST, &["projects"]).json(&body)).await;
        match &made {
            Ok(_) => {
                self.names.insert(name.to_owned());
            }
            // Another client, or an earlier attempt whose response was lost, has created the project since the list was
            // fetched.
            Err(error) if error.has_status(StatusCode::CONFLICT) => *self = Self::load(client, note).await?,
            Err(_) => {}
        }
        if self.contains(name) { Ok(()) } else { made.map(drop).context(format!("project `{name}` cannot be created")) }
    }
}

impl FromIterator<ExportedProject> for Projects {
    fn from_iter<I: IntoIterator<Item = ExportedProject>>(projects: I) -> Self {
        let mut all = Self::default();
        for project in projects {
            all.names.insert(project.id.clone());
            all.names.insert(project.slug.clone());
            all.slugs.insert(project.id.clone(), project.slug.clone());
            all.listed.push(project);
        }
        all
    }
}
