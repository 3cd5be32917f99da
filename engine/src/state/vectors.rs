//! Vector search: keeps the vectors of labels up to date, and finds the labels nearest to a query.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::folded_states::FoldedStates;
use super::types::Types;
use crate::error::{Error, Result};
use crate::hook::{Embed, EmbedFailure};
use crate::model::id::AggregateId;
use crate::resident::labels::index::{LABEL_BYTES, beginning};
use crate::store::workspace::embeddings::EmbeddingRecord;
use crate::store::{Database, DatabaseReader};

/// The maximum number of changed labels that one step processes.
const MAX_BATCH: usize = 32;
/// The maximum time that a search waits for the vector of its query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// The minimum cosine similarity of a match.
const MIN_COSINE: f64 = 0.2;

/// The inputs for computing and searching vectors: the aggregates, their types, and the database that contains the
/// vectors.
#[derive(Clone, Copy)]
pub struct VectorInput<'a> {
    /// The id of the workspace, for log messages.
    pub workspace: &'a str,
    pub db: &'a DatabaseReader,
    pub folded: &'a FoldedStates,
    pub types: &'a Types,
}

/// The vectors of one workspace. Exists only if vector search is enabled. Changes under the locks insert or remove
/// whole entries, so a panic cannot leave a partial entry.
pub struct Vectors {
    embed: Arc<dyn Embed>,
    /// The aggregates whose vectors may be out of date.
    changed: Mutex<FxHashSet<AggregateId>>,
    /// The hash of each label that has a vector, by aggregate. Read from the store on first use.
    embedded: OnceCell<Mutex<BTreeMap<AggregateId, String>>>,
}

impl Vectors {
    pub fn new(embed: Arc<dyn Embed>) -> Vectors {
        Vectors { embed, changed: Mutex::default(), embedded: OnceCell::new() }
    }

    /// Marks aggregates whose labels may have changed.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a AggregateId>) {
        self.changed.lock().extend(ids.into_iter().cloned());
    }

    /// Returns the number of aggregates whose vectors may be out of date.
    pub fn waiting(&self) -> usize {
        self.changed.lock().len()
    }

    /// Returns one vector for each text. Runs the model on a thread for blocking work.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let embed = self.embed.clone();
        let (expected, vectors) = tokio::task::spawn_blocking(move || (texts.len(), embed.embed(&texts)))
            .await
            .map_err(|error| EmbedFailure(error.to_string()))?;
        let vectors = vectors?;
        let length = vectors.first().map_or(0, Vec::len);
        let fits = |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|x| x.is_finite());
        if vectors.len() != expected || length == 0 || !vectors.iter().all(fits) {
            let message = "the model must return one vector for each text; all vectors must have the same length, \
                           which is not 0, and only finite numbers";
            return Err(EmbedFailure(message.into()));
        }
        Ok(vectors)
    }

    async fn embedded(
        &self,
        labelled: VectorInput<'_>,
        db: &Database,
    ) -> Result<&Mutex<BTreeMap<AggregateId, String>>> {
        let read = async || -> Result<_> {
            db.begin_embeddings(self.embed.model()).await?;
            let embedded = db.read_embedded().await?;
            // Marks all aggregates as changed, because labels may have changed before this read. The next steps embed
            // only labels with another hash.
            self.touch(labelled.folded.snapshot().iter().map(|aggregate| &aggregate.id));
            self.touch(embedded.keys());
            Ok(Mutex::new(embedded))
        };
        self.embedded.get_or_try_init(read).await
    }

    /// Embeds some of the changed labels, and removes the vectors of labels that no longer exist. If the step fails,
    /// the labels stay marked as changed.
    pub async fn step(&self, labelled: VectorInput<'_>, db: &Database) -> Result<()> {
        let embedded = self.embedded(labelled, db).await?;
        let (mut pending, mut gone) = (Vec::new(), Vec::new());
        while pending.len() + gone.len() < MAX_BATCH {
            let Some(id) = self.changed.lock().extract_if(|_| true).next() else { break };
            match (label(labelled, &id), embedded.lock().get(&id)) {
                (Some(label), known) => {
                    let hash = hash_of(&label);
                    if known != Some(&hash) {
                        pending.push((id, label, hash));
                    }
                }
                (None, Some(_)) => gone.push(id),
                (None, None) => {}
            }
        }
        if pending.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let result = self.write(db, embedded, &pending, &gone).await;
        if result.is_err() {
            self.touch(pending.iter().map(|(id, ..)| id).chain(&gone));
        }
        result
    }

    async fn write(
        &self,
        db: &Database,
        embedded: &Mutex<BTreeMap<AggregateId, String>>,
        pending: &[(AggregateId, String, String)],
        gone: &[AggregateId],
    ) -> Result<()> {
        self.check_model(db).await?;
        let vectors = self.embed(pending.iter().map(|(_, label, _)| label.clone()).collect()).await;
        let vectors = vectors.map_err(Error::internal)?;
        let embeddings = pending.iter().zip(vectors);
        let embeddings =
            embeddings.map(|((id, _, hash), vector)| EmbeddingRecord { id: id.clone(), hash: hash.clone(), vector });
        let embeddings: Vec<EmbeddingRecord> = embeddings.collect();
        if let Err(error) = db.write_embeddings(self.embed.model(), &embeddings, gone).await {
            self.check_model(db).await?;
            return Err(error.into());
        }
        let mut embedded = embedded.lock();
        embedded.extend(embeddings.into_iter().map(|embedding| (embedding.id, embedding.hash)));
        gone.iter().for_each(|id| drop(embedded.remove(id)));
        Ok(())
    }

    /// Fails if the stored embeddings do not come from the model of this server. In this case, another server uses a
    /// different model.
    async fn check_model(&self, db: &Database) -> Result<()> {
        let model = self.embed.model();
        if db.has_embeddings_of(model).await? {
            return Ok(());
        }
        let message = format!(
            "another server uses a model other than '{model}'; all servers need the same [search.embedding] settings"
        );
        Err(Error::internal(EmbedFailure(message)))
    }

    /// Returns up to `most` aggregates whose labels are similar to the query, nearest first, each with its cosine
    /// similarity. The error is a message for the client.
    pub async fn nearest(
        &self,
        labelled: VectorInput<'_>,
        query: &str,
        most: usize,
    ) -> Result<Vec<(AggregateId, f64)>, String> {
        let embedded = self.embedded.get().ok_or("labels are being embedded for the first time")?;
        if embedded.lock().is_empty() {
            return Err("no label is embedded yet".into());
        }
        let vectors = tokio::time::timeout(QUERY_TIMEOUT, self.embed(vec![query.to_owned()])).await;
        let late = |_| format!("embedding the query took longer than {} s", QUERY_TIMEOUT.as_secs());
        let vectors = vectors.map_err(late)?.map_err(|failure| {
            tracing::warn!(error = %failure, workspace = labelled.workspace, "failed to embed a query");
            "the query could not be embedded"
        })?;
        let Some(vector) = vectors.first() else { return Ok(Vec::new()) };
        let nearest = labelled.db.nearest(vector, most).await.map_err(|error| {
            tracing::warn!(%error, workspace = labelled.workspace, "failed to search vectors");
            "vectors could not be searched"
        })?;
        Ok(nearest.into_iter().filter(|(_, cosine)| *cosine >= MIN_COSINE).collect())
    }
}

fn label(labelled: VectorInput<'_>, id: &AggregateId) -> Option<String> {
    let aggregate = labelled.folded.get(id.as_str()).filter(|aggregate| !aggregate.deleted)?;
    let label = labelled.types.get(&aggregate.aggregate_type)?.label_of(&aggregate.state)?;
    Some(beginning(&label, LABEL_BYTES).to_owned())
}

fn hash_of(label: &str) -> String {
    hex::encode(&Sha256::digest(label)[..16])
}
