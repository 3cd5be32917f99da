//! The dictionary of a column, which assigns a code to each distinct string.
//!
//! A clone of a dictionary is a view. Reading the strings of a view needs no lock, because a dictionary never removes
//! strings. Finding the code of a string needs the lock of the index, which all views share. A query finds the code of
//! each of its constants only once.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use rustc_hash::FxBuildHasher;

use super::index::NumberIndex;

/// The number of strings in a block. A view contains one pointer for each block.
const BLOCK: usize = 1_024;

/// The code of a string in a dictionary. The default code denotes no string. Cells without a string contain the default
/// code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextCode(u32);

impl Default for TextCode {
    fn default() -> TextCode {
        TextCode(u32::MAX)
    }
}

impl TextCode {
    /// Returns the index of the string in its dictionary, or `None` for the default code.
    pub fn index(self) -> Option<usize> {
        (self != TextCode::default()).then_some(self.0 as usize)
    }
}

/// A map between strings and codes. A clone is a view of the strings that exist at the time of the clone.
#[derive(Clone, Default)]
pub struct Dictionary {
    full: Vec<Arc<Box<[Arc<str>]>>>,
    /// The block that is being filled. Views share the block and read only the strings that existed when the view was
    /// taken.
    open: Arc<Box<[OnceLock<Arc<str>>]>>,
    len: u32,
    index: Arc<RwLock<NumberIndex>>,
}

impl Dictionary {
    /// Returns the approximate size of the dictionary in bytes, without the strings themselves.
    pub fn size_bytes(&self) -> usize {
        // Each string needs a pointer to the string, and an entry in the index from strings to codes.
        self.len() * (size_of::<Arc<str>>() + 2 * size_of::<u64>())
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the codes of all strings, in the order of their indexes.
    pub fn codes(&self) -> impl Iterator<Item = TextCode> + use<> {
        (0..self.len).map(TextCode)
    }

    /// Returns the string with the given code. Returns `None` for the default code.
    pub fn text(&self, code: TextCode) -> Option<&Arc<str>> {
        let index = code.index()?;
        let (block, offset) = (index / BLOCK, index % BLOCK);
        match self.full.get(block) {
            Some(texts) => texts.get(offset),
            None if block == self.full.len() => self.open.get(offset)?.get(),
            None => None,
        }
    }

    /// Returns the code of a string, or `None` if this view does not contain the string.
    pub fn code(&self, text: &str) -> Option<TextCode> {
        self.find(&self.index.read(), hash(text), text)
    }

    /// Returns the code of a string. Adds the string if the dictionary does not contain it.
    pub fn code_or_add(&mut self, text: &Arc<str>) -> TextCode {
        let shared = self.index.clone();
        let mut index = shared.write();
        let hash = hash(text);
        if let Some(code) = self.find(&index, hash, text) {
            return code;
        }
        let code = self.len;
        let offset = code as usize % BLOCK;
        if offset == 0 {
            self.open = Arc::new((0..BLOCK).map(|_| OnceLock::new()).collect());
        }
        if let Some(slot) = self.open.get(offset) {
            slot.get_or_init(|| text.clone());
        }
        index.insert(hash, code);
        self.len += 1;
        if offset + 1 == BLOCK {
            self.close();
        }
        TextCode(code)
    }

    /// Copies the full block to a smaller representation, and starts an empty block. Views that share the full block
    /// keep the larger representation.
    fn close(&mut self) {
        let texts = self.open.iter().filter_map(|slot| slot.get().cloned()).collect();
        self.full.push(Arc::new(texts));
        self.open = Arc::default();
    }

    fn find(&self, index: &NumberIndex, hash: u64, text: &str) -> Option<TextCode> {
        // Strings that were added after this view was taken do not belong to the view.
        let mut own = index.candidates(hash).filter(|code| *code < self.len).map(TextCode);
        own.find(|code| self.text(*code).is_some_and(|known| **known == *text))
    }
}

fn hash(text: &str) -> u64 {
    FxBuildHasher.hash_one(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_of_a_dictionary_contains_no_later_strings() {
        let mut dictionary = Dictionary::default();
        let texts: Vec<Arc<str>> = (0..5_000).map(|number| number.to_string().into()).collect();
        let codes: Vec<TextCode> = texts.iter().map(|text| dictionary.code_or_add(text)).collect();
        assert!(codes.iter().copied().eq((0..5_000).map(TextCode)));
        let view = dictionary.clone();
        assert_eq!(dictionary.code_or_add(&"more".into()), TextCode(5_000));
        assert_eq!(dictionary.code_or_add(&"17".into()), TextCode(17));
        assert_eq!((view.code("more"), view.code("4999"), view.len()), (None, Some(TextCode(4_999)), 5_000));
        assert_eq!(dictionary.code("more"), Some(TextCode(5_000)));
        for code in [321, 1_023, 1_024, 4_095, 4_096, 4_999] {
            assert_eq!(view.text(TextCode(code)), Some(&texts[code as usize]));
        }
        for number in 5_001..7_000 {
            dictionary.code_or_add(&format!("n-{number}").into());
        }
        let shown = [TextCode(4_999), TextCode(6_500), TextCode::default()].map(|code| view.text(code));
        assert_eq!(shown, [Some(&texts[4_999]), None, None]);
        assert_eq!(dictionary.text(TextCode(6_500)).map(|text| &**text), Some("n-6500"));
    }
}
