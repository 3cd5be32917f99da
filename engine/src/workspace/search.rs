//! Search: the aggregates whose labels, or bodies, are like what is asked.

use std::sync::Arc;

use super::Workspace;
use super::articles::unknown_project;
use super::state::Open;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::resident::labels::index::Text;
use crate::resident::labels::legs::Legs;
use crate::resident::labels::{Filter, label_of};

/// Results where the client does not say, and the most it may ask for.
pub const DEFAULT_LIMIT: u64 = 10;
pub const MAX_LIMIT: u64 = 100;
/// Longest query, in characters.
const MAX_QUERY: usize = 1_000;
/// Found only where the type is asked for: a task repeats the label of what it is about.
const WITHOUT_TYPES: &[&str] = &["task"];

/// What a client asks.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub query: String,
    pub aggregate_type: Option<String>,
    /// A project's id or slug.
    pub project: Option<String>,
    pub limit: Option<u64>,
}

/// What it is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub results: Vec<Found>,
    pub took_us: u64,
    pub warnings: Vec<String>,
}

/// An aggregate that was found.
#[derive(Debug, Clone)]
pub struct Found {
    pub aggregate: Arc<Aggregate>,
    pub label: Arc<str>,
    pub score: f64,
    /// The measure that the score is of.
    pub kind: &'static str,
    pub legs: Legs,
}

impl Workspace {
    /// The aggregates that answer a query, best first; of equals the one that changed last, then by id.
    pub async fn search(&self, search: Search) -> Result<Answer> {
        let began = self.engine.clock().monotonic_us();
        let limit = checked_limit(search.limit)?;
        let characters = search.query.chars().take(MAX_QUERY + 1).count();
        if search.query.trim().is_empty() || characters > MAX_QUERY {
            return Err(Error::invalid_at("/query", format!("expected 1 to {MAX_QUERY} characters")));
        }
        self.open().refresh().await?;
        let project_id = match &search.project {
            None => None,
            Some(project) => Some(self.find_project(project).ok_or_else(|| unknown_project(project))?.id.text()),
        };
        let filter = Filter {
            aggregate_type: search.aggregate_type.as_deref().map(Arc::from),
            without_types: WITHOUT_TYPES,
            project_id,
        };
        let warnings = match &filter.aggregate_type {
            Some(name) if self.open().definition(name).is_none() => {
                vec![format!("unknown aggregate_type '{name:.64}'")]
            }
            _ => Vec::new(),
        };
        let workspace = self.clone();
        let results = tokio::task::spawn_blocking(move || workspace.found(&search.query, filter, limit));
        let results = results.await.map_err(Error::internal)?;
        let took_us = self.engine.clock().monotonic_us().saturating_sub(began);
        Ok(Answer { results, took_us, warnings })
    }

    fn found(&self, query: &str, filter: Filter, limit: usize) -> Vec<Found> {
        let open = self.open();
        open.keep_labels();
        let hits = open.labels.search(query, filter, limit);
        let found = hits.into_iter().filter_map(|hit| {
            let aggregate = open.resident.get(hit.id.as_str()).filter(|aggregate| !aggregate.deleted)?;
            let label = label_of(&aggregate, &*open.definition(&aggregate.aggregate_type)?).unwrap_or_default();
            let (kind, score) = hit.legs.best();
            Some(Found { aggregate, label, score, kind, legs: hit.legs })
        });
        found.collect()
    }
}

fn checked_limit(limit: Option<u64>) -> Result<usize> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid_at("/limit", format!("is {limit}; allowed is 1 to {MAX_LIMIT}")));
    }
    Ok(limit as usize)
}

impl Open {
    /// Makes the index of labels where it is not made yet, and takes in what changed. Answers whether any is left.
    pub fn keep_labels(&self) -> bool {
        let definitions = self.definitions();
        let text = |aggregate: &Aggregate| -> Option<Text> {
            self.labels.text(aggregate, definitions.get(&aggregate.aggregate_type)?)
        };
        self.labels.make(|| {
            let snapshot = self.resident.snapshot();
            snapshot.iter().filter_map(|aggregate| text(aggregate)).collect::<Vec<_>>()
        });
        self.labels.catch_up(|id: &AggregateId| text(&*self.resident.get(id.as_str())?))
    }
}
