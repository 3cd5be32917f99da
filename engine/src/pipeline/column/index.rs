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
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = slot_of(hash) & mask;
        let mut left = self.slots.len();
        std::iter::from_fn(move || {
            while left > 0 {
                left -= 1;
                let (tag, number) = self.slots[slot];
                slot = (slot + 1) & mask;
                match number {
                    VACANT => return None,
                    GONE => {}
                    number if tag == tag_of(hash) => return Some(number),
                    _ => {}
                }
            }
            None
        })
    }

    /// Adds a number under its key's hash.
    pub fn insert(&mut self, hash: u64, number: u32) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.write(slot_of(hash), (tag_of(hash), number));
    }

    /// Removes a number from under a hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = slot_of(hash) & mask;
        for _ in 0..self.slots.len() {
            match self.slots[slot].1 {
                VACANT => return,
                known if known == number && self.slots[slot].0 == tag_of(hash) => {
                    self.slots[slot].1 = GONE;
                    return;
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Makes room, without the numbers that are gone.
    fn grow(&mut self) {
        let kept = self.slots.iter().filter(|(_, number)| *number < GONE).count();
        let size = (kept * 2 + 1).next_power_of_two().max(64);
        let slots = std::mem::replace(&mut self.slots, vec![(0, VACANT); size]);
        self.used = 0;
        // The place in the table is made of the same half of the hash that is kept.
        let kept = slots.into_iter().filter(|(_, number)| *number < GONE);
        kept.for_each(|(tag, number)| self.write(tag as usize, (tag, number)));
    }

    fn write(&mut self, slot: usize, entry: (u32, u32)) {
        let mask = self.slots.len() - 1;
        let mut slot = slot & mask;
        while self.slots[slot].1 != VACANT {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = entry;
        self.used += 1;
    }
}

fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn slot_of(hash: u64) -> usize {
    tag_of(hash) as usize
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
