//! `$setWindowFields` over columns, with an optional projection before it.
//!
//! The partitions, their order and the inputs of the functions come from columns, which take a few bytes for each row.
//! Rows are built only for the result, and for expressions other than paths and constants.

mod order;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::input::{Input, IntermediateStep};
use super::keys::Keys;
use super::select::RowSelection;
use super::source::{Chunk, ColumnSource};
use super::unwind::UnwoundSegment;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::projection::{Projection, ProjectionKind};
use crate::pipeline::expression::read_fields::ReadFields;
use crate::pipeline::expression::window::WindowFunction;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Rows, RunContext};
use crate::pipeline::run::windows::WindowStage;
use crate::pipeline::value::error::{EXCEEDED_MEMORY, PipelineErrorCode, Result};
use crate::pipeline::value::memory::{self, measure};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::sorting::sorted;

use table::WindowTable;

/// The path of the ids, which have no column.
const ID: &str = "_id";

/// Windows whose partitions and order come from columns.
#[derive(Debug)]
pub struct ColumnWindows {
    stage: WindowStage,
    /// The projection between the scan and the windows.
    before: Option<Arc<Projection>>,
    partition: Option<Input>,
    /// The paths of the sort keys and of the functions' inputs, each with the input that provides the values. The input
    /// is `None` for the ids of the table, which have no column.
    paths: Vec<(Arc<str>, Option<Input>)>,
    /// The sort keys, as indexes in `paths`, each with a flag that is `true` for a descending order.
    order: Vec<(usize, bool)>,
    /// The fields of the scan that the projection, the partition key, the sort keys and the functions read. `None`
    /// means all fields.
    read: Option<BTreeSet<Arc<str>>>,
    /// The fields of the scan from which the returned rows are built. `None` means all fields.
    written: Option<BTreeSet<Arc<str>>>,
    /// Whether the projection applies to the rows that the stage returns.
    projects_output: bool,
}

impl ColumnWindows {
    /// Creates windows over columns. `before` is the projection that precedes the stage. The steps after the stage read
    /// the fields in `written`, or whole rows if `written` is `None`. Returns `None` if columns cannot replace the
    /// projection, or cannot provide the inputs or the order of the stage.
    pub fn new(
        before: Option<&Arc<Projection>>,
        stage: &Arc<ast::Windows>,
        written: Option<ReadFields>,
    ) -> Option<ColumnWindows> {
        let functions = || stage.outputs.iter().map(|output| &output.function);
        if functions().filter_map(WindowFunction::input).any(Expr::draws) {
            return None;
        }
        let sort_keys = stage.sort.iter().flatten();
        // Rows with equal sort keys are in the order of their ids. The projection may replace or drop the ids.
        let keeps_ids = before.is_none_or(|before| before.preserves(ID));
        if sort_keys.clone().next().is_some() && !keeps_ids {
            return None;
        }
        let inputs = functions().filter_map(|function| function.input()?.plain_path());
        let mut read_of_all: Vec<Arc<str>> =
            inputs.clone().filter_map(|path| path.segments().first().cloned()).collect();
        read_of_all.extend(sort_keys.clone().filter_map(|key| key.path.text().split('.').next().map(Arc::from)));
        if let Some(partition) = &stage.partition {
            partition.visit_paths(&mut |path| read_of_all.extend(path.segments().first().cloned()));
        }
        let step = match before {
            None => IntermediateStep::Nothing,
            Some(projection) => IntermediateStep::projection(projection, &read_of_all)?,
        };
        let partition = match &stage.partition {
            Some(expr) => Some(step.input(expr)?),
            None => None,
        };
        let mut paths = Vec::new();
        let order = sort_keys.map(|key| {
            let path = FieldPath::parse(key.path.text()).ok()?;
            Some((index_of(&mut paths, &path, &step, keeps_ids)?, key.descending))
        });
        let order = order.collect::<Option<_>>()?;
        for path in inputs {
            index_of(&mut paths, path, &step, keeps_ids)?;
        }
        let mut fields = ReadFields::default();
        stage.visit_paths(&mut |path| fields.add(path));
        let read = with(fields, before);
        let names = written.as_ref().map(|written| &written.names);
        let projects_output = before.is_some_and(|before| projects(before, names));
        let written = written.and_then(|mut fields| {
            stage.write.visit_paths(&mut |path| fields.add(path));
            // A field that is replaced keeps its place in the row.
            fields.names.retain(|name| fields.keeps_order || !stage.writes_whole(name));
            with(fields, before.filter(|_| projects_output))
        });
        let (stage, before) = (WindowStage::new(stage.clone()), before.cloned());
        Some(ColumnWindows { stage, before, partition, paths, order, read, written, projects_output })
    }

    /// Visits the paths for which columns are needed.
    pub fn visit_paths<'w>(&'w self, visit: &mut dyn FnMut(&'w Arc<str>)) {
        let inputs = self.paths.iter().filter_map(|(_, input)| input.as_ref());
        inputs.chain(&self.partition).for_each(|input| input.visit_paths(visit));
    }

    /// Returns the rows with their computed fields, and the number of selected rows. Returns `None` if the windows must
    /// be computed from rows instead. This is necessary if a column is missing, stores lists or cannot provide the
    /// values or their order, if a partition key is an array, if an error may come from an expression, or if the memory
    /// does not suffice.
    pub fn run<'a>(
        &'a self,
        selection: &RowSelection<'a>,
        run: RunContext<'a>,
        index: usize,
    ) -> Result<Option<(Rows<'a>, u64)>> {
        let before = run.query.bytes_left.get();
        let gathered = match self.gather(selection, run) {
            // Columns are read one after the other, so the first error may differ from the error of the first failing
            // row. The evaluation by rows finds the correct error.
            Err(_) if self.computes() => None,
            // The evaluation by rows may need less memory, because it keeps all rows but only the inputs of one
            // partition.
            Err(error) if error.code == PipelineErrorCode::Number(EXCEEDED_MEMORY) => None,
            gathered => gathered.map_err(|error| error.at_stage(index))?,
        };
        let Some((table, partitions)) = gathered else {
            run.query.bytes_left.set(before);
            return Ok(None);
        };
        let count = table.rows() as u64;
        let table = std::rc::Rc::new(table);
        let partitions = partitions.into_iter().map(move |positions| WindowTable::partition(&table, positions));
        Ok(Some((self.stage.rows(Box::new(partitions), run), count)))
    }

    /// Returns whether `gather` evaluates an expression for every row. The evaluation may fail.
    fn computes(&self) -> bool {
        let inputs = self.paths.iter().filter_map(|(_, input)| input.as_ref());
        inputs.chain(&self.partition).any(Input::is_computed)
    }

    /// Reads the columns, and assigns the selected rows to partitions. Returns the table, and the positions of the rows
    /// of each partition in the order of the partitions' keys. Returns `None` if a column is missing, stores lists or
    /// cannot provide the values or their order, or if a partition key is an array.
    fn gather<'a>(
        &'a self,
        selection: &RowSelection<'a>,
        run: RunContext<'a>,
    ) -> Result<Option<(WindowTable<'a>, Vec<Vec<u32>>)>> {
        let (columns, query) = (selection.columns, run.query);
        let bind = |input: &'a Option<Input>| match input {
            Some(input) => ColumnSource::bind(input, columns, None).map(Some),
            None => Some(None),
        };
        let sources = self.paths.iter().map(|(_, input)| bind(input)).collect::<Option<Vec<_>>>();
        let (Some(sources), Some(partition)) = (sources, bind(&self.partition)) else { return Ok(None) };
        if sources.iter().flatten().any(ColumnSource::builds_arrays) {
            return Ok(None);
        }
        let mut table = WindowTable::new(self, columns, run);
        let mut partitions = partition.as_ref().map(PartitionKeys::new);
        let (mut rows, unwound) = (Vec::new(), UnwoundSegment::default());
        for segment in 0..selection.segments() {
            selection.mask(segment)?.write_rows(&mut rows);
            query.tick_many(rows.len())?;
            let chunk = Chunk { segment, rows: &rows, unwound: &unwound, run };
            table.extend(chunk, &sources)?;
            if let Some(partitions) = &mut partitions
                && !partitions.extend(chunk)?
            {
                return Ok(None);
            }
        }
        if !table.can_sort() {
            return Ok(None);
        }
        let count = table.rows();
        let partitions = match partitions {
            Some(partitions) => partitions.positions(run)?,
            None if count == 0 => Vec::new(),
            None => {
                query.charge(count * size_of::<u32>())?;
                vec![(0..count as u32).collect()]
            }
        };
        Ok(Some((table, partitions)))
    }
}

/// The keys of the partitions, and for each row the index of its partition.
struct PartitionKeys<'a, 's> {
    source: &'s ColumnSource<'a>,
    keys: Keys<'a>,
    /// The key and the number of rows of each partition.
    partitions: Vec<(Value, usize)>,
    numbers: Vec<u32>,
}

impl<'a, 's> PartitionKeys<'a, 's> {
    fn new(source: &'s ColumnSource<'a>) -> PartitionKeys<'a, 's> {
        let keys = Keys::new(source.texts(), false);
        PartitionKeys { source, keys, partitions: Vec::new(), numbers: Vec::new() }
    }

    /// Assigns rows to their partitions. Returns `false` if a key is an array, which is not allowed.
    fn extend(&mut self, chunk: Chunk) -> Result<bool> {
        let query = chunk.run.query;
        let (mut buffer, mut numbers) = (Vec::new(), Vec::new());
        let values = self.source.values(chunk, &mut buffer)?;
        query.charge(size_of_val(chunk.rows))?;
        self.keys.number(values.input, chunk.rows, query, &mut numbers)?;
        for (nth, number) in numbers.iter().enumerate() {
            if *number as usize == self.partitions.len() {
                let key = values.value(nth, chunk.rows[nth]).unwrap_or_default();
                if key.as_array().is_some() {
                    return Ok(false);
                }
                memory::hold(&key, query)?;
                self.partitions.push((key, 0));
            }
            self.partitions[*number as usize].1 += 1;
        }
        query.give_back(values.bytes());
        self.numbers.append(&mut numbers);
        Ok(true)
    }

    /// Returns the positions of the rows of each partition, in the order of the partitions' keys.
    fn positions(self, run: RunContext) -> Result<Vec<Vec<u32>>> {
        run.query.charge(self.numbers.len() * size_of::<u32>() + self.partitions.len() * size_of::<Vec<u32>>())?;
        let mut positions: Vec<Vec<u32>> = self.partitions.iter().map(|(_, rows)| Vec::with_capacity(*rows)).collect();
        for (position, number) in self.numbers.iter().enumerate() {
            positions[*number as usize].push(position as u32);
        }
        let keyed = self.partitions.into_iter().zip(positions).map(|((key, _), positions)| (key, positions)).collect();
        let weigh = |(key, _): &(Value, Vec<u32>)| measure(key, run.query);
        let keyed = sorted(keyed, run.query, weigh, |(a, _), (b, _)| a.cmp(b))?;
        Ok(keyed.into_iter().map(|(_, positions)| positions).collect())
    }
}

/// Returns the index of a path in `paths`. Adds the path if `paths` does not contain it. Returns `None` if columns
/// cannot provide the path. If `keeps_ids` is set, the path `_id` needs no column, because the step keeps the ids of
/// the table.
fn index_of(
    paths: &mut Vec<(Arc<str>, Option<Input>)>,
    path: &FieldPath,
    step: &IntermediateStep,
    keeps_ids: bool,
) -> Option<usize> {
    let text = path.segments().join(".");
    if let Some(index) = paths.iter().position(|(known, _)| **known == *text) {
        return Some(index);
    }
    let input = if keeps_ids && text == ID { None } else { Some(step.path(path)?) };
    paths.push((text.into(), input));
    Some(paths.len() - 1)
}

/// Returns whether a projection must be applied to rows with the fields in `written`, where `None` means all fields. A
/// `$set` that changes none of these fields is unnecessary.
fn projects(projection: &Projection, written: Option<&BTreeSet<Arc<str>>>) -> bool {
    let changes = |name: &Arc<str>| !projection.preserves(name);
    projection.kind != ProjectionKind::Set || written.is_none_or(|written| written.iter().any(changes))
}

/// Returns the names of the fields in `fields` and of the fields that `projection` reads. Returns `None` if the whole
/// row is read.
fn with(mut fields: ReadFields, projection: Option<&Arc<Projection>>) -> Option<BTreeSet<Arc<str>>> {
    if let Some(projection) = projection {
        projection.visit_paths(&mut |path| fields.add(path));
    }
    fields.into_names()
}
