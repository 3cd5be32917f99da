//! An index of numbers by the hashes of their keys. An entry takes eight bytes, regardless of the length of its key.

use hashbrown::HashTable;

/// A hash table that finds numbers by the hashes of their keys. The table does not contain the keys. A lookup may
/// therefore return several numbers, and the caller compares the keys to find the right number.
#[derive(Default)]
pub struct NumberIndex {
    /// The entries. An entry contains the number for a key, and one half of the key's hash. The table computes the
    /// place of an entry from this half, and therefore grows without reading keys.
    entries: HashTable<(u32, u32)>,
}

impl NumberIndex {
    /// Returns the numbers that were inserted under a hash. May also return numbers that were inserted under a
    /// different hash, if the table stores the same half for both hashes.
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let half = half_of(hash);
        self.entries.iter_hash(spread(half)).filter(move |(known, _)| *known == half).map(|(_, number)| *number)
    }

    /// Adds a number under the hash of its key.
    pub fn insert(&mut self, hash: u64, number: u32) {
        let half = half_of(hash);
        self.entries.insert_unique(spread(half), (half, number), |(half, _)| spread(*half));
    }

    /// Removes a number that was inserted under `hash`.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let entry = (half_of(hash), number);
        if let Ok(found) = self.entries.find_entry(spread(entry.0), |known| *known == entry) {
            found.remove();
        }
    }
}

/// Mixes the bits of a hash, so that its highest bits depend on all bits. The table finds an entry by the lowest and
/// the highest bits of the hash.
fn mixed(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the half of a hash that the table stores.
fn half_of(hash: u64) -> u32 {
    (mixed(hash) >> 32) as u32
}

/// Returns the hash under which the table stores an entry, computed from the stored half alone.
fn spread(half: u32) -> u64 {
    mixed(half.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_contains_an_entry_until_the_entry_is_removed() {
        let hash = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = NumberIndex::default();
        assert_eq!(index.candidates(7).count(), 0);
        index.remove(7, 7);
        (0..5_000).for_each(|number| index.insert(hash(number), number));
        (0..5_000).step_by(2).for_each(|number| index.remove(hash(number), number));
        (0..3_000).for_each(|number| index.insert(hash(9_000_000), 9_000_000 + number));
        for number in 0..5_000 {
            assert_eq!(index.candidates(hash(number)).any(|found| found == number), number % 2 == 1, "{number}");
        }
        assert_eq!(index.candidates(hash(9_000_000)).filter(|number| *number >= 9_000_000).count(), 3_000);
    }
}
