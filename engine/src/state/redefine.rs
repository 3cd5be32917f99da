//! Redefinition of types. If the new definition folds differently, the type's aggregates are folded again into separate
//! states. The new states then replace the old states in one step. Appends continue while the aggregates are folded.
//!
//! The definition in the store is authoritative. Each snapshot contains the revision of the definition that it was
//! folded under. Therefore, after a crash, the next process folds all states under one definition, either the old or
//! the new one.
//!
//! After the refolding, the appender folds the events that were appended during the refolding into the new states, and
//! publishes the new states together with the stored definition. `head:log` counts the changes of definitions. If
//! several servers share the store, every append of events checks this count, so all servers use the same definitions.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::sync::MutexGuard;

use super::State;
use super::batches::BATCH;
use super::load::{FoldGuard, fold_event};
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::store::Database;
use crate::store::workspace::definitions::StoredDefinition;

/// The rounds of a refolding end after a round with at most this number of events. The events that were appended during
/// the last round are folded while appends wait.
const MAX_BLOCKING_EVENTS: u64 = 64;
/// The maximum number of rounds that fold new events while appends continue. Each round folds the events appended
/// during the previous round. Reading events takes less time than writing events, so the rounds get shorter.
const ROUNDS: usize = 16;

/// The aggregates of a type, folded under a definition that is not in use yet.
pub struct RefoldedType {
    definition: Arc<Definition>,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
    /// The position of the log up to which the states include all events of the type. `None` if no aggregate is folded
    /// yet.
    position: Option<u64>,
}

impl RefoldedType {
    /// Creates an empty set of refolded aggregates for a definition.
    pub fn under(definition: Arc<Definition>) -> RefoldedType {
        RefoldedType { definition, states: FxHashMap::default(), position: None }
    }
}

/// The types that other servers redefined, with the refolded states of their aggregates. The old states stay in use
/// until the refolded states replace them.
pub struct TypeRefold<'a> {
    refolded: Vec<RefoldedType>,
    _one: Option<MutexGuard<'a, ()>>,
}

impl TypeRefold<'_> {
    pub fn none() -> TypeRefold<'static> {
        TypeRefold { refolded: Vec::new(), _one: None }
    }
}

impl State {
    /// Folds the aggregates of a type under a definition that is not in use yet. Then folds the events that were
    /// appended during the folding, in rounds. Stops after a round with at most [`MAX_BLOCKING_EVENTS`] new events, or
    /// after [`ROUNDS`] rounds.
    pub async fn fold_separately(&self, definition: &Arc<Definition>) -> Result<RefoldedType> {
        let mut refolded = RefoldedType::under(definition.clone());
        for _ in 0..ROUNDS {
            if self.fold_changed(&mut refolded).await? <= MAX_BLOCKING_EVENTS {
                break;
            }
        }
        Ok(refolded)
    }

    /// Folds the type's events that `refolded` does not contain yet, up to the position of the published states. On the
    /// first call, folds all aggregates first. Returns the number of events of any type that were appended since the
    /// last call. The first call counts the events since its own start.
    async fn fold_changed(&self, refolded: &mut RefoldedType) -> Result<u64> {
        let first = match refolded.position {
            Some(position) => position,
            None => self.fold_all(refolded).await?,
        };
        let (mut position, end) = (first, self.folded.position());
        while position < end {
            let events = self.batch_after(position, BATCH).await?;
            let visible = events.iter().take_while(|event| event.position <= end);
            for event in visible.filter(|event| event.aggregate_type == refolded.definition.type_name) {
                fold_event(&mut refolded.states, event, &refolded.definition);
            }
            position = events.last().map_or(end, |last| last.position);
            tokio::task::yield_now().await;
        }
        refolded.position = Some(end);
        Ok(end - first)
    }

    /// Folds all aggregates of the type. Returns a position up to which the states include all events.
    async fn fold_all(&self, refolded: &mut RefoldedType) -> Result<u64> {
        // Reads the position before the states, because some states may include later events.
        let position = self.folded.position();
        let RefoldedType { definition, states, .. } = refolded;
        let snapshot = self.folded.snapshot();
        for current in snapshot.iter().filter(|aggregate| aggregate.aggregate_type == definition.type_name) {
            let folded = self.fold_stream(&current.id, current.version, None, definition).await?;
            states.extend(folded.map(|folded| (folded.id.clone(), Arc::new(folded))));
        }
        Ok(position)
    }

    /// Writes a definition and puts the definition into use. If the definition folds events differently than the
    /// previous definition, also publishes the refolded aggregates of the type. `types_changed` is the number of
    /// changes to definitions when the redefinition was decided. The write fails if the store has another number of
    /// changes. If the write fails, nothing changes in memory. If the outcome of the write is unknown, the store may
    /// contain the new definition.
    pub async fn define(&self, db: &Database, mut refolded: RefoldedType, types_changed: u64) -> Result<()> {
        let folding = self.folding().await;
        if self.needs_refold(&refolded.definition) {
            self.fold_changed(&mut refolded).await?;
        }
        db.replace_definition(&refolded.definition, types_changed, self.folded.position()).await?;
        self.types.set_changed(types_changed + 1);
        self.show_defined(refolded, &folding);
        self.report_log();
        Ok(())
    }

    /// Refolds the aggregates of types that other servers redefined, separately from the published states. Further
    /// calls wait until the result is dropped.
    pub(super) async fn fold_redefined(&self) -> Result<TypeRefold<'_>> {
        if self.is_exclusive() {
            return Ok(TypeRefold::none());
        }
        let one = self.types.refolding.lock().await;
        let mut refolded = Vec::new();
        if self.db.types_changed().await? != self.types.changed() {
            for StoredDefinition { definition, .. } in self.db.read_definitions().await? {
                if self.needs_refold(&definition) {
                    refolded.push(self.fold_separately(&Arc::new(definition)).await?);
                }
            }
        }
        Ok(TypeRefold { refolded, _one: Some(one) })
    }

    /// Puts the stored definitions into use if other servers have changed definitions. For a definition in `refolding`,
    /// folds the newest events into the states in `refolding`, and uses these states. For any other definition that
    /// folds events differently than the previous definition, refolds the aggregates of the type.
    pub(super) async fn reload_definitions(&self, refolding: TypeRefold<'_>, folding: &FoldGuard<'_>) -> Result<()> {
        if self.is_exclusive() {
            return Ok(());
        }
        // Reads the change counter before the definitions, so that the next check detects a change in between.
        let changed = self.db.types_changed().await?;
        if changed == self.types.changed() {
            return Ok(());
        }
        let mut refolding = refolding.refolded;
        for StoredDefinition { definition, .. } in self.db.read_definitions().await? {
            let definition = Arc::new(definition);
            let index = refolding.iter().position(|refolded| refolded.definition == definition);
            let mut refolded = match index {
                Some(index) => refolding.swap_remove(index),
                None => RefoldedType::under(definition.clone()),
            };
            if self.needs_refold(&definition) {
                self.fold_changed(&mut refolded).await?;
            }
            self.show_defined(refolded, folding);
        }
        self.types.set_changed(changed);
        Ok(())
    }

    fn needs_refold(&self, definition: &Definition) -> bool {
        let current = self.types.get(&definition.type_name);
        current.is_some_and(|current| current.revision != definition.revision)
    }

    fn show_defined(&self, refolded: RefoldedType, _: &FoldGuard<'_>) {
        let RefoldedType { definition, states, .. } = refolded;
        let mut states: Vec<Arc<Aggregate>> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        // The states are published before the definition. A snapshot that is written between these two steps may carry
        // an older revision than its state was folded under. Loading folds such a snapshot again. In the opposite
        // order, a snapshot may carry a newer revision than its state was folded under, and loading would use the wrong
        // state.
        self.folded.replace(&states);
        self.search.touch(states.iter().map(|aggregate| &aggregate.id));
        self.set_definition(definition);
    }
}
