//! A run of a column's cells, typed as far as its values are of one type.

use super::dictionary::Dictionary;
use crate::model::value::Value;

/// What stands in a cell beside its typed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Value,
    /// An integer that stands among doubles, which hold it exactly.
    Int,
    Null,
    Missing,
    /// The path goes through an array: what it reads depends on who reads.
    Opaque,
}

/// What a row has at the column's path.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'v> {
    Missing,
    Opaque,
    Value(&'v Value),
}

/// Cells of one type.
#[derive(Debug, Clone)]
pub enum Cells {
    /// No cell holds a value.
    Empty,
    Ints(Vec<i64>),
    Numbers(Vec<f64>),
    Dates(Vec<i64>),
    Bools(Vec<bool>),
    /// Numbers of the column's dictionary.
    Texts(Vec<u32>),
    /// Arrays of nothing but texts.
    Lists(Lists),
    Mixed(Vec<Value>),
}

/// Lists of texts, written one after the other.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    codes: Vec<u32>,
    spans: Vec<(u32, u32)>,
    /// Codes that no list holds any more.
    stale: usize,
}

#[derive(Debug, Clone)]
pub struct Segment {
    kinds: Vec<Kind>,
    cells: Cells,
    /// Cells that are no plain value.
    others: usize,
    opaque: usize,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment { kinds: Vec::new(), cells: Cells::Empty, others: 0, opaque: 0 }
    }
}

/// Integers up to here are the same as doubles.
const EXACT: i64 = 1 << 53;

impl Segment {
    /// A segment that is going to be full.
    pub fn with_room() -> Segment {
        Segment { kinds: Vec::with_capacity(super::SEGMENT), ..Segment::default() }
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Whether each cell is a value of the segment's type.
    pub fn is_plain(&self) -> bool {
        self.others == 0
    }

    /// Cells that only the row itself can tell.
    pub fn opaque(&self) -> usize {
        self.opaque
    }

    /// The cell's value; `None` where it is missing.
    pub fn value(&self, row: usize, texts: &Dictionary) -> Option<Value> {
        match self.kinds.get(row)? {
            Kind::Missing | Kind::Opaque => None,
            Kind::Null => Some(Value::Null),
            Kind::Int => match &self.cells {
                Cells::Numbers(cells) => cells.get(row).map(|number| Value::Int(*number as i64)),
                _ => None,
            },
            Kind::Value => match &self.cells {
                Cells::Empty => None,
                Cells::Ints(cells) => cells.get(row).copied().map(Value::Int),
                Cells::Numbers(cells) => cells.get(row).copied().map(Value::Double),
                Cells::Dates(cells) => cells.get(row).copied().map(Value::Date),
                Cells::Bools(cells) => cells.get(row).copied().map(Value::Bool),
                Cells::Texts(cells) => cells.get(row).and_then(|code| texts.text(*code)).cloned().map(Value::String),
                Cells::Lists(lists) => Some(texts_of(lists.get(row), texts).collect::<Vec<_>>().into()),
                Cells::Mixed(cells) => cells.get(row).cloned(),
            },
        }
    }

    /// Whether the cell is there and holds just this, its kind of number included.
    pub fn holds(&self, row: usize, cell: Cell, texts: &Dictionary) -> bool {
        match (self.kinds.get(row), cell) {
            (Some(Kind::Missing), Cell::Missing) | (Some(Kind::Opaque), Cell::Opaque) => true,
            (Some(Kind::Null), Cell::Value(value)) => value.is_null(),
            (Some(Kind::Value), Cell::Value(Value::String(text))) => match &self.cells {
                Cells::Texts(cells) => cells.get(row).and_then(|code| texts.text(*code)) == Some(text),
                _ => false,
            },
            (Some(Kind::Value | Kind::Int), Cell::Value(value)) => {
                self.value(row, texts).is_some_and(|known| same(&known, value))
            }
            _ => false,
        }
    }

    /// Writes a cell; the one after the last is a new row.
    pub fn set(&mut self, row: usize, cell: Cell, texts: &mut Dictionary) {
        let kind = match cell {
            Cell::Missing => Kind::Missing,
            Cell::Opaque => Kind::Opaque,
            Cell::Value(Value::Null) => Kind::Null,
            Cell::Value(value) => self.write(row, value, texts),
        };
        if !matches!(kind, Kind::Value | Kind::Int) {
            self.cells.blank(row);
        }
        match self.kinds.get_mut(row) {
            Some(known) => {
                let before = std::mem::replace(known, kind);
                self.others -= usize::from(before != Kind::Value);
                self.opaque -= usize::from(before == Kind::Opaque);
            }
            None => {
                self.kinds.push(kind);
                if let (super::SEGMENT, Cells::Lists(lists)) = (self.kinds.len(), &mut self.cells) {
                    lists.finish();
                }
            }
        }
        self.others += usize::from(kind != Kind::Value);
        self.opaque += usize::from(kind == Kind::Opaque);
        self.cells.fill(self.kinds.len());
    }

    /// Writes a value that is not null, in a wider type where this one does not hold it.
    fn write(&mut self, row: usize, value: &Value, texts: &mut Dictionary) -> Kind {
        if let Some(kind) = self.cells.write(row, value, texts) {
            return kind;
        }
        self.cells = match (&self.cells, value) {
            (Cells::Empty, value) => Cells::for_value(value, self.kinds.capacity()),
            (Cells::Ints(cells), Value::Double(_)) if cells.iter().all(|number| is_exact(*number)) => {
                let numbers = cells.iter().map(|number| *number as f64).collect();
                let before = self.kinds.iter().filter(|kind| **kind == Kind::Value).count();
                self.kinds.iter_mut().filter(|kind| **kind == Kind::Value).for_each(|kind| *kind = Kind::Int);
                self.others += before;
                Cells::Numbers(numbers)
            }
            _ => self.mixed(texts),
        };
        if let Some(kind) = self.cells.write(row, value, texts) {
            return kind;
        }
        self.cells = self.mixed(texts);
        self.cells.write(row, value, texts).unwrap_or(Kind::Opaque)
    }

    fn mixed(&mut self, texts: &Dictionary) -> Cells {
        let values = (0..self.len()).map(|row| self.value(row, texts).unwrap_or_default()).collect();
        let ints = self.kinds.iter_mut().filter(|kind| **kind == Kind::Int);
        self.others -= ints.map(|kind| *kind = Kind::Value).count();
        Cells::Mixed(values)
    }
}

impl Cells {
    /// Cells of the value's type, with room for so many; none of them is written.
    fn for_value(value: &Value, room: usize) -> Cells {
        match value {
            Value::Int(_) => Cells::Ints(Vec::with_capacity(room)),
            Value::Double(_) => Cells::Numbers(Vec::with_capacity(room)),
            Value::Date(_) => Cells::Dates(Vec::with_capacity(room)),
            Value::Bool(_) => Cells::Bools(Vec::with_capacity(room)),
            Value::String(_) => Cells::Texts(Vec::with_capacity(room)),
            Value::Array(_) => Cells::Lists(Lists { spans: Vec::with_capacity(room), ..Lists::default() }),
            Value::Null | Value::Object(_) => Cells::Mixed(Vec::new()),
        }
    }

    /// Lets go of what a cell held.
    fn blank(&mut self, row: usize) {
        match self {
            Cells::Lists(lists) => lists.put(row, &[]),
            Cells::Mixed(cells) => put(cells, row, Value::Null),
            Cells::Empty | Cells::Ints(_) | Cells::Numbers(_) | Cells::Dates(_) | Cells::Bools(_) | Cells::Texts(_) => {
            }
        }
    }

    /// There are as many cells as rows, also where these hold no value.
    fn fill(&mut self, rows: usize) {
        fn fill<T: Clone>(cells: &mut Vec<T>, rows: usize, value: T) {
            if cells.len() < rows {
                cells.resize(rows, value);
            }
        }
        match self {
            Cells::Empty => {}
            Cells::Ints(cells) | Cells::Dates(cells) => fill(cells, rows, 0),
            Cells::Numbers(cells) => fill(cells, rows, 0.0),
            Cells::Bools(cells) => fill(cells, rows, false),
            Cells::Texts(cells) => fill(cells, rows, u32::MAX),
            Cells::Lists(lists) => fill(&mut lists.spans, rows, (0, 0)),
            Cells::Mixed(cells) => fill(cells, rows, Value::Null),
        }
    }

    /// Writes a value if it is of the cells' type.
    fn write(&mut self, row: usize, value: &Value, texts: &mut Dictionary) -> Option<Kind> {
        match (self, value) {
            (Cells::Ints(cells), Value::Int(number)) => put(cells, row, *number),
            (Cells::Numbers(cells), Value::Double(number)) => put(cells, row, *number),
            (Cells::Numbers(cells), Value::Int(number)) if is_exact(*number) => {
                put(cells, row, *number as f64);
                return Some(Kind::Int);
            }
            (Cells::Dates(cells), Value::Date(ms)) => put(cells, row, *ms),
            (Cells::Bools(cells), Value::Bool(flag)) => put(cells, row, *flag),
            (Cells::Texts(cells), Value::String(text)) => put(cells, row, texts.code_or_add(text)),
            (Cells::Lists(lists), Value::Array(items)) => {
                if !items.iter().all(|item| matches!(item, Value::String(_))) {
                    return None;
                }
                let code = |item: &Value| match item {
                    Value::String(text) => texts.code_or_add(text),
                    _ => u32::MAX,
                };
                let codes: Vec<u32> = items.iter().map(code).collect();
                lists.put(row, &codes);
            }
            (Cells::Mixed(cells), value) => put(cells, row, value.clone()),
            _ => return None,
        }
        Some(Kind::Value)
    }
}

impl Lists {
    /// The codes of a row's list.
    pub fn get(&self, row: usize) -> &[u32] {
        let Some((start, len)) = self.spans.get(row).copied() else { return &[] };
        self.codes.get(start as usize..(start + len) as usize).unwrap_or_default()
    }

    fn put(&mut self, row: usize, codes: &[u32]) {
        while self.spans.len() <= row {
            self.spans.push((0, 0));
        }
        let (start, len) = self.spans[row];
        if codes.len() <= len as usize {
            self.codes[start as usize..start as usize + codes.len()].copy_from_slice(codes);
            self.spans[row].1 = codes.len() as u32;
            self.stale += len as usize - codes.len();
            return;
        }
        self.stale += len as usize;
        self.spans[row] = (self.codes.len() as u32, codes.len() as u32);
        self.codes.extend_from_slice(codes);
        if self.stale > self.codes.len() / 2 + super::SEGMENT {
            self.compact();
        }
    }

    /// Gives back the room that no row will need any more.
    fn finish(&mut self) {
        self.codes.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    fn compact(&mut self) {
        let mut codes = Vec::with_capacity(self.codes.len() - self.stale);
        for (start, len) in &mut self.spans {
            let list = &self.codes[*start as usize..(*start + *len) as usize];
            *start = codes.len() as u32;
            codes.extend_from_slice(list);
        }
        self.codes = codes;
        self.stale = 0;
    }
}

/// The texts that codes stand for.
pub fn texts_of<'d>(codes: &'d [u32], texts: &'d Dictionary) -> impl Iterator<Item = Value> + 'd {
    codes.iter().filter_map(|code| texts.text(*code)).cloned().map(Value::String)
}

fn put<T: Clone + Default>(cells: &mut Vec<T>, row: usize, value: T) {
    if cells.len() <= row {
        cells.resize(row + 1, T::default());
    }
    cells[row] = value;
}

fn is_exact(number: i64) -> bool {
    (-EXACT..=EXACT).contains(&number)
}

/// Whether two values show alike: equal, and of the same types within.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            std::sync::Arc::ptr_eq(a, b) || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)))
        }
        (Value::Object(a), Value::Object(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::Int(_), Value::Double(_)) | (Value::Double(_), Value::Int(_)) => false,
        _ => a == b,
    }
}
