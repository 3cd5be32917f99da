//! The data that searches use: the index of labels and, if vector search is enabled, the vectors.

use std::sync::Arc;

use super::folded_states::FoldedStates;
use super::progress::Progress;
use super::types::Types;
use super::vectors::Vectors;
use crate::hook::Embed;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::resident::labels::Labels;
use crate::resident::labels::index::SearchText;

/// The search index of one workspace.
#[derive(Default)]
pub struct SearchIndex {
    pub labels: Labels,
    pub vectors: Option<Vectors>,
    /// The number of redefinitions that changed the set of searched texts.
    pub redefined: Progress,
}

impl SearchIndex {
    pub fn new(embed: Option<Arc<dyn Embed>>) -> SearchIndex {
        SearchIndex { vectors: embed.map(Vectors::new), ..SearchIndex::default() }
    }

    /// Marks aggregates whose labels or bodies may have changed.
    pub fn touch<'a>(&self, ids: impl Iterator<Item = &'a AggregateId> + Clone) {
        if let Some(vectors) = &self.vectors {
            vectors.touch(ids.clone());
        }
        self.labels.touch(ids);
    }

    /// Returns the approximate memory of the index of labels, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.labels.size_bytes()
    }

    /// Builds the index of labels if needed, and updates it with some of the changed aggregates. Returns whether more
    /// aggregates are left to index.
    pub fn keep_labels(&self, folded: &FoldedStates, types: &Types) -> bool {
        let definitions = types.all();
        let text = |aggregate: &Aggregate| -> Option<SearchText> {
            self.labels.text(aggregate, definitions.get(&aggregate.aggregate_type)?)
        };
        let all = folded.snapshot();
        self.labels.make(|tell| all.iter().filter_map(|aggregate| text(aggregate)).for_each(tell));
        self.labels.catch_up(|id: &AggregateId| text(&*folded.get(id.as_str())?))
    }
}
