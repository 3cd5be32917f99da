//! Embeddings: a vector for each label, with an index for finding the nearest vectors. All vectors come from the same
//! model.

use std::collections::BTreeMap;
use std::sync::Arc;

use surrealdb::types::{Number, Value as Record};

use crate::model::id::AggregateId;
use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The statements that define the tables. An embedding contains the vector and the hash of a label, under the id of the
/// aggregate. `embedding_model:current` contains the model that made all embeddings.
const TABLES: &str = "
DEFINE TABLE IF NOT EXISTS embedding SCHEMALESS;
DEFINE TABLE IF NOT EXISTS embedding_model SCHEMALESS;";
/// The statements that delete all embeddings and record the current model. Vectors of different models cannot be
/// compared.
const RESET: &str = "
BEGIN;
UPSERT embedding_model:current SET model = $model RETURN NONE;
REMOVE INDEX IF EXISTS embedding_vector ON embedding;
DELETE embedding RETURN NONE;
COMMIT;";
/// The statements that write embeddings and delete the embeddings `$gone`, unless another server has recorded another
/// model. The statements also write the record of the model, so that they conflict with a server that records another
/// model at the same time.
const WRITE: &str = "
BEGIN;
IF (SELECT VALUE model FROM ONLY embedding_model:current) != $model { THROW 'stale head' };
UPDATE embedding_model:current SET model = $model RETURN NONE;
FOR $embedding IN $embeddings { UPSERT $embedding.id CONTENT $embedding RETURN NONE };
FOR $id IN $gone { DELETE $id RETURN NONE };
COMMIT;";
/// The number of embeddings that one query reads.
const PAGE_SIZE: usize = 5_000;
/// The number of neighbors that are examined for each requested neighbor. A larger number makes the results more
/// accurate and the search slower.
const EFFORT: usize = 2;

/// The vector of an aggregate's label.
pub struct EmbeddingRecord {
    pub id: AggregateId,
    /// The hash of the embedded text.
    pub hash: String,
    pub vector: Vec<f32>,
}

impl DatabaseReader {
    /// Returns the hash of the text of each embedding, by aggregate.
    pub async fn read_embedded(&self) -> Result<BTreeMap<AggregateId, String>> {
        let statement = "SELECT aggregate_id, hash FROM embedding ORDER BY id LIMIT $limit START $start";
        let pair = |record: &Record| {
            let id: Arc<str> = convert::text_field(record, "aggregate_id")?.into();
            Ok((AggregateId::from(id), convert::text_field(record, "hash")?.to_owned()))
        };
        Ok(self.read_pages(statement, PAGE_SIZE, pair).await?.into_iter().collect())
    }

    /// Returns whether the embeddings come from the given model.
    pub async fn has_embeddings_of(&self, model: &str) -> Result<bool> {
        let found = self.query("SELECT VALUE model FROM ONLY embedding_model:current", []).await?;
        Ok(matches!(found.first(), Some(Record::String(known)) if known == model))
    }

    /// Returns the aggregates whose labels are nearest to a vector, with their cosine similarities.
    pub async fn nearest(&self, vector: &[f32], limit: usize) -> Result<Vec<(AggregateId, f64)>> {
        // The number of neighbors is part of the operator's syntax and cannot be bound as a value.
        let statement = format!(
            "SELECT aggregate_id, vector::distance::knn() AS distance FROM embedding \
             WHERE vector <|{limit},{}|> $vector ORDER BY distance",
            limit * EFFORT
        );
        let nearest = |record: &Record| {
            let id: Arc<str> = convert::text_field(record, "aggregate_id")?.into();
            Ok((AggregateId::from(id), 1.0 - convert::float_field(record, "distance")?))
        };
        self.read_all(&statement, [("vector", numbers(vector))], nearest).await
    }
}

impl Database {
    /// Creates the tables. If the recorded model is not `model`, deletes all embeddings and records `model`.
    pub async fn begin_embeddings(&self, model: &str) -> Result<()> {
        self.query(TABLES, []).await?;
        if !self.has_embeddings_of(model).await? {
            self.query_again(RESET, [("model", convert::text(model))]).await?;
        }
        Ok(())
    }

    /// Writes embeddings, whose vectors must all have the same length. Deletes the embeddings of the aggregates `gone`,
    /// which no longer have a label. Fails with [`Error::Conflict`] if another server stores embeddings of another
    /// model.
    pub async fn write_embeddings(
        &self,
        model: &str,
        embeddings: &[EmbeddingRecord],
        gone: &[AggregateId],
    ) -> Result<()> {
        if !self.has_embeddings_of(model).await? {
            return Err(Error::Conflict);
        }
        if let Some(first) = embeddings.first() {
            // The length cannot inject statements, because it is a number. All vectors of a model have the same length.
            let index = format!(
                "BEGIN;
                IF (SELECT VALUE model FROM ONLY embedding_model:current) != $model {{ THROW 'stale head' }};
                DEFINE INDEX IF NOT EXISTS embedding_vector ON embedding FIELDS vector HNSW DIMENSION {} DIST COSINE
                    TYPE F32;
                COMMIT;",
                first.vector.len()
            );
            self.query_again(&index, [("model", convert::text(model))]).await?;
        }
        let values = [
            ("model", convert::text(model)),
            ("embeddings", convert::array(embeddings.iter().map(record))),
            ("gone", convert::array(gone.iter().map(|id| convert::record_id("embedding", id.to_string())))),
        ];
        self.query_again(WRITE, values).await.map(drop)
    }
}

fn record(embedding: &EmbeddingRecord) -> Record {
    convert::object([
        ("id", convert::record_id("embedding", embedding.id.to_string())),
        ("aggregate_id", convert::text(embedding.id.as_str())),
        ("hash", convert::text(&embedding.hash)),
        ("vector", numbers(&embedding.vector)),
    ])
}

fn numbers(vector: &[f32]) -> Record {
    convert::array(vector.iter().map(|x| Record::Number(Number::Float(f64::from(*x)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn embedding(id: &str, length: usize) -> EmbeddingRecord {
        EmbeddingRecord { id: AggregateId::from(Arc::from(id)), hash: id.into(), vector: vec![1.0; length] }
    }

    #[tokio::test]
    async fn a_server_with_an_earlier_model_writes_no_embeddings() {
        let store = Store::connect("mem://").await.expect("memory");
        let id = "00000000-0000-0000-0000-000000000001";
        let (here, there) = (store.share(), store.share());
        let here = here.workspace(id).await.expect("a database");
        let there = there.workspace(id).await.expect("a database");
        here.begin_embeddings("small").await.expect("begun");
        here.write_embeddings("small", &[embedding("a", 2)], &[]).await.expect("written");
        there.begin_embeddings("large").await.expect("begun");
        let refused = here.write_embeddings("small", &[embedding("b", 2)], &[]).await;
        assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
        there.write_embeddings("large", &[embedding("c", 3)], &[]).await.expect("written");
        let embedded = there.read_embedded().await.expect("read");
        assert_eq!(embedded.into_values().collect::<Vec<_>>(), ["c"]);
        let nearest = there.nearest(&[1.0; 3], 5).await.expect("found");
        assert_eq!(nearest.len(), 1);
    }
}
