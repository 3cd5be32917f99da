//! Vectors beside the text search: which labels wait for theirs, and what lies near a query.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::folded::Folded;
use super::types::Types;
use crate::error::{Error, Result};
use crate::hook::{Embed, EmbedFailure};
use crate::model::id::AggregateId;
use crate::resident::labels::index::{LABEL_BYTES, beginning};
use crate::store::Database;
use crate::store::embeddings::Embedding;

/// Labels that are embedded at a time.
const AT_ONCE: usize = 32;
/// How long a search waits for the vector of its query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// Below this two texts mean nothing alike.
const LEAST_COSINE: f64 = 0.2;

/// What vectors are made of: aggregates with their types, and the place where vectors are stored.
#[derive(Clone, Copy)]
pub struct Labelled<'a> {
    pub log: &'a Database,
    pub folded: &'a Folded,
    pub types: &'a Types,
}

/// The embedding of one workspace, where it is switched on.
pub struct Vectors {
    embed: Arc<dyn Embed>,
    /// Labels whose vectors may be of an older text.
    changed: Mutex<FxHashSet<AggregateId>>,
    /// What the stored vectors are made of, read when it is first needed.
    embedded: OnceCell<Mutex<BTreeMap<AggregateId, String>>>,
}

impl Vectors {
    pub fn new(embed: Arc<dyn Embed>) -> Vectors {
        Vectors { embed, changed: Mutex::default(), embedded: OnceCell::new() }
    }

    /// Marks aggregates that changed.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a AggregateId>) {
        held(&self.changed).extend(ids.into_iter().cloned());
    }

    /// How many aggregates wait to be looked at.
    pub fn waiting(&self) -> usize {
        held(&self.changed).len()
    }

    /// Runs the model on a thread where it may block.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let embed = self.embed.clone();
        let (asked, vectors) = tokio::task::spawn_blocking(move || (texts.len(), embed.embed(&texts)))
            .await
            .map_err(|error| EmbedFailure(error.to_string()))?;
        let vectors = vectors?;
        let length = vectors.first().map_or(0, Vec::len);
        let fits = |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|x| x.is_finite());
        if vectors.len() != asked || length == 0 || !vectors.iter().all(fits) {
            return Err(EmbedFailure("the model's answer is not a vector of numbers for each text".into()));
        }
        Ok(vectors)
    }

    async fn embedded(&self, labelled: Labelled<'_>) -> Result<&Mutex<BTreeMap<AggregateId, String>>> {
        let read = async || -> Result<_> {
            labelled.log.begin_embeddings(self.embed.model()).await?;
            let embedded = labelled.log.read_embedded().await?;
            // What changed while nobody looked is found by its hash.
            self.touch(labelled.folded.snapshot().iter().map(|aggregate| &aggregate.id));
            self.touch(embedded.keys());
            Ok(Mutex::new(embedded))
        };
        self.embedded.get_or_try_init(read).await
    }

    /// Embeds some of the labels that wait. Those that cannot be embedded now wait on.
    pub async fn step(&self, labelled: Labelled<'_>) -> Result<()> {
        let embedded = self.embedded(labelled).await?;
        let (mut wanted, mut gone, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        while wanted.len() + gone.len() < AT_ONCE {
            let Some(id) = held(&self.changed).iter().next().cloned() else { break };
            held(&self.changed).remove(&id);
            match (label(labelled, &id), held(embedded).get(&id)) {
                (Some(label), known) => {
                    let hash = hash_of(&label);
                    if known != Some(&hash) {
                        wanted.push((id.clone(), label, hash));
                        taken.push(id);
                    }
                }
                (None, Some(_)) => {
                    gone.push(id.clone());
                    taken.push(id);
                }
                (None, None) => {}
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        let result = self.write(labelled, embedded, &wanted, &gone).await;
        if result.is_err() {
            self.touch(&taken);
        }
        result
    }

    async fn write(
        &self,
        labelled: Labelled<'_>,
        embedded: &Mutex<BTreeMap<AggregateId, String>>,
        wanted: &[(AggregateId, String, String)],
        gone: &[AggregateId],
    ) -> Result<()> {
        let vectors = self.embed(wanted.iter().map(|(_, label, _)| label.clone()).collect()).await;
        let vectors = vectors.map_err(Error::internal)?;
        let made = wanted.iter().zip(vectors);
        let made = made.map(|((id, _, hash), vector)| Embedding { id: id.clone(), hash: hash.clone(), vector });
        let made: Vec<Embedding> = made.collect();
        labelled.log.write_embeddings(&made, gone).await?;
        let mut embedded = held(embedded);
        embedded.extend(made.into_iter().map(|embedding| (embedding.id, embedding.hash)));
        gone.iter().for_each(|id| drop(embedded.remove(id)));
        Ok(())
    }

    /// The aggregates whose labels mean something like the query, nearest first, with how near.
    pub async fn nearest(
        &self,
        labelled: Labelled<'_>,
        query: &str,
        most: usize,
    ) -> Result<Vec<(AggregateId, f64)>, String> {
        let embedded = self.embedded.get().ok_or("labels are being embedded for the first time")?;
        if held(embedded).is_empty() {
            return Ok(Vec::new());
        }
        let vectors = tokio::time::timeout(QUERY_TIMEOUT, self.embed(vec![query.to_owned()])).await;
        let vectors = vectors.map_err(|_| "the embedding takes too long")?.map_err(|failure| {
            tracing::warn!(error = %failure, "a query was not embedded");
            "the query could not be embedded"
        })?;
        let Some(vector) = vectors.first() else { return Ok(Vec::new()) };
        let nearest = labelled.log.nearest(vector, most).await.map_err(|error| {
            tracing::warn!(%error, "vectors were not searched");
            "vectors could not be searched"
        })?;
        Ok(nearest.into_iter().filter(|(_, cosine)| *cosine >= LEAST_COSINE).collect())
    }
}

fn label(labelled: Labelled<'_>, id: &AggregateId) -> Option<String> {
    let aggregate = labelled.folded.get(id.as_str()).filter(|aggregate| !aggregate.deleted)?;
    let label = labelled.types.get(&aggregate.aggregate_type)?.label_of(&aggregate.state)?;
    Some(beginning(&label, LABEL_BYTES).to_owned())
}

fn hash_of(label: &str) -> String {
    hex::encode(&Sha256::digest(label)[..16])
}

// Each change under such a lock is one insertion or removal: what panicked left a whole map behind.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
