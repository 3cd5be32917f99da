//! Embeddings from a service with OpenAI's interface: `POST <url>/embeddings`.

use anyhow::{Context as _, ensure};
use foldwork_engine::hook::{Embed, EmbedFailure};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::config::Embedding;

/// The maximum number of characters of the service's response that an error message includes.
const MAX_ERROR_CHARS: usize = 200;

/// A client of an embedding service for one of the service's models.
pub struct HttpModel {
    client: reqwest::Client,
    address: reqwest::Url,
    model: String,
    key: Option<String>,
    at_once: usize,
    runtime: Handle,
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

impl HttpModel {
    /// Creates a client without sending a request. Must be called within a Tokio runtime.
    pub fn new(settings: &Embedding, key: Option<String>) -> anyhow::Result<HttpModel> {
        ensure!(!settings.model.is_empty(), "search.embedding.model is empty; expected the name of a model");
        let address = format!("{}/embeddings", settings.url.trim_end_matches('/'));
        let address =
            address.parse().with_context(|| format!("search.embedding.url: invalid URL '{}'", settings.url))?;
        let client = reqwest::Client::builder().timeout(settings.calls.timeout).build()?;
        let (model, at_once) = (settings.model.clone(), settings.calls.batch.max(1));
        Ok(HttpModel { client, address, model, key, at_once, runtime: Handle::current() })
    }

    async fn ask(&self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut request =
            self.client.post(self.address.clone()).json(&EmbeddingRequest { model: &self.model, input: texts });
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await?;
        let status = response.status();
        if !status.is_success() {
            let excerpt: String = response.text().await?.chars().take(MAX_ERROR_CHARS).collect();
            anyhow::bail!("the embedding service returned {status}: {excerpt}");
        }
        let mut body: EmbeddingResponse = response.json().await?;
        ensure!(
            body.data.len() == texts.len(),
            "the embedding service returned {} vectors for {} texts",
            body.data.len(),
            texts.len()
        );
        // Sorts the vectors by index, because the service does not guarantee their order.
        body.data.sort_by_key(|embedded| embedded.index);
        Ok(body.data.into_iter().map(|embedded| embedded.embedding).collect())
    }
}

impl Embed for HttpModel {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        let mut vectors = Vec::with_capacity(texts.len());
        for part in texts.chunks(self.at_once) {
            let embeddings = self.runtime.block_on(self.ask(part));
            vectors.extend(embeddings.map_err(|error| EmbedFailure(format!("{error:#}")))?);
        }
        Ok(vectors)
    }
}
