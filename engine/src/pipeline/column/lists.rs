//! The lists of texts of a segment's rows, as numbers of the column's dictionary.

use rustc_hash::FxHashMap;

use super::segment::SEGMENT;

/// Lists of texts, written one after the other. Rows whose lists are equal may share one.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    codes: Vec<u32>,
    spans: Vec<(u32, u32)>,
    /// Codes of lists that were replaced, each time that one was.
    stale: usize,
}

impl Lists {
    /// Bytes that they take.
    pub fn size_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<u32>() + self.spans.capacity() * size_of::<(u32, u32)>()
    }

    /// No lists yet, with room for so many rows.
    pub fn with_room(rows: usize) -> Lists {
        Lists { spans: Vec::with_capacity(rows), ..Lists::default() }
    }

    /// The codes of a row's list.
    pub fn get(&self, row: usize) -> &[u32] {
        let Some((start, len)) = self.spans.get(row).copied() else { return &[] };
        self.codes.get(start as usize..(start + len) as usize).unwrap_or_default()
    }

    /// Writes a row's list.
    pub fn put(&mut self, row: usize, codes: &[u32]) {
        self.fill(row + 1);
        // What stood here is left alone: it may be the list of other rows too.
        self.stale += self.spans[row].1 as usize;
        self.spans[row] = (self.codes.len() as u32, codes.len() as u32);
        self.codes.extend_from_slice(codes);
        if self.stale > self.codes.len() / 2 + SEGMENT {
            self.compact();
        }
    }

    /// There are as many lists as rows; those that were not written are empty.
    pub fn fill(&mut self, rows: usize) {
        if self.spans.len() < rows {
            self.spans.resize(rows, (0, 0));
        }
    }

    /// Writes the lists anew: each once, however many rows have it, and none that was replaced.
    pub fn compact(&mut self) {
        let mut codes = Vec::new();
        let mut known: FxHashMap<&[u32], u32> = FxHashMap::default();
        for (start, len) in &mut self.spans {
            let list = &self.codes[*start as usize..(*start + *len) as usize];
            *start = *known.entry(list).or_insert_with(|| {
                codes.extend_from_slice(list);
                (codes.len() - list.len()) as u32
            });
        }
        drop(known);
        // Copied, as an allocator may shrink in place and give nothing back.
        self.codes = codes.as_slice().to_vec();
        self.stale = 0;
    }

    /// Codes that are held, those of lists that were replaced included.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.codes.len()
    }
}
