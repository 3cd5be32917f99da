//! Search: finds aggregates whose label or other searched fields match a query.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::call_context::CallContext;
use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::resident::labels::SearchFilter;
use crate::resident::labels::scores::Scores;

/// The default number of results.
pub const DEFAULT_LIMIT: u64 = 10;
/// The maximum number of results.
pub const MAX_LIMIT: u64 = 100;
/// The maximum length of a query, in characters.
const MAX_QUERY: usize = 1_000;
/// The types that a search includes only if the request names them. A search leaves out tasks by default, because the
/// title of a task often repeats the label of the aggregate that the task is about.
const WITHOUT_TYPES: &[&str] = &["task"];

/// The kind of a match by vector similarity.
const VECTOR: &str = "vector";
/// The maximum number of neighbors in the ranking by vectors, which is merged with the ranking by text. A filter may
/// remove many of the neighbors.
const MAX_NEIGHBORS: usize = 100;
/// The maximum number of matches in the ranking by text, if the ranking is merged with the ranking by vectors.
const MAX_TEXT_MATCHES: usize = 100;
/// The minimum score of a text match without a BM25 score, if vectors are searched too. Near vectors are more relevant
/// than text matches with a lower score.
const MIN_TEXT_SCORE: f64 = 0.5;
/// The constant of reciprocal rank fusion.
const RANK_SHIFT: f64 = 60.0;

/// Returns the names of all kinds of scores.
pub fn kinds() -> [&'static str; 6] {
    let [exact, prefix, trigram, token_set, bm25] = Scores::default().named().map(|(name, _)| name);
    [exact, prefix, trigram, token_set, bm25, VECTOR]
}

/// An aggregate and the cosine similarity between its label and the query.
type Near = (AggregateId, f64);

/// A search request.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    pub query: String,
    pub aggregate_type: Option<String>,
    /// The id or slug of a project.
    pub project: Option<String>,
    pub limit: Option<u64>,
}

/// The response to a search.
#[derive(Debug, Clone)]
pub struct SearchOutput {
    pub results: Vec<Hit>,
    pub took_us: u64,
    pub warnings: Vec<String>,
}

/// A found aggregate.
#[derive(Debug, Clone)]
pub struct Hit {
    pub aggregate: Arc<Aggregate>,
    pub label: Arc<str>,
    pub score: f64,
    /// The kind of the highest score.
    pub kind: &'static str,
    pub scores: Scores,
    /// The cosine similarity between label and query. `None` if the search of vectors did not run or did not find the
    /// aggregate.
    pub vector: Option<f64>,
}

impl Reader {
    /// Returns the aggregates that match a query, best first. Aggregates with the same score are ordered by the last
    /// change, newest first, then by id. If the search uses no embeddings, the aggregates whose labels equal the query
    /// come first among the aggregates with the same score.
    pub async fn search(&self, search: SearchRequest) -> Result<SearchOutput> {
        let began = self.context.state().clock.monotonic_us();
        let limit = checked_limit(search.limit)?;
        let characters = search.query.chars().take(MAX_QUERY + 1).count();
        if search.query.trim().is_empty() || characters > MAX_QUERY {
            let message = format!("expected 1 to {MAX_QUERY} characters, not only white space");
            return Err(Error::invalid_at("/query", message));
        }
        self.context.refresh_graph().await?;
        let filter = SearchFilter {
            aggregate_type: search.aggregate_type.as_deref().map(Arc::from),
            without_types: WITHOUT_TYPES,
            project_id: self.context.project_id(search.project.as_deref())?,
        };
        let mut warnings = match &filter.aggregate_type {
            Some(name) if self.context.state().types.get(name).is_none() => {
                vec![format!("unknown aggregate_type '{name:.64}'")]
            }
            _ => Vec::new(),
        };
        let mut near = None;
        if let Some(vectors) = &self.context.state().search.vectors {
            match vectors.nearest(self.context.state().labelled(), &search.query, MAX_NEIGHBORS).await {
                Ok(found) => near = Some(found),
                Err(reason) => warnings.push(format!("searched by text only: {reason}")),
            }
        }
        let (context, admitted) = (self.context.clone(), self.context.admit_query().await?);
        let results = tokio::task::spawn_blocking(move || {
            let _admitted = admitted;
            let is_complete = context.index_changes();
            (is_complete, context.found(&search.query, filter, near, limit))
        });
        let (is_complete, results) = results.await.map_err(Error::internal)?;
        if !is_complete {
            warnings.push("the index does not contain all recent changes yet; repeat the search later".to_owned());
        }
        let took_us = self.context.state().clock.monotonic_us().saturating_sub(began);
        Ok(SearchOutput { results, took_us, warnings })
    }
}

impl CallContext {
    /// Updates the index of labels until the index contains all changes, or until the time limit of queries is reached.
    /// Returns whether the index contains all changes.
    fn index_changes(&self) -> bool {
        let state = self.state();
        let (began, limit_us) = (state.clock.monotonic_us(), state.settings.pipeline_ms * 1_000);
        while state.keep_labels() {
            if state.clock.monotonic_us().saturating_sub(began) > limit_us {
                return false;
            }
        }
        true
    }

    fn found(&self, query: &str, filter: SearchFilter, near: Option<Vec<Near>>, limit: usize) -> Vec<Hit> {
        let state = self.state();
        let Some(near) = near else {
            let hits = state.search.labels.search(query, filter, limit);
            return hits.into_iter().filter_map(|hit| self.show(&hit.id, hit.scores, None)).collect();
        };
        let hits = state.search.labels.search(query, filter.clone(), MAX_TEXT_MATCHES).into_iter();
        let mut found: FxHashMap<AggregateId, Hit> = FxHashMap::default();
        for (rank, hit) in hits.filter(|hit| hit.scores.bm25 > 0.0 || hit.score >= MIN_TEXT_SCORE).enumerate() {
            if let Some(shown) = self.show(&hit.id, hit.scores, None) {
                found.insert(hit.id, Hit { score: reciprocal(rank), ..shown });
            }
        }
        let near = near.into_iter().filter_map(|(id, cosine)| {
            let shown = self.show(&id, Scores::default(), Some(cosine))?;
            let admitted = filter.admits(&shown.aggregate.aggregate_type, shown.aggregate.project_id.as_ref());
            admitted.then_some((id, cosine, shown))
        });
        for (rank, (id, cosine, shown)) in near.enumerate() {
            let known = found.entry(id).or_insert(Hit { score: 0.0, ..shown });
            known.score += reciprocal(rank);
            known.vector = Some(cosine);
            if cosine > known.scores.best().1 {
                known.kind = VECTOR;
            }
        }
        let mut found: Vec<Hit> = found.into_values().collect();
        found.iter_mut().for_each(|found| found.score = (found.score * 1e4).round() / 1e4);
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| newer(&a.aggregate, &b.aggregate)));
        found.truncate(limit);
        found
    }

    fn show(&self, id: &AggregateId, scores: Scores, vector: Option<f64>) -> Option<Hit> {
        let state = self.state();
        let aggregate = state.folded.get(id.as_str()).filter(|aggregate| !aggregate.deleted)?;
        let label = state.types.get(&aggregate.aggregate_type)?.shown_label_of(&aggregate.state).unwrap_or_default();
        let (kind, score) = scores.best();
        Some(Hit { aggregate, label, score, kind, scores, vector })
    }
}

/// Returns the contribution of a rank to the score. The first rank in both rankings gives a score of 1.
fn reciprocal(rank: usize) -> f64 {
    (RANK_SHIFT + 1.0) / (RANK_SHIFT + 1.0 + rank as f64) / 2.0
}

fn newer(a: &Aggregate, b: &Aggregate) -> Ordering {
    b.last_event_at.cmp(&a.last_event_at).then_with(|| a.id.as_str().cmp(b.id.as_str()))
}

fn checked_limit(limit: Option<u64>) -> Result<usize> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid_at("/limit", format!("expected 1 to {MAX_LIMIT}, found {limit}")));
    }
    Ok(limit as usize)
}
