//! A hash table of numbers whose keys stand elsewhere: eight bytes a slot, however long the keys are.

/// Numbers by the hashes of their keys. Whether a number is the one looked for, its key tells.
#[derive(Default)]
pub struct Index {
    /// Half of the hash, and the number.
    slots: Vec<(u32, u32)>,
    /// Slots that are not vacant.
    used: usize,
}

const VACANT: u32 = u32::MAX;
/// What stood here was removed; the search goes on behind it.
const GONE: u32 = u32::MAX - 1;

impl Index {
    /// The numbers under a hash, and some that only seem to be.
    pub fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let tag = tag_of(hash);
        let entries = self.from(tag).map(|slot| self.slots[slot]).take_while(|(_, number)| *number != VACANT);
        entries.filter(move |(known, number)| *known == tag && *number != GONE).map(|(_, number)| number)
    }

    /// Adds a number under its key's hash.
    pub fn insert(&mut self, hash: u64, number: u32) {
        if (self.used + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        self.write(tag_of(hash), number);
    }

    /// Removes a number from under a hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let entry = (tag_of(hash), number);
        let mut found = self.from(entry.0).take_while(|slot| self.slots[*slot].1 != VACANT);
        if let Some(slot) = found.find(|slot| self.slots[*slot] == entry) {
            self.slots[slot].1 = GONE;
        }
    }

    /// The slots in the order in which a tag is looked for. Any number of them will do, so that growing wastes little.
    fn from(&self, tag: u32) -> impl Iterator<Item = usize> + use<> {
        let size = self.slots.len();
        let first = ((u64::from(tag) * size as u64) >> 32) as usize;
        (first..size).chain(0..first)
    }

    /// Makes room, without the numbers that are gone.
    fn grow(&mut self) {
        let is_kept = |(_, number): &(u32, u32)| *number < GONE;
        let kept = self.slots.iter().filter(|entry| is_kept(entry)).count();
        let slots = std::mem::replace(&mut self.slots, vec![(0, VACANT); kept * 8 / 5 + 64]);
        self.used = 0;
        slots.into_iter().filter(is_kept).for_each(|(tag, number)| self.write(tag, number));
    }

    fn write(&mut self, tag: u32, number: u32) {
        let vacant = self.from(tag).find(|slot| self.slots[*slot].1 == VACANT);
        if let Some(slot) = vacant {
            self.slots[slot] = (tag, number);
            self.used += 1;
        }
    }
}

/// The half of a hash that is kept, mixed once more: its first bits say where it stands.
fn tag_of(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_until_it_is_removed() {
        let hash = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = Index::default();
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
