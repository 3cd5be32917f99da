//! Published revisions: the state of each published article at the version that is visible to readers. A revision is
//! written together with the publishing event, so that readers need not fold the events of the article.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::nodes::{NodeSnapshot, node_record, read_node};
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::store::{DatabaseReader, Result, convert};

/// The statement that stores the published revisions of articles. If an append publishes articles, its transaction
/// includes this statement.
pub(super) const PUBLISHED: &str = "FOR $revision IN $published { UPSERT $revision.id CONTENT $revision RETURN NONE };";

impl DatabaseReader {
    /// Returns the stored published revision of an article. Returns `None` if no revision is stored, for example
    /// because an older program published the article.
    pub async fn read_published(&self, id: &AggregateId, definition: &Arc<Definition>) -> Result<Option<NodeSnapshot>> {
        let read =
            |record: &Record| read_node(record, |_| Some(definition.clone()))?.map_err(|unreadable| unreadable.reason);
        self.read_first("SELECT * FROM $id", [("id", record_id(id))], read).await
    }
}

/// Returns the record of a published article. `revision` is the revision of the definition under which the article was
/// folded.
pub(super) fn published_record(article: &Aggregate, revision: u64) -> Result<Record> {
    node_record(record_id(&article.id), article, revision)
}

fn record_id(id: &AggregateId) -> Record {
    convert::record_id("published", id.to_string())
}
