//! The aggregate types of a workspace, as they are known in this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, MutexGuard};

use crate::model::builtin;
use crate::model::definition::Definition;

/// Type definitions by name.
pub type Definitions = HashMap<Arc<str>, Arc<Definition>>;

/// The definitions, replaced one by one while others read them.
pub struct Types {
    definitions: ArcSwap<Definitions>,
    /// How often definitions had changed in the store when they were read last.
    changed: AtomicU64,
    defining: Mutex<()>,
    refolding: Mutex<()>,
}

impl Types {
    /// The built-in types, and those that are stored.
    pub fn new(stored: Vec<Definition>) -> Types {
        let all = builtin::definitions().into_iter().chain(stored);
        let definitions = all.map(|definition| (definition.type_name.clone(), Arc::new(definition))).collect();
        let (changed, defining, refolding) = Default::default();
        Types { definitions: ArcSwap::from_pointee(definitions), changed, defining, refolding }
    }

    /// All of them, as they are now.
    pub fn all(&self) -> Arc<Definitions> {
        self.definitions.load_full()
    }

    pub fn get(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.definitions.load().get(type_name).cloned()
    }

    /// Puts a definition in the place of the one before it, which is returned.
    pub fn set(&self, definition: Arc<Definition>) -> Option<Arc<Definition>> {
        let before = self.get(&definition.type_name);
        self.definitions.rcu(|definitions| {
            let mut definitions = Definitions::clone(definitions);
            definitions.insert(definition.type_name.clone(), definition.clone());
            definitions
        });
        before
    }

    /// How often definitions had changed in the store when they were read last: an append is decided by these.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::SeqCst)
    }

    pub fn set_changed(&self, changed: u64) {
        self.changed.store(changed, Ordering::SeqCst);
    }

    /// Holds back others who would fold what another server redefined, until the guard is dropped.
    pub async fn refolding(&self) -> MutexGuard<'_, ()> {
        self.refolding.lock().await
    }

    /// Holds back other redefinitions until the guard is dropped.
    pub async fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.defining.lock().await
    }
}
