//! A segment of a column: consecutive cells, stored with a specific type if one variant of [`Cells`] other than
//! `Mixed` can represent all values.

use std::ops::RangeInclusive;

use super::cells::{Cell, CellKind, Cells, is_exact};
use super::dictionary::Dictionary;
use crate::model::value::Value;

/// The maximum number of rows in a segment. Copying a segment takes only microseconds, and a loop over the rows of a
/// segment is long enough to be efficient.
pub const SEGMENT: usize = 4_096;

/// A segment of a column: consecutive cells, stored by the type of their values.
#[derive(Debug, Clone)]
pub struct Segment {
    len: usize,
    /// The kind of each cell. Empty as long as every cell is a plain value.
    kinds: Vec<CellKind>,
    cells: Cells,
    /// The number of rows for which new cells allocate capacity.
    capacity: usize,
    /// The number of cells that are not plain values.
    others: usize,
    opaque: usize,
    /// A range that contains all integers and dates ever written to the segment.
    span: RangeInclusive<i64>,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment {
            len: 0,
            kinds: Vec::new(),
            cells: Cells::Empty,
            capacity: 0,
            others: 0,
            opaque: 0,
            span: RangeInclusive::new(i64::MAX, i64::MIN),
        }
    }
}

impl Segment {
    /// Returns the approximate size of the segment in bytes.
    pub fn size_bytes(&self) -> usize {
        size_of::<Segment>() + self.kinds.capacity() + self.cells.size_bytes()
    }

    /// Creates a segment with capacity for the maximum number of rows.
    pub fn preallocated() -> Segment {
        Segment { capacity: SEGMENT, ..Segment::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the kind of an existing cell.
    pub fn kind(&self, row: usize) -> CellKind {
        self.kinds.get(row).copied().unwrap_or(CellKind::Value)
    }

    /// Returns the kinds of the cells, in the order of the rows. May return no kinds if the segment is
    /// [plain](Segment::is_plain).
    pub fn kinds(&self) -> &[CellKind] {
        &self.kinds
    }

    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Returns whether each cell is a value of the segment's type.
    pub fn is_plain(&self) -> bool {
        self.others == 0
    }

    /// Returns a range that contains every integer and date of the segment. The range also contains overwritten values.
    pub fn span(&self) -> &RangeInclusive<i64> {
        &self.span
    }

    /// Returns the number of opaque cells, whose values must be read from the rows.
    pub fn opaque(&self) -> usize {
        self.opaque
    }

    /// Returns the value of a cell. Returns `None` if the cell is missing or opaque, or does not exist.
    pub fn value(&self, row: usize, texts: &Dictionary) -> Option<Value> {
        if row >= self.len {
            return None;
        }
        match self.kind(row) {
            CellKind::Missing | CellKind::Opaque => None,
            CellKind::Null => Some(Value::Null),
            CellKind::Int => match &self.cells {
                Cells::Numbers(cells) => cells.get(row).map(|number| Value::Int(*number as i64)),
                _ => None,
            },
            CellKind::Value => self.cells.value(row, texts),
        }
    }

    /// Returns whether the cell exists and its content equals `cell`, including the types of all values. An integer and
    /// a double are different, and so are two objects that do not share their memory. A string in a segment without a
    /// specific type never counts as equal.
    pub fn holds(&self, row: usize, cell: Cell, texts: &Dictionary) -> bool {
        if row >= self.len {
            return false;
        }
        match (self.kind(row), cell) {
            (CellKind::Missing, Cell::Missing) | (CellKind::Opaque, Cell::Opaque) => true,
            (CellKind::Null, Cell::Value(value)) => value.is_null(),
            (CellKind::Value, Cell::Value(Value::String(text))) => match &self.cells {
                Cells::Texts(cells) => cells.get(row).and_then(|code| texts.text(*code)) == Some(text),
                _ => false,
            },
            (CellKind::Value | CellKind::Int, Cell::Value(value)) => {
                self.value(row, texts).is_some_and(|known| same(&known, value))
            }
            _ => false,
        }
    }

    /// Sets a cell. If `row` is the index after the last row, adds a row.
    pub fn set(&mut self, row: usize, cell: Cell, texts: &mut Dictionary) {
        let is_new = row >= self.len;
        let kind = match cell {
            Cell::Missing => CellKind::Missing,
            Cell::Opaque => CellKind::Opaque,
            Cell::Value(Value::Null) => CellKind::Null,
            Cell::Value(value) => self.write(row, value, texts),
        };
        if !matches!(kind, CellKind::Value | CellKind::Int) {
            self.cells.blank(row);
        }
        if is_new {
            self.len += 1;
        } else {
            let before = self.kind(row);
            self.others -= usize::from(before != CellKind::Value);
            self.opaque -= usize::from(before == CellKind::Opaque);
        }
        self.record(row, kind);
        self.others += usize::from(kind != CellKind::Value);
        self.opaque += usize::from(kind == CellKind::Opaque);
        self.cells.fill(self.len);
        if let (true, SEGMENT, Cells::Lists(lists)) = (is_new, self.len, &mut self.cells) {
            lists.compact();
        }
    }

    /// Records the kind of a cell. As long as all cells are plain values, no kinds are recorded.
    fn record(&mut self, row: usize, kind: CellKind) {
        if self.kinds.is_empty() && kind == CellKind::Value {
            return;
        }
        self.write_kinds();
        if let Some(known) = self.kinds.get_mut(row) {
            *known = kind;
        }
    }

    /// Extends `kinds` to one entry for each row.
    fn write_kinds(&mut self) {
        self.kinds.reserve_exact(self.capacity.saturating_sub(self.kinds.len()));
        self.kinds.resize(self.len, CellKind::Value);
    }

    /// Writes a value that is not null, and returns the kind of the cell. Converts the cells to a wider type if the
    /// current type cannot represent the value.
    fn write(&mut self, row: usize, value: &Value, texts: &mut Dictionary) -> CellKind {
        if let Value::Int(number) | Value::Date(number) = value {
            self.span = *self.span.start().min(number)..=*self.span.end().max(number);
        }
        if let Some(kind) = self.cells.write(row, value, texts) {
            return kind;
        }
        self.cells = match (&self.cells, value) {
            (Cells::Empty, value) => Cells::for_value(value, self.capacity),
            (Cells::Ints(cells), Value::Double(_)) if cells.iter().all(|number| is_exact(*number)) => {
                let numbers = cells.iter().map(|number| *number as f64).collect();
                self.write_kinds();
                let before = self.kinds.iter().filter(|kind| **kind == CellKind::Value).count();
                self.kinds.iter_mut().filter(|kind| **kind == CellKind::Value).for_each(|kind| *kind = CellKind::Int);
                self.others += before;
                Cells::Numbers(numbers)
            }
            _ => self.mixed(texts),
        };
        if let Some(kind) = self.cells.write(row, value, texts) {
            return kind;
        }
        self.cells = self.mixed(texts);
        self.cells.write(row, value, texts).unwrap_or(CellKind::Opaque)
    }

    fn mixed(&mut self, texts: &Dictionary) -> Cells {
        let values = (0..self.len()).map(|row| self.value(row, texts).unwrap_or_default()).collect();
        let ints = self.kinds.iter_mut().filter(|kind| **kind == CellKind::Int);
        self.others -= ints.map(|kind| *kind = CellKind::Value).count();
        Cells::Mixed(values)
    }
}

/// Returns whether two values are equal and have equal types at every level. Two objects that do not share their memory
/// count as different.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            std::sync::Arc::ptr_eq(a, b) || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)))
        }
        (Value::Object(a), Value::Object(b)) => std::sync::Arc::ptr_eq(a, b),
        // Decimals that differ only in their trailing zeros are equal, but are written differently.
        (Value::Decimal(a), Value::Decimal(b)) => a == b && a.scale() == b.scale(),
        (
            Value::Int(_) | Value::Double(_) | Value::Decimal(_),
            Value::Int(_) | Value::Double(_) | Value::Decimal(_),
        ) => false,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_stored_once_and_change_independently() {
        let (mut segment, mut texts) = (Segment::preallocated(), Dictionary::default());
        let list = |number: usize| -> Value {
            (0..number % 3).map(|item| Value::from(format!("t-{}", number % 7 + item))).collect::<Vec<_>>().into()
        };
        let mut numbers: Vec<usize> = (0..SEGMENT).collect();
        for row in 0..numbers.len() {
            segment.set(row, Cell::Value(&list(row)), &mut texts);
        }
        assert!(matches!(segment.cells(), Cells::Lists(lists) if lists.size() < 40));
        for step in 0..20_000 {
            let (row, number) = (step * 7 % numbers.len(), step % 11);
            numbers[row] = number;
            segment.set(row, Cell::Value(&list(number)), &mut texts);
        }
        assert!(matches!(segment.cells(), Cells::Lists(lists) if lists.size() < 10_000));
        assert!(numbers.iter().enumerate().all(|(row, number)| segment.value(row, &texts) == Some(list(*number))));
        // Kinds are stored only when a cell is not a plain value.
        assert!(segment.is_plain() && segment.kinds().is_empty());
        segment.set(9, Cell::Missing, &mut texts);
        assert_eq!(
            (segment.kind(8), segment.kind(9), segment.kinds().len()),
            (CellKind::Value, CellKind::Missing, numbers.len())
        );
        assert_eq!((segment.value(9, &texts), segment.value(10, &texts)), (None, Some(list(numbers[10]))));
        assert_eq!(segment.value(numbers.len(), &texts), None);
    }

    #[test]
    fn the_span_contains_every_number_ever_written_to_the_segment() {
        let (mut segment, mut texts) = (Segment::default(), Dictionary::default());
        for (row, number) in [5i64, -3, 9].into_iter().enumerate() {
            segment.set(row, Cell::Value(&Value::Int(number)), &mut texts);
        }
        assert_eq!(segment.span(), &(-3..=9));
        segment.set(2, Cell::Value(&Value::Int(6)), &mut texts);
        segment.set(1, Cell::Missing, &mut texts);
        segment.set(3, Cell::Value(&Value::Int(i64::MIN)), &mut texts);
        assert_eq!(segment.span(), &(i64::MIN..=9));
    }
}
