//! `/aggregates/search`.

use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::search::{Hit, Search as LabelSearch};
use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::Section;
use crate::auth::ApiRead;
use crate::http::error::{ApiResult, answer};
use crate::wire::body::{Body, Written};
use crate::wire::closed_sets::{MatchKinds, Word};

pub struct Api;

/// What is searched, and where.
#[derive(Object, Deserialize, Default)]
#[serde(default)]
struct SearchBody {
    /// Words of a label, or the beginning of one; letters may be wrong and words in another order.
    query: String,
    /// An aggregate type. Without it all types but `task` are searched.
    #[oai(nullable)]
    r#type: Option<String>,
    /// A project's id or slug.
    #[oai(nullable)]
    project_id: Option<String>,
    /// 1 to 100; 10 where it is not said.
    #[oai(nullable)]
    limit: Option<u64>,
}

/// The aggregates that were found, best first.
#[derive(Object, Serialize)]
struct SearchResult {
    results: Vec<SearchHit>,
    took_ms: f64,
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

/// An aggregate that was found.
#[derive(Object, Serialize)]
struct SearchHit {
    aggregate_id: String,
    aggregate_type: String,
    #[oai(nullable)]
    project_id: Option<String>,
    label: String,
    /// From 0 to 1: the best measure, or with an embedding the places in both rankings, fused.
    score: f64,
    r#match: SearchMatch,
    #[oai(rename = "_last_event_at")]
    #[serde(rename = "_last_event_at")]
    last_event_at: String,
}

/// How well the aggregate answers the query by each measure, from 0 to 1.
#[derive(Object, Serialize)]
struct SearchMatch {
    /// The best of them.
    kind: Word<MatchKinds>,
    /// The label is what is asked, but for case, accents and signs.
    exact: f64,
    /// The label, or with less weight a word in it, begins with what is asked.
    prefix: f64,
    /// Trigrams that both have, of those that either has.
    trigram: f64,
    /// Words that both have, in any order and with letters wrong.
    token_set: f64,
    /// BM25 over label and body.
    bm25: f64,
    /// The cosine between the meanings of label and query, where an embedding is switched on.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<f64>,
}

impl From<Hit> for SearchHit {
    fn from(found: Hit) -> SearchHit {
        let Hit { aggregate, label, score, kind, scores, vector } = found;
        SearchHit {
            aggregate_id: aggregate.id.to_string(),
            aggregate_type: aggregate.aggregate_type.to_string(),
            project_id: aggregate.project_id.as_deref().map(str::to_owned),
            label: label.to_string(),
            score,
            r#match: SearchMatch {
                kind: kind.into(),
                exact: scores.exact,
                prefix: scores.prefix,
                trigram: scores.trigram,
                token_set: scores.token_set,
                bm25: scores.bm25,
                vector: vector.map(|cosine| (cosine * 1e4).round() / 1e4),
            },
            last_event_at: format_date(aggregate.last_event_at),
        }
    }
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Searches aggregates by their labels: exact, by prefix, by likeness, and by words of label and body.
    ///
    /// Letters may be wrong, words in another order, accents left out, and the last word may be a beginning. Each hit
    /// tells how well it answers by each measure; of equal scores the one changed last comes first.
    #[oai(path = "/aggregates/search", method = "post", operation_id = "search_aggregates")]
    async fn search_aggregates(&self, access: ApiRead, body: Body<SearchBody>) -> ApiResult<Written<SearchResult>> {
        let asked = LabelSearch {
            query: body.query.clone(),
            aggregate_type: body.r#type.clone(),
            project: body.project_id.clone(),
            limit: body.limit,
        };
        let found = answer(access.0.search(asked).await)?;
        Ok(Written::new(&SearchResult {
            results: found.results.into_iter().map(SearchHit::from).collect(),
            took_ms: found.took_us as f64 / 1e3,
            warnings: Some(found.warnings).filter(|warnings| !warnings.is_empty()),
        }))
    }
}
