//! A map of keys that have followers. For each key, the map stores a value, and the position at which the key's
//! followers were last woken. A key without followers is removed together with its value, but not immediately.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use tokio::sync::watch;

/// The smallest value of [`FollowerMap::threshold`], in keys.
const MIN_THRESHOLD: usize = 64;

/// The followed keys and their values.
pub struct FollowerMap<K, V> {
    by_key: FxHashMap<K, (watch::Sender<u64>, V)>,
    /// The number of keys at which keys without followers are removed.
    threshold: usize,
}

impl<K, V> Default for FollowerMap<K, V> {
    fn default() -> FollowerMap<K, V> {
        FollowerMap { by_key: FxHashMap::default(), threshold: MIN_THRESHOLD }
    }
}

impl<K: Hash + Eq + Clone, V: Default> FollowerMap<K, V> {
    /// Follows a key. The receiver changes at each call of [`FollowerMap::wake`] for the key.
    pub fn follow(&mut self, key: &K) -> watch::Receiver<u64> {
        if self.by_key.len() >= self.threshold {
            self.by_key.retain(|_, (sender, _)| sender.receiver_count() > 0);
            self.threshold = MIN_THRESHOLD.max(2 * self.by_key.len());
        }
        self.by_key.entry(key.clone()).or_default().0.subscribe()
    }

    /// Changes the value of a key, and wakes the key's followers. If the key no longer has followers, removes the key
    /// instead.
    pub fn wake(&mut self, key: &K, position: u64, change: impl FnOnce(&mut V)) {
        let Some((sender, kept)) = self.by_key.get_mut(key) else { return };
        if sender.receiver_count() == 0 {
            self.by_key.remove(key);
            return;
        }
        change(kept);
        sender.send_replace(position);
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.by_key.get(key).map(|(_, kept)| kept)
    }

    /// Returns the values of all keys.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = &V> {
        self.by_key.values().map(|(_, kept)| kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_followers_are_removed() {
        let mut followed: FollowerMap<usize, ()> = FollowerMap::default();
        let first = followed.follow(&0);
        (1..10 * MIN_THRESHOLD).for_each(|key| drop(followed.follow(&key)));
        assert!(followed.kept().len() <= MIN_THRESHOLD && followed.get(&0).is_some());
        drop(first);
        followed.wake(&0, 1, |()| ());
        assert!(followed.get(&0).is_none());
    }
}
