//! Redefining a type: where it folds otherwise than before, its aggregates are folded again beside the states that serve,
//! and swapped in at once. Appends go on meanwhile.
//!
//! The definition in the store decides. A snapshot tells the revision that it was folded under, so a process that ends at
//! any moment leaves states that the next one folds under one definition, the old or the new.

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
use crate::store::definitions::StoredDefinition;

/// Events that are few enough to be folded while appends wait.
const FEW: u64 = 64;
/// How often events that were appended meanwhile are folded beside appends. Each round takes the time in which the events of
/// the next one are appended. To read events takes less time than to write them, so that rounds get shorter.
const ROUNDS: usize = 16;

/// The aggregates of a type, folded under a definition that does not serve yet.
pub struct Refolded {
    definition: Arc<Definition>,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
    /// The position of the last event that is folded into them; `None` where no aggregate is folded yet.
    position: Option<u64>,
}

/// A definition that is to be written, and what it was decided by.
pub struct Redefinition {
    pub refolded: Refolded,
    /// How often definitions had changed by then.
    pub types_changed: u64,
}

impl Refolded {
    /// Without any aggregate.
    pub fn under(definition: Arc<Definition>) -> Refolded {
        Refolded { definition, states: FxHashMap::default(), position: None }
    }
}

/// Types that other servers redefined, folded beside the states that serve.
pub struct Aside<'a> {
    refolded: Vec<Refolded>,
    _one: Option<MutexGuard<'a, ()>>,
}

impl Aside<'_> {
    pub fn none() -> Aside<'static> {
        Aside { refolded: Vec::new(), _one: None }
    }
}

impl State {
    /// Folds the aggregates of a type under a definition that does not serve yet, until few events have been appended since.
    pub async fn fold_aside(&self, definition: &Arc<Definition>) -> Result<Refolded> {
        let mut refolded = Refolded::under(definition.clone());
        for _ in 0..ROUNDS {
            if self.fold_changed(&mut refolded).await? <= FEW {
                break;
            }
        }
        Ok(refolded)
    }

    /// Folds the events of the type that are visible and not folded yet. Returns how many events of any type had been
    /// appended since the last call, or since this one began to fold all aggregates.
    async fn fold_changed(&self, refolded: &mut Refolded) -> Result<u64> {
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

    /// Folds all aggregates of the type. Returns the position up to which the log is folded into each of them.
    async fn fold_all(&self, refolded: &mut Refolded) -> Result<u64> {
        // Before the states: some of them may be folded further.
        let position = self.folded.position();
        let Refolded { definition, states, .. } = refolded;
        let snapshot = self.folded.snapshot();
        for current in snapshot.iter().filter(|aggregate| aggregate.aggregate_type == definition.type_name) {
            let folded = self.fold_stream(&current.id, current.version, None, definition).await?;
            states.extend(folded.map(|folded| (folded.id.clone(), Arc::new(folded))));
        }
        Ok(position)
    }

    /// Writes a definition and goes by it, with the aggregates of its type as they were folded aside, where it folds
    /// otherwise than the one before. If anything fails, everything is as it was.
    pub async fn define(&self, redefinition: Redefinition) -> Result<()> {
        let Redefinition { mut refolded, types_changed } = redefinition;
        let folding = self.folding().await;
        if self.folds_otherwise(&refolded.definition) {
            self.fold_changed(&mut refolded).await?;
        }
        self.log.replace_definition(&refolded.definition, types_changed).await?;
        self.types.set_changed(types_changed + 1);
        self.show_defined(refolded, &folding);
        Ok(())
    }

    /// Folds types that other servers redefined, beside the states that serve. Whoever comes meanwhile waits.
    pub(super) async fn fold_redefined(&self) -> Result<Aside<'_>> {
        if self.is_exclusive() {
            return Ok(Aside::none());
        }
        let one = self.types.refolding().await;
        let mut refolded = Vec::new();
        if self.log.types_changed().await? != self.types.changed() {
            for StoredDefinition { definition, .. } in self.log.read_definitions().await? {
                if self.folds_otherwise(&definition) {
                    refolded.push(self.fold_aside(&Arc::new(definition)).await?);
                }
            }
        }
        Ok(Aside { refolded, _one: Some(one) })
    }

    /// Goes by the definitions in the store, where other servers may have changed some.
    pub(super) async fn reload_definitions(&self, aside: Aside<'_>, folding: &FoldGuard<'_>) -> Result<()> {
        if self.is_exclusive() {
            return Ok(());
        }
        // Before the definitions: of a change in between, the next look tells.
        let changed = self.log.types_changed().await?;
        if changed == self.types.changed() {
            return Ok(());
        }
        let mut aside = aside.refolded;
        for StoredDefinition { definition, .. } in self.log.read_definitions().await? {
            let definition = Arc::new(definition);
            let index = aside.iter().position(|refolded| refolded.definition == definition);
            let mut refolded = match index {
                Some(index) => aside.swap_remove(index),
                None => Refolded::under(definition.clone()),
            };
            if self.folds_otherwise(&definition) {
                self.fold_changed(&mut refolded).await?;
            }
            self.show_defined(refolded, folding);
        }
        self.types.set_changed(changed);
        Ok(())
    }

    fn folds_otherwise(&self, definition: &Definition) -> bool {
        let before = self.types.get(&definition.type_name);
        before.is_some_and(|before| before.revision != definition.revision)
    }

    fn show_defined(&self, refolded: Refolded, _: &FoldGuard<'_>) {
        let Refolded { definition, states, .. } = refolded;
        let mut states: Vec<Arc<Aggregate>> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        // States first: a snapshot that is written meanwhile may tell an older revision than it was folded under, and is
        // folded again when it is loaded; a newer one would be believed.
        self.folded.replace(&states);
        self.search.touch(states.iter().map(|aggregate| &aggregate.id));
        self.set_definition(definition);
    }
}
