//! Column sources: inputs that are bound to the columns that they read. A source provides the values of its input for
//! rows of a segment.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use super::input::{Input, RowInput, Shape};
use super::keys::InputValues;
use super::unwind::UnwoundSegment;
use crate::model::value::{Object, Value};
use crate::pipeline::column::{Cells, Column, Dictionary};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;
use crate::pipeline::value::path::FieldPath;

/// The maximum number of strings in a dictionary for which the values of an expression are cached. With a larger
/// dictionary, no values are cached.
const MAX_CACHED_TEXTS: usize = 4_096;

/// The empty dictionary, for sources whose values contain no string codes.
static NO_TEXTS: LazyLock<Dictionary> = LazyLock::new(Dictionary::default);

/// An input bound to the columns that it reads.
pub enum ColumnSource<'a> {
    Constant(&'a Value),
    Column(&'a Column),
    /// The items of the arrays in a column or, with a path, the value at this path in each item.
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

impl Chunk<'_> {
    /// Returns the size, in bytes, of a list that contains one value for each row.
    fn list_bytes(&self) -> usize {
        self.rows.len() * size_of::<Option<Value>>()
    }
}

/// The values of a source for a chunk.
pub struct ChunkValues<'f> {
    pub input: InputValues<'f>,
    /// The dictionary of the string codes in the values.
    pub texts: &'f Dictionary,
    /// The number of bytes that the query is charged for the list of the values.
    pub list_bytes: usize,
    /// The size, in bytes, of the values that were built for the chunk. The query is charged for these values until the
    /// caller gives these bytes back.
    pub built_bytes: usize,
}

impl ChunkValues<'_> {
    /// Returns the number of bytes that the query is charged for the list and for the values.
    pub fn bytes(&self) -> usize {
        self.list_bytes + self.built_bytes
    }

    /// Returns an upper limit for the number of bytes of a row's value that were built for the chunk.
    fn built(&self) -> usize {
        if self.built_bytes > 0 || self.builds_arrays() { usize::MAX } else { 0 }
    }

    /// Returns whether the values are lists, for which each read builds an array.
    fn builds_arrays(&self) -> bool {
        matches!(self.input, InputValues::Segment(segment) if matches!(segment.cells(), Cells::Lists(_)))
    }

    /// Returns the value of a row. The arguments are those of [`InputValues::value`].
    pub fn value(&self, nth: usize, row: u32) -> Option<Value> {
        self.input.value(nth, row, self.texts)
    }

    /// Returns the value of a row as an input. The arguments are those of [`InputValues::value`].
    pub fn input(&self, nth: usize, row: u32) -> InputValue {
        let value = self.value(nth, row);
        let built = match &value {
            _ if self.built_bytes > 0 => usize::MAX,
            // The strings of a list belong to the dictionary.
            Some(list) if self.builds_arrays() => memory::own_bytes(list),
            _ => 0,
        };
        InputValue { value, built }
    }
}

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

    /// Returns the values for a chunk. Newly built values are written into `buffer`. The query is charged for the new
    /// values and for the buffer.
    pub fn values<'f>(&'f self, chunk: Chunk<'f>, buffer: &'f mut Vec<Option<Value>>) -> Result<ChunkValues<'f>> {
        let query = chunk.run.query;
        let held = |input| ChunkValues { input, texts: self.texts(), list_bytes: 0, built_bytes: 0 };
        let list_bytes = chunk.list_bytes();
        let built_bytes = match self {
            ColumnSource::Constant(value) => return Ok(held(InputValues::Constant(Some(value)))),
            ColumnSource::Column(column) => {
                let segment = column.segments().get(chunk.segment);
                return Ok(held(segment.map_or(InputValues::Constant(None), |segment| InputValues::Segment(segment))));
            }
            ColumnSource::Item(_, None) => return Ok(held(chunk.unwound.items())),
            ColumnSource::Item(_, Some(path)) => {
                query.charge(list_bytes)?;
                let (read, built) = query.charged(|| chunk.unwound.read(path, query))?;
                *buffer = read;
                built
            }
            ColumnSource::Computed(computed) => {
                query.charge(list_bytes)?;
                computed.eval(chunk, buffer)?
            }
        };
        Ok(ChunkValues { input: InputValues::Values(buffer), texts: self.texts(), list_bytes, built_bytes })
    }

    /// Returns whether reading the source builds a new array for each row. This is the
    /// case if a column stores lists. An array that is read from a row of the table is shared with the row instead.
    pub fn builds_arrays(&self) -> bool {
        let ColumnSource::Column(column) = self else { return false };
        column.segments().iter().any(|segment| matches!(segment.cells(), Cells::Lists(_)))
    }
}

impl<'a> ComputedSource<'a> {
    /// Writes the value of each row into `buffer`. Returns the number of bytes that the query is charged for the values
    /// that are not cached.
    fn eval(&self, chunk: Chunk, buffer: &mut Vec<Option<Value>>) -> Result<usize> {
        buffer.clear();
        buffer.reserve(chunk.rows.len());
        let mut known = self.known.borrow_mut();
        let (mut read, mut bytes) = (Value::Null, 0);
        self.row.values(chunk, |inputs| {
            let built = row_built(inputs);
            for (nth, row) in chunk.rows.iter().enumerate() {
                chunk.run.query.tick()?;
                let value = match text(inputs, nth, *row) {
                    Some(number) => match known.get(number) {
                        Some(Some(value)) => value.clone(),
                        _ => {
                            let (value, _) = self.value(&self.row.make(inputs, nth, *row), built, chunk.run)?;
                            if known.len() <= number {
                                known.resize(number + 1, None);
                            }
                            known[number] = Some(value.clone());
                            value
                        }
                    },
                    None => {
                        self.row.write(&mut read, inputs, nth, *row);
                        let (value, charged) = self.value(&read, built, chunk.run)?;
                        bytes += charged;
                        value
                    }
                };
                buffer.push(value);
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Evaluates the expression over a row. `built` is an upper limit for the number of bytes that were newly built for
    /// the row. Returns the value, and the number of bytes that the query is charged for the value.
    fn value(&self, row: &Value, built: usize, run: RunContext) -> Result<(Option<Value>, usize)> {
        let input = InputValue::of_row(self.expr, built, &run.env(row))?;
        let bytes = input.built_bytes(run.query)?;
        run.query.charge(bytes)?;
        Ok((input.value, bytes))
    }
}

/// Returns an upper limit for the number of bytes that were newly built for a row of the chunk.
fn row_built(inputs: &[ChunkValues]) -> usize {
    inputs.iter().map(ChunkValues::built).max().unwrap_or(0)
}

/// If a row is built from a single string, returns the code of this string as an index. Returns `None` for other rows,
/// and if the dictionary has more than [`MAX_CACHED_TEXTS`] strings.
fn text(inputs: &[ChunkValues], nth: usize, row: u32) -> Option<usize> {
    match inputs {
        [only] if only.texts.len() <= MAX_CACHED_TEXTS => only.input.code(nth, row)?.index(),
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

    /// Builds each row of a chunk, and calls `show` for the row. The arguments of `show` are the position of the row in
    /// the chunk, the row, and an upper limit for the number of bytes that were newly built for the row.
    pub fn rows(&self, chunk: Chunk, mut show: impl FnMut(usize, &Value, usize) -> Result<()>) -> Result<()> {
        let mut read = Value::Null;
        self.values(chunk, |inputs| {
            let built = row_built(inputs);
            for (nth, row) in chunk.rows.iter().enumerate() {
                chunk.run.query.tick()?;
                self.write(&mut read, inputs, nth, *row);
                show(nth, &read, built)?;
            }
            Ok(())
        })
    }

    fn values(&self, chunk: Chunk, work: impl FnOnce(&[ChunkValues]) -> Result<()>) -> Result<()> {
        let mut buffers = vec![Vec::new(); self.sources.len()];
        let inputs = self.sources.iter().zip(&mut buffers).map(|(source, buffer)| source.values(chunk, buffer));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        work(&inputs)?;
        chunk.run.query.give_back(inputs.iter().map(ChunkValues::bytes).sum());
        Ok(())
    }

    /// Builds one row in `last`. Reuses the memory of the row in `last` if no other value shares it.
    fn write(&self, last: &mut Value, inputs: &[ChunkValues], nth: usize, row: u32) {
        let mut input = |input: usize| inputs.get(input)?.value(nth, row);
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
    fn make(&self, inputs: &[ChunkValues], nth: usize, row: u32) -> Value {
        self.shape.make(&mut |input| inputs.get(input)?.value(nth, row)).unwrap_or_default()
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
