//! The keys of groups. Each distinct value gets a number.

use rustc_hash::FxHashMap;

use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells, Dictionary, Segment, TextCode};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure_all;
use crate::pipeline::value::number::whole;

/// The values of one input for some rows of a segment.
#[derive(Clone, Copy)]
pub enum InputValues<'a> {
    /// The values of all rows of the segment. The index of a value is the index of its row in the segment.
    Segment(&'a Segment),
    /// One string for each row, in the order of the rows, as codes of the dictionary.
    Codes(&'a [TextCode]),
    /// One value for each row, in the order of the rows.
    Values(&'a [Option<Value>]),
    Constant(Option<&'a Value>),
}

impl InputValues<'_> {
    /// Returns the value of a row. `row` is the index of the row in the segment, and `nth` is the position of the row
    /// in the list of processed rows.
    pub fn value(&self, nth: usize, row: u32, texts: &Dictionary) -> Option<Value> {
        match self {
            InputValues::Segment(segment) => segment.value(row as usize, texts),
            InputValues::Codes(codes) => codes.get(nth).and_then(|code| texts.text(*code)).cloned().map(Value::String),
            InputValues::Values(values) => values.get(nth).cloned().flatten(),
            InputValues::Constant(value) => value.cloned(),
        }
    }

    /// Returns the code of a row's string, or `None` if the value is not stored as a code. The arguments are those of
    /// [`value`](InputValues::value).
    pub fn code(&self, nth: usize, row: u32) -> Option<TextCode> {
        match self {
            InputValues::Codes(codes) => codes.get(nth).copied(),
            InputValues::Segment(segment) => match (segment.cells(), segment.kind(row as usize)) {
                (Cells::Texts(cells), CellKind::Value) => cells.get(row as usize).copied(),
                _ => None,
            },
            InputValues::Values(_) | InputValues::Constant(_) => None,
        }
    }
}

const UNASSIGNED: u32 = u32::MAX;

/// The numbers of the distinct values. The values are numbered in the order in which they first appear.
pub struct Keys<'a> {
    texts: &'a Dictionary,
    by_code: Vec<u32>,
    by_int: FxHashMap<i64, u32>,
    by_value: FxHashMap<Value, u32>,
    null: u32,
    missing: u32,
    /// Whether a missing value has a different key from null.
    is_missing_distinct: bool,
    count: u32,
}

impl<'a> Keys<'a> {
    /// Creates the keys of a column with the dictionary `texts`. With `is_missing_distinct`, a missing value has a
    /// different key from null.
    pub fn new(texts: &'a Dictionary, is_missing_distinct: bool) -> Keys<'a> {
        Keys {
            texts,
            by_code: Vec::new(),
            by_int: FxHashMap::default(),
            by_value: FxHashMap::default(),
            null: UNASSIGNED,
            missing: UNASSIGNED,
            is_missing_distinct,
            count: 0,
        }
    }

    /// Returns the number of distinct values.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Writes the number of each row's value into `out`. Returns an error if hashing the values exceeds the limits of
    /// the query.
    pub fn number(&mut self, values: InputValues, rows: &[u32], query: &Context, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        out.reserve(rows.len());
        match values {
            InputValues::Codes(codes) => {
                self.widen();
                out.extend(codes.iter().map(|code| self.of_code(*code)));
            }
            InputValues::Values(values) => {
                for value in values {
                    measure_all(value, query)?;
                    out.push(self.of_value(value.as_ref()));
                }
            }
            InputValues::Constant(value) => {
                let key = self.of_value(value);
                out.resize(rows.len(), key);
            }
            InputValues::Segment(segment) => self.of_segment(segment, rows, query, out)?,
        }
        Ok(())
    }

    fn of_segment(&mut self, segment: &Segment, rows: &[u32], query: &Context, out: &mut Vec<u32>) -> Result<()> {
        match segment.cells() {
            Cells::Texts(cells) if segment.is_plain() => {
                self.widen();
                out.extend(rows.iter().map(|row| self.of_code(cells[*row as usize])));
            }
            Cells::Texts(cells) => {
                self.widen();
                out.extend(rows.iter().map(|row| match segment.kind(*row as usize) {
                    CellKind::Value => self.of_code(cells[*row as usize]),
                    kind => self.of_none(kind),
                }));
            }
            Cells::Ints(cells) => out.extend(rows.iter().map(|row| match segment.kind(*row as usize) {
                CellKind::Value => self.of_int(cells[*row as usize]),
                kind => self.of_none(kind),
            })),
            _ => {
                for row in rows {
                    out.push(match segment.kind(*row as usize) {
                        CellKind::Value | CellKind::Int => {
                            let value = segment.value(*row as usize, self.texts);
                            measure_all(&value, query)?;
                            self.of_value(value.as_ref())
                        }
                        kind => self.of_none(kind),
                    });
                }
            }
        }
        Ok(())
    }

    fn widen(&mut self) {
        if self.by_code.len() < self.texts.len() {
            self.by_code.resize(self.texts.len(), UNASSIGNED);
        }
    }

    fn of_code(&mut self, code: TextCode) -> u32 {
        let Some(index) = code.index() else { return self.of_none(CellKind::Missing) };
        match self.by_code.get(index) {
            Some(&key) if key != UNASSIGNED => key,
            _ => {
                let key = self.add();
                if let Some(slot) = self.by_code.get_mut(index) {
                    *slot = key;
                }
                key
            }
        }
    }

    fn of_int(&mut self, number: i64) -> u32 {
        if let Some(key) = self.by_int.get(&number) {
            return *key;
        }
        let key = self.add();
        self.by_int.insert(number, key);
        key
    }

    fn of_none(&mut self, kind: CellKind) -> u32 {
        let missing = kind == CellKind::Missing && self.is_missing_distinct;
        let known = if missing { self.missing } else { self.null };
        if known != UNASSIGNED {
            return known;
        }
        let key = self.add();
        *(if missing { &mut self.missing } else { &mut self.null }) = key;
        key
    }

    fn of_value(&mut self, value: Option<&Value>) -> u32 {
        match value {
            None => self.of_none(CellKind::Missing),
            Some(Value::Null) => self.of_none(CellKind::Null),
            Some(Value::Int(number)) => self.of_int(*number),
            // Equal numbers have one key, regardless of their types.
            Some(value @ (Value::Double(_) | Value::Decimal(_))) if whole(value).is_some() => {
                self.of_int(whole(value).unwrap_or_default())
            }
            // A string in the dictionary has the same key as its code in a segment.
            Some(Value::String(text)) if self.texts.code(text).is_some() => {
                self.widen();
                self.of_code(self.texts.code(text).unwrap_or_default())
            }
            Some(value) => {
                if let Some(key) = self.by_value.get(value) {
                    return *key;
                }
                let key = self.add();
                self.by_value.insert(value.clone(), key);
                key
            }
        }
    }

    fn add(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }
}
