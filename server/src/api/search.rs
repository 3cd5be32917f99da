//! `/aggregates/search`: searching aggregates by label and body.

use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::search::{Hit, SearchOutput, SearchRequest as LabelSearch};
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{MatchKinds, OneOf};
use crate::wire::shown::shown;

pub struct Api;

/// A search query and its filters.
#[derive(Object, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SearchBody {
    /// The text to find: words of a label or a body, or the beginning of a word. Typing errors and a different word
    /// order are tolerated.
    query: String,
    /// An aggregate type; the default is all types except `task`.
    r#type: Option<String>,
    /// A project's id or slug.
    project_id: Option<String>,
    /// The maximum number of hits, 1 to 100; the default is 10.
    limit: Option<u64>,
}

shown! {
    /// The hits of a search, best first.
    struct SearchResult from found: SearchOutput;

    results: Vec<SearchHit> = found.results.into_iter().map(SearchHit::from).collect(),
    took_ms: f64 = found.took_us as f64 / 1e3,
    @read_only warnings: Option<Vec<String>> = Some(found.warnings).filter(|warnings| !warnings.is_empty()),
}

shown! {
    /// A hit of a search.
    struct SearchHit from hit: Hit;

    aggregate_id: String = hit.aggregate.id.to_string(),
    aggregate_type: String = hit.aggregate.aggregate_type.to_string(),
    project_id: Option<String> = hit.aggregate.project_id.as_deref().map(str::to_owned),
    /// The label. A label of more than 512 bytes is truncated.
    label: String = hit.label.to_string(),
    /// The total score from 0 to 1. Without an embedding, the total score is the highest score in `match`. With an
    /// embedding, the total score combines the hit's ranks in the text search and in the vector search.
    score: f64 = hit.score,
    r#match: SearchMatch = SearchMatch::from(&hit),
    #[oai(rename = "_last_event_at")]
    #[serde(rename = "_last_event_at")]
    last_event_at: String = format_date(hit.aggregate.last_event_at),
}

shown! {
    /// The similarity of the aggregate and the query as separate scores, each from 0 to 1.
    struct SearchMatch from hit: &Hit;

    /// The name of the highest score.
    kind: OneOf<MatchKinds> = hit.kind.into(),
    /// The score for a label that equals the query. Case, accents and punctuation are ignored.
    exact: f64 = hit.scores.exact,
    /// The score for a label that begins with the query or, with less weight, has a word that begins with the query.
    prefix: f64 = hit.scores.prefix,
    /// The share of trigrams that the label and the query have in common.
    trigram: f64 = hit.scores.trigram,
    /// The score for words that the label and the query have in common, in any order and with typing errors.
    token_set: f64 = hit.scores.token_set,
    /// The BM25 score of the label and the body.
    bm25: f64 = hit.scores.bm25,
    /// The cosine similarity of the embeddings of label and query. Present only if an embedding is configured and the
    /// search by embeddings found the aggregate.
    @read_only vector: Option<f64> = hit.vector.map(|cosine| (cosine * 1e4).round() / 1e4),
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Searches aggregates by label (exactly, by prefix and by similarity), and by the words of label and body.
    ///
    /// Typing errors, a different word order and missing accents are tolerated, and the last word may be incomplete.
    /// Each hit has the scores that make up its total score. Hits with equal total scores are ordered by their last
    /// change, newest first. Without an embedding, labels that equal the query exactly come first among these hits.
    #[oai(path = "/aggregates/search", method = "post", operation_id = "search_aggregates")]
    async fn search_aggregates(
        &self,
        access: ApiRead,
        body: Body<SearchBody>,
    ) -> ApiResult<JsonResponse<SearchResult>> {
        let search = LabelSearch {
            query: body.query.clone(),
            aggregate_type: body.r#type.clone(),
            project: body.project_id.clone(),
            limit: body.limit,
        };
        Ok(JsonResponse::new(&SearchResult::from(access.0.search(search).await?)))
    }
}
