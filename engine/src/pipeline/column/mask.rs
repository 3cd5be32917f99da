//! A set of rows of a segment, with one bit for each row.

use super::segment::SEGMENT;

const WORDS: usize = SEGMENT / 64;

/// A set of rows of one segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    words: [u64; WORDS],
    len: usize,
}

impl Mask {
    /// Returns the empty set for a segment of `len` rows.
    pub fn none(len: usize) -> Mask {
        Mask { words: [0; WORDS], len: len.min(SEGMENT) }
    }

    /// Returns the set of all rows of a segment of `len` rows.
    pub fn all(len: usize) -> Mask {
        let mut mask = Mask::none(len);
        mask.words = [u64::MAX; WORDS];
        mask.trim();
        mask
    }

    pub fn constant(len: usize, holds: bool) -> Mask {
        if holds { Mask::all(len) } else { Mask::none(len) }
    }

    /// Returns the set of the rows whose cells satisfy `test`.
    pub fn of<T>(cells: &[T], test: impl Fn(&T) -> bool) -> Mask {
        let mut mask = Mask::none(cells.len());
        for (word, cells) in mask.words.iter_mut().zip(cells.chunks(64)) {
            let mut bits = 0;
            for (bit, cell) in cells.iter().enumerate() {
                bits |= u64::from(test(cell)) << bit;
            }
            *word = bits;
        }
        mask
    }

    pub fn and(&mut self, other: &Mask) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    pub fn or(&mut self, other: &Mask) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub fn negate(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    pub fn set(&mut self, row: usize) {
        if let Some(word) = self.words.get_mut(row / 64) {
            *word |= 1 << (row % 64);
        }
    }

    pub fn clear(&mut self, row: usize) {
        if let Some(word) = self.words.get_mut(row / 64) {
            *word &= !(1 << (row % 64));
        }
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the number of rows of the segment.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the rows in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| SetBits { word: *word, base: index as u32 * 64 })
    }

    /// Replaces the content of `out` with the rows in ascending order.
    pub fn write_rows(&self, out: &mut Vec<u32>) {
        out.clear();
        for (index, word) in self.words.iter().enumerate() {
            let base = index as u32 * 64;
            match *word {
                0 => {}
                u64::MAX => out.extend(base..base + 64),
                word => out.extend(SetBits { word, base }),
            }
        }
    }

    /// Clears the bits beyond the segment's rows.
    fn trim(&mut self) {
        for (index, word) in self.words.iter_mut().enumerate() {
            let rows = self.len.saturating_sub(index * 64).min(64);
            if rows < 64 {
                *word &= (1 << rows) - 1;
            }
        }
    }
}

struct SetBits {
    word: u64,
    base: u32,
}

impl Iterator for SetBits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.word == 0 {
            return None;
        }
        let row = self.base + self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_contains_only_rows_of_its_segment_in_ascending_order() {
        let mut mask = Mask::none(70);
        mask.negate();
        assert_eq!((mask.count(), mask.rows().last()), (70, Some(69)));
        assert_eq!(mask, Mask::all(70));
        mask.clear(69);
        mask.clear(3);
        let mut rows = Vec::new();
        mask.write_rows(&mut rows);
        assert!(rows.iter().copied().eq(mask.rows()));
        assert_eq!((rows.len(), rows[3]), (68, 4));
        assert_eq!(Mask::of(&[1, 2, 3], |cell| *cell != 2).rows().collect::<Vec<_>>(), [0, 2]);
        assert!(Mask::all(0).is_empty());
    }
}
