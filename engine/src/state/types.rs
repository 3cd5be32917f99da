//! The aggregate types of a workspace, cached in this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use super::progress::Progress;
use crate::model::builtin;
use crate::model::definition::Definition;

/// The type definitions by name.
pub type Definitions = HashMap<Arc<str>, Arc<Definition>>;

/// The type definitions of a workspace. Definitions can be replaced one by one during concurrent reads.
pub struct Types {
    definitions: ArcSwap<Definitions>,
    /// The number of changes that the definitions in memory include. The store counts the changes of definitions.
    changed: AtomicU64,
    /// The lock that is held while a type is defined or redefined, so that only one definition is changed at a time.
    pub defining: Mutex<()>,
    /// The lock that is held while a task refolds types that another server redefined, so that only one task refolds
    /// types at a time.
    pub refolding: Mutex<()>,
    /// The number of redefinitions that changed labels or states of existing aggregates. The number is 1 when the
    /// workspace is opened. Each such redefinition increases the number after the new definition is set.
    pub redefined: Progress,
}

impl Types {
    /// Returns the built-in types together with the stored types.
    pub fn new(stored: Vec<Definition>) -> Types {
        let all = builtin::definitions().into_iter().chain(stored);
        let definitions = all.map(|definition| (definition.type_name.clone(), Arc::new(definition))).collect();
        let (changed, defining, refolding) = Default::default();
        let redefined = Progress::default();
        redefined.set(1);
        Types { definitions: ArcSwap::from_pointee(definitions), changed, defining, refolding, redefined }
    }

    /// Returns all current definitions.
    pub fn all(&self) -> Arc<Definitions> {
        self.definitions.load_full()
    }

    pub fn get(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.definitions.load().get(type_name).cloned()
    }

    /// Sets a definition. Returns the definition that was replaced, if any.
    pub fn set(&self, definition: Arc<Definition>) -> Option<Arc<Definition>> {
        let previous = self.get(&definition.type_name);
        self.definitions.rcu(|definitions| {
            let mut definitions = Definitions::clone(definitions);
            definitions.insert(definition.type_name.clone(), definition.clone());
            definitions
        });
        previous
    }

    /// Returns the last known value of the store's change counter for definitions. The definitions in memory include
    /// all changes up to this value, with one exception: if no other process writes to the store, a definition whose
    /// write had an unknown outcome may be missing. Appends are checked against the definitions in memory.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::SeqCst)
    }

    pub fn set_changed(&self, changed: u64) {
        self.changed.store(changed, Ordering::SeqCst);
    }
}
