//! Redefining a type: where it folds otherwise than before, its aggregates are folded again beside the states that serve,
//! and swapped in at once. Appends go on meanwhile.
//!
//! The definition in the store decides. A snapshot tells the revision that it was folded under, so a process that ends at
//! any moment leaves states that the next one folds under one definition, the old or the new.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::sync::MutexGuard;

use super::State;
use super::load::FoldGuard;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::store::definitions::StoredDefinition;

/// Changed aggregates that are few enough to be folded while appends wait.
const FEW: usize = 64;
/// How often aggregates that changed meanwhile are folded on beside appends. Each round takes the time in which the changes
/// of the next one are made, so that rounds get shorter unless the type's aggregates change faster than they are folded.
const ROUNDS: usize = 16;

/// The aggregates of a type, folded under a definition that does not serve yet.
pub struct Refolded {
    definition: Arc<Definition>,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
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
        Refolded { definition, states: FxHashMap::default() }
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
    /// Folds the aggregates of a type under a definition that does not serve yet, until few have changed since.
    pub async fn fold_aside(&self, definition: &Arc<Definition>) -> Result<Refolded> {
        let mut refolded = Refolded::under(definition.clone());
        for _ in 0..ROUNDS {
            if self.fold_changed(&mut refolded).await? <= FEW {
                break;
            }
        }
        Ok(refolded)
    }

    /// Folds the aggregates of the type that changed since they were folded last. Returns how many these were.
    async fn fold_changed(&self, refolded: &mut Refolded) -> Result<usize> {
        let Refolded { definition, states } = refolded;
        let snapshot = self.folded.snapshot();
        let mut changed = 0;
        for current in snapshot.iter().filter(|aggregate| aggregate.aggregate_type == definition.type_name) {
            let before = states.get(&current.id);
            if before.is_some_and(|before| before.version >= current.version) {
                continue;
            }
            let before = before.map(|before| Aggregate::clone(before));
            let folded = self.fold_on(before, &current.id, current.version, None, definition).await?;
            states.extend(folded.map(|folded| (folded.id.clone(), Arc::new(folded))));
            changed += 1;
        }
        Ok(changed)
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
        let Refolded { definition, states } = refolded;
        let mut states: Vec<Arc<Aggregate>> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        // States first: a snapshot that is written meanwhile may tell an older revision than it was folded under, and is
        // folded again when it is loaded; a newer one would be believed.
        self.folded.replace(&states);
        self.search.touch(states.iter().map(|aggregate| &aggregate.id));
        self.set_definition(definition);
    }
}
