//! Inputs bound to columns, which provide the values for rows of a segment.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use super::input::{Input, RowInput, Shape};
use super::keys::InputValues;
use super::unwind::UnwoundSegment;
use crate::model::value::{Object, Value};
use crate::pipeline::column::Column;
use crate::pipeline::column::{Dictionary, TextCode};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;
use crate::pipeline::value::path::FieldPath;

/// The maximum number of strings for which the values of an expression are cached.
const MAX_CACHED_TEXTS: usize = 4_096;

/// The empty dictionary, for sources without a column.
static NO_TEXTS: LazyLock<Dictionary> = LazyLock::new(Dictionary::default);

/// An input bound to the columns that it reads.
pub enum ColumnSource<'a> {
    Constant(&'a Value),
    Column(&'a Column),
    /// The items of the arrays in a column, or the values that a path reads in the items.
    Item(&'a Column, Option<&'a FieldPath>),
    Computed(ComputedSource<'a>),
}

/// An expression, and the row of sources that the expression reads.
pub struct ComputedSource<'a> {
    expr: &'a Expr,
    row: RowSources<'a>,
    /// The cached results of an expression that reads only one string, indexed by the code of the string.
    known: RefCell<Vec<Option<Option<Value>>>>,
}

/// The sources that rows are built from.
pub struct RowSources<'a> {
    sources: Vec<ColumnSource<'a>>,
    shape: &'a Shape,
}

/// The rows of one segment that are processed together.
#[derive(Clone, Copy)]
pub struct Chunk<'c> {
    pub segment: usize,
    pub rows: &'c [u32],
    pub unwound: &'c UnwoundSegment,
    pub run: RunContext<'c>,
}

/// The values of a source for a chunk, with the dictionary of their string codes.
type TextInput<'f> = (InputValues<'f>, &'f Dictionary);

impl<'a> ColumnSource<'a> {
    /// Binds an input to columns. Returns `None` if a column is missing or cannot provide all values.
    pub fn bind(input: &'a Input, columns: &'a dyn Columns, unwound: Option<&'a Column>) -> Option<ColumnSource<'a>> {
        Some(match input {
            Input::Constant(value) => ColumnSource::Constant(value),
            Input::Path(path) => ColumnSource::Column(columns.column(path).filter(|column| column.is_clear())?),
            Input::Item(path) => ColumnSource::Item(unwound?, path.as_ref()),
            Input::Computed(computed) => {
                let (expr, row) = &**computed;
                let row = RowSources::bind(row, columns, unwound)?;
                ColumnSource::Computed(ComputedSource { expr, row, known: RefCell::default() })
            }
        })
    }

    /// Returns the dictionary of the string codes in the source's values.
    pub fn texts(&self) -> &'a Dictionary {
        match self {
            ColumnSource::Column(column) | ColumnSource::Item(column, None) => column.texts(),
            ColumnSource::Constant(_) | ColumnSource::Item(_, Some(_)) | ColumnSource::Computed(_) => &NO_TEXTS,
        }
    }

    /// Returns the values for a chunk. Newly built values are written into `buffer` and charged to the query.
    pub fn values<'f>(&'f self, chunk: Chunk<'f>, buffer: &'f mut Vec<Option<Value>>) -> Result<InputValues<'f>> {
        match self {
            ColumnSource::Constant(value) => return Ok(InputValues::Constant(Some(value))),
            ColumnSource::Column(column) => {
                let segment = column.segments().get(chunk.segment);
                return Ok(segment.map_or(InputValues::Constant(None), |segment| InputValues::Segment(segment)));
            }
            ColumnSource::Item(_, None) => return Ok(chunk.unwound.items()),
            ColumnSource::Item(_, Some(path)) => *buffer = chunk.unwound.read(path),
            ColumnSource::Computed(computed) => computed.eval(chunk, buffer)?,
        }
        Ok(InputValues::Values(buffer))
    }
}

impl<'a> ComputedSource<'a> {
    fn eval(&self, chunk: Chunk, buffer: &mut Vec<Option<Value>>) -> Result<()> {
        buffer.clear();
        buffer.reserve(chunk.rows.len());
        let mut known = self.known.borrow_mut();
        let mut read = Value::Null;
        self.row.values(chunk, |inputs| {
            for (nth, row) in chunk.rows.iter().enumerate() {
                chunk.run.query.tick()?;
                let value = match text(inputs, nth, *row) {
                    Some(code) => self.of_text(code, &mut known, || self.row.make(inputs, nth, *row), chunk.run)?,
                    None => {
                        self.row.write(&mut read, inputs, nth, *row);
                        self.expr.eval(&chunk.run.env(&read))?
                    }
                };
                memory::measure_all(&value, chunk.run.query)?;
                buffer.push(value);
            }
            Ok(())
        })
    }

    fn of_text(
        &self,
        code: TextCode,
        known: &mut Vec<Option<Option<Value>>>,
        row: impl FnOnce() -> Value,
        run: RunContext,
    ) -> Result<Option<Value>> {
        let Some(number) = code.index() else { return self.expr.eval(&run.env(&row())) };
        if let Some(Some(value)) = known.get(number) {
            return Ok(value.clone());
        }
        let value = self.expr.eval(&run.env(&row()))?;
        if let Some(value) = &value {
            memory::hold(value, run.query)?;
        }
        if known.len() <= number {
            known.resize(number + 1, None);
        }
        known[number] = Some(value.clone());
        Ok(value)
    }
}

/// Returns the code of the only string that a row is built from. Returns `None` if the row has other inputs, or if the
/// dictionary is large.
fn text(inputs: &[TextInput], nth: usize, row: u32) -> Option<TextCode> {
    match inputs {
        [(values, texts)] if texts.len() <= MAX_CACHED_TEXTS => values.code(nth, row),
        _ => None,
    }
}

impl<'a> RowSources<'a> {
    /// Binds the inputs of a row to columns. Returns `None` if a column is missing or cannot provide all values.
    pub fn bind(row: &'a RowInput, columns: &'a dyn Columns, unwound: Option<&'a Column>) -> Option<RowSources<'a>> {
        let sources =
            row.inputs.iter().map(|input| ColumnSource::bind(input, columns, unwound)).collect::<Option<_>>()?;
        Some(RowSources { sources, shape: &row.shape })
    }

    /// Builds each row of a chunk, and calls `show` with the row and its position in the chunk.
    pub fn rows(&self, chunk: Chunk, mut show: impl FnMut(usize, &Value) -> Result<()>) -> Result<()> {
        let mut read = Value::Null;
        self.values(chunk, |inputs| {
            for (nth, row) in chunk.rows.iter().enumerate() {
                chunk.run.query.tick()?;
                self.write(&mut read, inputs, nth, *row);
                show(nth, &read)?;
            }
            Ok(())
        })
    }

    fn values(&self, chunk: Chunk, work: impl FnOnce(&[TextInput]) -> Result<()>) -> Result<()> {
        let mut buffers = vec![Vec::new(); self.sources.len()];
        let inputs = self
            .sources
            .iter()
            .zip(&mut buffers)
            .map(|(source, buffer)| Ok((source.values(chunk, buffer)?, source.texts())));
        work(&inputs.collect::<Result<Vec<_>>>()?)
    }

    /// Builds one row in `last`. Reuses the memory of the row in `last` if no other value shares it.
    fn write(&self, last: &mut Value, inputs: &[TextInput], nth: usize, row: u32) {
        let mut input = |input: usize| inputs.get(input).and_then(|(values, texts)| values.value(nth, row, texts));
        let is_written = match (self.shape, &mut *last) {
            (Shape::Object(fields), Value::Object(object)) if object.len() == fields.len() => Arc::get_mut(object)
                .is_some_and(|object| {
                    fields
                        .iter()
                        .zip(object.iter_mut())
                        .all(|((_, field), (_, value))| field.make(&mut input).map(|made| *value = made).is_some())
                }),
            _ => false,
        };
        if !is_written {
            *last = self.make(inputs, nth, row);
        }
    }

    /// Builds one row.
    fn make(&self, inputs: &[TextInput], nth: usize, row: u32) -> Value {
        self.shape
            .make(&mut |input| inputs.get(input).and_then(|(values, texts)| values.value(nth, row, texts)))
            .unwrap_or_default()
    }
}

impl Shape {
    /// Builds the value of this shape from the values of the inputs.
    fn make(&self, input: &mut dyn FnMut(usize) -> Option<Value>) -> Option<Value> {
        match self {
            Shape::Input(number) => input(*number),
            Shape::Object(fields) => {
                let mut object = Object::with_capacity(fields.len());
                for (name, field) in fields {
                    if let Some(value) = field.make(input) {
                        object.push(name.clone(), value);
                    }
                }
                Some(object.into())
            }
        }
    }
}
