//! `$group` over columns, with an optional `$unwind` or projection before it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::accumulate::PartialResults;
use super::input::{Input, IntermediateStep, RowInput};
use super::keys::Keys;
use super::select::RowSelection;
use super::source::{Chunk, ChunkValues, ColumnSource, RowSources};
use super::unwind::UnwoundSegment;
use crate::model::value::{Object, Value};
use crate::pipeline::column::{Column, can_keep};
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorState};
use crate::pipeline::expression::projection::Projection;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{EXCEEDED_MEMORY, PipelineErrorCode, Result};
use crate::pipeline::value::memory;

/// A grouping that reads its inputs from the cells of columns, without building whole rows.
#[derive(Debug)]
pub struct ColumnGroup {
    unwind: Option<(Arc<str>, bool)>,
    /// The parts of the key: its fields, or a single value if the key is not an object.
    key: Vec<(Arc<str>, Input)>,
    is_object: bool,
    fields: Vec<(Arc<str>, Accumulator, AccumulatorInput)>,
}

/// The step between the scan and the grouping.
pub enum PrecedingStep<'p> {
    Nothing,
    Unwind(&'p ast::Unwind),
    Project(&'p Projection),
}

/// The input of an accumulator.
#[derive(Debug)]
enum AccumulatorInput {
    /// The value that the accumulator reads from each row. The accumulator reads nothing else.
    Value(Input),
    /// A row with the fields that the accumulator reads.
    Row(RowInput),
}

impl ColumnGroup {
    /// Creates a grouping over columns. Returns `None` if the preceding step cannot run over columns, or if columns
    /// cannot provide the input of the grouping.
    pub fn new(preceding: PrecedingStep, group: &ast::Group) -> Option<ColumnGroup> {
        let mut unwind = None;
        let before = match preceding {
            PrecedingStep::Nothing => IntermediateStep::Nothing,
            PrecedingStep::Unwind(ast::Unwind { path, preserve, index: None }) => {
                let path: Arc<str> = path.segments().join(".").into();
                let (path, _) = unwind.insert((path, *preserve));
                can_keep(path).then_some(IntermediateStep::Unwind(path))?
            }
            PrecedingStep::Unwind(_) => return None,
            PrecedingStep::Project(projection) => {
                let mut read = Vec::new();
                group.visit_paths(&mut |path| read.extend(path.segments().first().cloned()));
                IntermediateStep::projection(projection, &read)?
            }
        };
        let (key, is_object) = match group.id.fields() {
            Some(fields) => {
                let part = |(name, expr): &(Arc<str>, _)| Some((name.clone(), before.input(expr)?));
                (fields.iter().map(part).collect::<Option<Vec<_>>>()?, true)
            }
            None => (vec![("_id".into(), before.input(&group.id)?)], false),
        };
        let field = |(name, accumulator): &(Arc<str>, Accumulator)| {
            let taken = match accumulator.value_input() {
                Some(expr) => AccumulatorInput::Value(before.input(expr)?),
                None if accumulator.draws() => return None,
                None => AccumulatorInput::Row(before.row(|visit| accumulator.visit_paths(visit))?),
            };
            Some((name.clone(), accumulator.clone(), taken))
        };
        let fields = group.fields.iter().map(field).collect::<Option<Vec<_>>>()?;
        // A key without fields is always the empty object, which columns cannot represent.
        (!key.is_empty()).then_some(ColumnGroup { unwind, key, is_object, fields })
    }

    /// Visits the paths for which columns are needed.
    pub fn visit_paths<'g>(&'g self, visit: &mut dyn FnMut(&'g Arc<str>)) {
        self.unwind.iter().for_each(|(path, _)| visit(path));
        self.key.iter().for_each(|(_, input)| input.visit_paths(visit));
        for (_, _, taken) in &self.fields {
            match taken {
                AccumulatorInput::Value(input) => input.visit_paths(visit),
                AccumulatorInput::Row(row) => row.visit_paths(visit),
            }
        }
    }

    /// Builds a key from the values of its parts.
    fn id(&self, mut parts: impl Iterator<Item = Option<Value>>) -> Value {
        if !self.is_object {
            return parts.next().flatten().unwrap_or_default();
        }
        if let [(name, _)] = &*self.key {
            return Object::from_iter([(name.clone(), parts.next().flatten().unwrap_or_default())]).into();
        }
        let named = self.key.iter().zip(parts);
        named.filter_map(|((name, _), value)| Some((name.clone(), value?))).collect::<Object>().into()
    }

    /// Returns whether the grouping evaluates expressions, which may fail for a row.
    fn computes(&self) -> bool {
        let computes = |taken: &AccumulatorInput| match taken {
            AccumulatorInput::Value(input) => input.is_computed(),
            AccumulatorInput::Row(_) => true,
        };
        self.key.iter().any(|(_, input)| input.is_computed()) || self.fields.iter().any(|(_, _, taken)| computes(taken))
    }

    /// Returns the rows of the groups, the number of selected rows, and the number of rows that are grouped. Returns
    /// `None` if the grouping must be evaluated by rows: a column is missing or cannot provide the values, an
    /// expression may have failed, or the memory does not suffice.
    pub fn run(
        &self,
        selection: &RowSelection,
        run: RunContext,
        index: usize,
    ) -> Result<Option<(Vec<GroupRow>, [u64; 2])>> {
        let Some(grouping) = GroupingState::new(self, selection.columns) else { return Ok(None) };
        let before = run.query.bytes_left.get();
        let failed = match grouping.run(selection, run, index) {
            // Columns are read one after the other, so the first error may differ from the error of the first failing
            // row. The evaluation by rows finds the correct error.
            Err(_) if self.computes() => None,
            // Each list that is read from a column is built again. The evaluation by rows shares the lists of the rows,
            // and may therefore need less memory.
            Err(error) if error.code == PipelineErrorCode::Number(EXCEEDED_MEMORY) => None,
            groups => return groups.map(Some),
        };
        run.query.bytes_left.set(before);
        Ok(failed)
    }
}

/// The state of a grouping.
struct GroupingState<'a> {
    group: &'a ColumnGroup,
    unwind: Option<(&'a Column, bool)>,
    key: Vec<ColumnSource<'a>>,
    keys: Vec<Keys<'a>>,
    /// The maps that number the combinations of key parts. Each map adds one part to the combinations, so the first
    /// part needs no map.
    pairs: Vec<Pairs>,
    fields: Vec<(BoundInput<'a>, PartialResults)>,
    /// The keys of the groups, indexed by the group number.
    ids: Vec<Value>,
}

/// The input of an accumulator, bound to columns.
enum BoundInput<'a> {
    Values(ColumnSource<'a>),
    Rows(RowSources<'a>),
}

/// A map that assigns a number to each pair of numbers. The first number of a pair identifies the preceding parts of
/// the key, and the second number identifies the next part.
type Pairs = FxHashMap<(u32, u32), u32>;

impl<'a> GroupingState<'a> {
    fn new(group: &'a ColumnGroup, columns: &'a dyn Columns) -> Option<GroupingState<'a>> {
        let unwind = match &group.unwind {
            Some((path, preserve)) => Some((columns.column(path).filter(|column| column.is_clear())?, *preserve)),
            None => None,
        };
        let unwound = unwind.map(|(column, _)| column);
        let source = |input| ColumnSource::bind(input, columns, unwound);
        let key: Vec<ColumnSource> = group.key.iter().map(|(_, input)| source(input)).collect::<Option<_>>()?;
        let field = |(_, accumulator, taken): &'a (_, Accumulator, AccumulatorInput)| {
            Some(match taken {
                AccumulatorInput::Value(input) => {
                    (BoundInput::Values(source(input)?), PartialResults::new(accumulator))
                }
                AccumulatorInput::Row(row) => {
                    (BoundInput::Rows(RowSources::bind(row, columns, unwound)?), PartialResults::States(Vec::new()))
                }
            })
        };
        let fields = group.fields.iter().map(field).collect::<Option<_>>()?;
        let keys = key.iter().map(|source| Keys::new(source.texts(), group.key.len() > 1)).collect();
        let pairs = key.iter().skip(1).map(|_| Pairs::default()).collect();
        Some(GroupingState { group, unwind, key, keys, pairs, fields, ids: Vec::new() })
    }

    fn run(mut self, selection: &RowSelection, run: RunContext, index: usize) -> Result<(Vec<GroupRow>, [u64; 2])> {
        let mut counts = [0u64; 2];
        let mut rows = Vec::new();
        let mut groups = [Vec::new(), Vec::new()];
        let mut unwound = UnwoundSegment::default();
        for segment in 0..selection.segments() {
            selection.mask(segment)?.write_rows(&mut rows);
            counts[0] += rows.len() as u64;
            let mut rows = rows.as_slice();
            if let Some((column, preserve)) = self.unwind {
                let Some(segment) = column.segments().get(segment) else { continue };
                unwound.fill(column, segment, (rows, preserve), run.query).map_err(|error| error.at_stage(index))?;
                rows = &unwound.rows;
            }
            counts[1] += rows.len() as u64;
            if !rows.is_empty() {
                let chunk = Chunk { segment, rows, unwound: &unwound, run };
                self.take(chunk, &mut groups).map_err(|error| error.at_stage(index))?;
            }
        }
        unwound.clear(run.query);
        Ok((self.finish(), counts))
    }

    /// Adds the rows of a segment.
    fn take(&mut self, chunk: Chunk, [groups, next]: &mut [Vec<u32>; 2]) -> Result<()> {
        let query = chunk.run.query;
        query.tick_many(chunk.rows.len() * self.key.len())?;
        let mut buffers = vec![Vec::new(); self.key.len()];
        let inputs = self.key.iter().zip(&mut buffers).map(|(source, buffer)| source.values(chunk, buffer));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        number((&mut self.keys, &mut self.pairs), &inputs, chunk, (groups, next))?;
        let ids = new_ids(self.group, &inputs, self.ids.len()..self.count(), (chunk.rows, groups));
        for id in ids {
            memory::hold(&id, query)?;
            query.charge(self.fields.len() * size_of::<AccumulatorState>())?;
            self.ids.push(id);
        }
        query.give_back(inputs.iter().map(ChunkValues::bytes).sum());
        drop(inputs);
        drop(buffers);
        for ((taking, gathered), (_, accumulator, _)) in self.fields.iter_mut().zip(&self.group.fields) {
            query.tick_many(chunk.rows.len())?;
            gathered.widen(&self.ids, accumulator, chunk.run)?;
            match taking {
                BoundInput::Values(source) => {
                    let mut buffer = Vec::new();
                    let values = source.values(chunk, &mut buffer)?;
                    gathered.add(accumulator, &values, (chunk.rows, groups), query)?;
                    query.give_back(values.bytes());
                }
                BoundInput::Rows(cells) => cells.rows(chunk, |nth, row, built| {
                    gathered.add_row(accumulator, groups[nth], built, &chunk.run.env(row))
                })?,
            }
        }
        Ok(())
    }

    /// Returns the number of distinct keys.
    fn count(&self) -> usize {
        match self.pairs.last() {
            Some(pairs) => pairs.len(),
            None => self.keys.first().map_or(0, Keys::count),
        }
    }

    fn finish(mut self) -> Vec<GroupRow> {
        let fields = std::mem::take(&mut self.fields).into_iter().zip(&self.group.fields);
        let columns = fields.map(|((_, gathered), (_, accumulator, _))| gathered.finish(accumulator).into_iter());
        let mut columns: Vec<_> = columns.collect();
        let finish = |id| {
            let mut row = Object::with_capacity(columns.len() + 1);
            let mut kept_bytes = 0;
            row.push("_id", id);
            for ((name, _, _), values) in self.group.fields.iter().zip(&mut columns) {
                let (value, bytes) = values.next().unwrap_or_default();
                kept_bytes += bytes;
                row.push(name.clone(), value);
            }
            GroupRow { row: row.into(), kept_bytes }
        };
        self.ids.into_iter().map(finish).collect()
    }
}

/// The row of a group. The query is still charged for the values of the row.
pub struct GroupRow {
    row: Value,
    kept_bytes: usize,
}

impl GroupRow {
    /// Returns the row. Cancels the charge for the computed fields, because an operator that keeps the row charges the
    /// query for the row. Returns an error if a computed field is nested too deeply or too large. The key, which is the
    /// first field, has already been checked.
    pub fn into_row(self, query: &Context) -> Result<Value> {
        query.give_back(self.kept_bytes);
        let fields = self.row.as_object().into_iter().flat_map(Object::iter);
        fields.skip(1).try_for_each(|(_, value)| memory::check_depth(value, query))?;
        Ok(self.row)
    }
}

/// Writes the group number of each row into `groups`.
fn number(
    (keys, pairs): (&mut [Keys], &mut [Pairs]),
    inputs: &[ChunkValues],
    chunk: Chunk,
    (groups, next): (&mut Vec<u32>, &mut Vec<u32>),
) -> Result<()> {
    for (nth, (keys, values)) in keys.iter_mut().zip(inputs).enumerate() {
        let Some(before) = nth.checked_sub(1) else {
            keys.number(values.input, chunk.rows, chunk.run.query, groups)?;
            continue;
        };
        keys.number(values.input, chunk.rows, chunk.run.query, next)?;
        let pairs = &mut pairs[before];
        groups.iter_mut().zip(next.iter()).for_each(|(group, part)| {
            let next = pairs.len() as u32;
            *group = *pairs.entry((*group, *part)).or_insert(next);
        });
    }
    Ok(())
}

/// Returns the keys of the groups whose first row is in `rows`. Equal keys may have different representations, such as
/// `1` and `1.0`. The key of a group has the representation of the first row.
fn new_ids(
    group: &ColumnGroup,
    inputs: &[ChunkValues],
    new: std::ops::Range<usize>,
    (rows, groups): (&[u32], &[u32]),
) -> Vec<Value> {
    let mut ids = Vec::with_capacity(new.len());
    for (nth, number) in groups.iter().enumerate() {
        if ids.len() == new.len() {
            break;
        }
        if *number as usize == new.start + ids.len() {
            ids.push(group.id(inputs.iter().map(|values| values.value(nth, rows[nth]))));
        }
    }
    ids
}
