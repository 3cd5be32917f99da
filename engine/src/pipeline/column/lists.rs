//! The lists of strings in the rows of a segment, stored as codes of the column's dictionary.

use rustc_hash::FxHashMap;

use super::dictionary::TextCode;
use super::segment::SEGMENT;

/// Lists of strings, stored one after the other. Rows with equal lists may share one list.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    codes: Vec<TextCode>,
    spans: Vec<(u32, u32)>,
    /// The number of codes in replaced lists. If rows share a list, the codes of the list count each time one of these
    /// rows gets another list.
    stale: usize,
}

impl Lists {
    /// Returns the size of the lists in bytes.
    pub fn size_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<TextCode>() + self.spans.capacity() * size_of::<(u32, u32)>()
    }

    /// Creates an empty collection with capacity for `rows` rows.
    pub fn with_capacity(rows: usize) -> Lists {
        Lists { spans: Vec::with_capacity(rows), ..Lists::default() }
    }

    /// Returns the codes of a row's list.
    pub fn get(&self, row: usize) -> &[TextCode] {
        let Some((start, len)) = self.spans.get(row).copied() else { return &[] };
        self.codes.get(start as usize..(start + len) as usize).unwrap_or_default()
    }

    /// Sets the list of a row.
    pub fn put(&mut self, row: usize, codes: &[TextCode]) {
        self.fill(row + 1);
        // The previous list stays in memory, because other rows may share it.
        self.stale += self.spans[row].1 as usize;
        self.spans[row] = (self.codes.len() as u32, codes.len() as u32);
        self.codes.extend_from_slice(codes);
        if self.stale > self.codes.len() / 2 + SEGMENT {
            self.compact();
        }
    }

    /// Extends the collection to `rows` lists. The added lists are empty.
    pub fn fill(&mut self, rows: usize) {
        if self.spans.len() < rows {
            self.spans.resize(rows, (0, 0));
        }
    }

    /// Rewrites the lists. Stores each distinct list once and drops replaced lists.
    pub fn compact(&mut self) {
        let mut codes = Vec::new();
        let mut known: FxHashMap<&[TextCode], u32> = FxHashMap::default();
        for (start, len) in &mut self.spans {
            let list = &self.codes[*start as usize..(*start + *len) as usize];
            *start = *known.entry(list).or_insert_with(|| {
                codes.extend_from_slice(list);
                (codes.len() - list.len()) as u32
            });
        }
        drop(known);
        // Copies the codes to a vector without spare capacity. Shrinking the vector in place may free no memory.
        self.codes = codes.as_slice().to_vec();
        self.stale = 0;
    }

    /// Returns the number of stored codes, including the codes of replaced lists.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.codes.len()
    }
}
