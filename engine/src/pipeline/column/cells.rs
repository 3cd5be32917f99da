//! The typed values of a segment's cells, and the functions that write, read and drop a value.

use super::dictionary::{Dictionary, TextCode};
use super::lists::Lists;
use crate::model::value::Value;

/// The limit up to which doubles represent every integer exactly.
const MAX_EXACT_INT: i64 = 1 << 53;

/// The kind of a cell. The value of the cell is stored separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CellKind {
    Value,
    /// An integer that is stored as a double, without loss of precision.
    Int,
    Null,
    Missing,
    /// A cell whose path leads through an array. The value depends on the operation that reads the cell.
    Opaque,
}

/// The content of a row at the column's path.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'v> {
    Missing,
    Opaque,
    Value(&'v Value),
}

/// The values of a segment's cells, stored by their type.
#[derive(Debug, Clone)]
pub enum Cells {
    /// No values.
    Empty,
    Ints(Vec<i64>),
    Numbers(Vec<f64>),
    Dates(Vec<i64>),
    Bools(Vec<bool>),
    /// Strings, each stored as its code in the column's dictionary. A cell without a string contains the default code.
    Texts(Vec<TextCode>),
    /// Arrays that contain only strings.
    Lists(Lists),
    Mixed(Vec<Value>),
}

impl Cells {
    /// Returns the approximate size of the cells in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            Cells::Empty => 0,
            Cells::Ints(cells) | Cells::Dates(cells) => cells.capacity() * size_of::<i64>(),
            Cells::Numbers(cells) => cells.capacity() * size_of::<f64>(),
            Cells::Bools(cells) => cells.capacity(),
            Cells::Texts(cells) => cells.capacity() * size_of::<TextCode>(),
            Cells::Lists(lists) => lists.size_bytes(),
            Cells::Mixed(cells) => cells.iter().map(Value::size_bytes).sum(),
        }
    }

    /// Returns the value of a cell of the kind [`CellKind::Value`]. If the cells do not contain the row, returns an
    /// empty array for [`Cells::Lists`], and `None` for all other cells.
    pub fn value(&self, row: usize, texts: &Dictionary) -> Option<Value> {
        match self {
            Cells::Empty => None,
            Cells::Ints(cells) => cells.get(row).copied().map(Value::Int),
            Cells::Numbers(cells) => cells.get(row).copied().map(Value::Double),
            Cells::Dates(cells) => cells.get(row).copied().map(Value::Date),
            Cells::Bools(cells) => cells.get(row).copied().map(Value::Bool),
            Cells::Texts(cells) => cells.get(row).and_then(|code| texts.text(*code)).cloned().map(Value::String),
            Cells::Lists(lists) => Some(texts_of(lists.get(row), texts).collect::<Vec<_>>().into()),
            Cells::Mixed(cells) => cells.get(row).cloned(),
        }
    }

    /// Returns empty cells of the value's type, with capacity for `capacity` rows. For a type without its own cells,
    /// returns [`Cells::Mixed`] without capacity.
    pub fn for_value(value: &Value, capacity: usize) -> Cells {
        match value {
            Value::Int(_) => Cells::Ints(Vec::with_capacity(capacity)),
            Value::Double(_) => Cells::Numbers(Vec::with_capacity(capacity)),
            Value::Date(_) => Cells::Dates(Vec::with_capacity(capacity)),
            Value::Bool(_) => Cells::Bools(Vec::with_capacity(capacity)),
            Value::String(_) => Cells::Texts(Vec::with_capacity(capacity)),
            Value::Array(_) => Cells::Lists(Lists::with_capacity(capacity)),
            Value::Null | Value::Decimal(_) | Value::Object(_) => Cells::Mixed(Vec::new()),
        }
    }

    /// Clears the value of a row. Has no effect if the cells store only integers, only doubles, only dates or only
    /// booleans.
    pub fn blank(&mut self, row: usize) {
        match self {
            Cells::Lists(lists) => lists.put(row, &[]),
            Cells::Mixed(cells) => put(cells, row, Value::Null),
            Cells::Texts(cells) => put(cells, row, TextCode::default()),
            Cells::Empty | Cells::Ints(_) | Cells::Numbers(_) | Cells::Dates(_) | Cells::Bools(_) => {}
        }
    }

    /// Extends the vector of values to `rows` cells. A row without a value gets a default value.
    pub fn fill(&mut self, rows: usize) {
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
            Cells::Texts(cells) => fill(cells, rows, TextCode::default()),
            Cells::Lists(lists) => lists.fill(rows),
            Cells::Mixed(cells) => fill(cells, rows, Value::Null),
        }
    }

    /// Writes a value and returns the kind of its cell. Returns `None` if the type of the cells cannot represent the
    /// value.
    pub fn write(&mut self, row: usize, value: &Value, texts: &mut Dictionary) -> Option<CellKind> {
        match (self, value) {
            (Cells::Ints(cells), Value::Int(number)) => put(cells, row, *number),
            (Cells::Numbers(cells), Value::Double(number)) => put(cells, row, *number),
            (Cells::Numbers(cells), Value::Int(number)) if is_exact(*number) => {
                put(cells, row, *number as f64);
                return Some(CellKind::Int);
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
                    _ => TextCode::default(),
                };
                let codes: Vec<TextCode> = items.iter().map(code).collect();
                lists.put(row, &codes);
            }
            (Cells::Mixed(cells), value) => put(cells, row, value.clone()),
            _ => return None,
        }
        Some(CellKind::Value)
    }
}

/// Returns the strings that have the given codes.
fn texts_of<'d>(codes: &'d [TextCode], texts: &'d Dictionary) -> impl Iterator<Item = Value> + 'd {
    codes.iter().filter_map(|code| texts.text(*code)).cloned().map(Value::String)
}

fn put<T: Clone + Default>(cells: &mut Vec<T>, row: usize, value: T) {
    if cells.len() <= row {
        cells.resize(row + 1, T::default());
    }
    cells[row] = value;
}

pub fn is_exact(number: i64) -> bool {
    (-MAX_EXACT_INT..=MAX_EXACT_INT).contains(&number)
}
