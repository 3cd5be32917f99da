//! Accumulators over columns. Specialized loops compute sums, averages and extremes. Other accumulators receive the
//! values one by one.

use super::keys::InputValues;
use super::source::ChunkValues;
use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells};
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorState};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;
use crate::pipeline::value::sum::{NumericValue, Sum};

/// The intermediate results of one accumulator, by group.
pub enum PartialResults {
    Sums(Vec<Sum>),
    Averages(Vec<(Sum, u64)>),
    /// The least or the greatest value of each group so far, with the number of bytes that the query is charged for the
    /// value. The flag is `true` if the values are the least values.
    Extremes(Vec<(Option<Value>, usize)>, bool),
    States(Vec<AccumulatorState>),
}

impl PartialResults {
    pub fn new(accumulator: &Accumulator) -> PartialResults {
        match accumulator.name() {
            "$sum" | "$count" => PartialResults::Sums(Vec::new()),
            "$avg" => PartialResults::Averages(Vec::new()),
            "$min" => PartialResults::Extremes(Vec::new(), true),
            "$max" => PartialResults::Extremes(Vec::new(), false),
            _ => PartialResults::States(Vec::new()),
        }
    }

    /// Adds an initial result for each group in `ids` that has no result yet.
    pub fn widen(&mut self, ids: &[Value], accumulator: &Accumulator, run: RunContext) -> Result<()> {
        match self {
            PartialResults::Sums(sums) => sums.resize_with(ids.len(), Sum::default),
            PartialResults::Averages(averages) => averages.resize_with(ids.len(), Default::default),
            PartialResults::Extremes(best, _) => best.resize_with(ids.len(), Default::default),
            PartialResults::States(states) => {
                for id in ids.iter().skip(states.len()) {
                    states.push(accumulator.start(id, &run.env(&Value::Null))?);
                }
            }
        }
        Ok(())
    }

    /// Adds a value for each row. `groups` contains the group number of each row.
    pub fn add(
        &mut self,
        accumulator: &Accumulator,
        values: &ChunkValues,
        (rows, groups): (&[u32], &[u32]),
        query: &Context,
    ) -> Result<()> {
        match self {
            PartialResults::Sums(sums) => {
                numbers(values.input, rows, |nth, number| sums[groups[nth] as usize].take(number));
            }
            PartialResults::Averages(averages) => numbers(values.input, rows, |nth, number| {
                let (sum, count) = &mut averages[groups[nth] as usize];
                sum.take(number);
                *count += 1;
            }),
            PartialResults::Extremes(best, least) => extremes(values, rows, groups, (best, *least), query)?,
            PartialResults::States(states) => {
                let env = Env::new(query, &Value::Null);
                for (nth, (row, group)) in rows.iter().zip(groups).enumerate() {
                    let state = &mut states[*group as usize];
                    if !accumulator.is_final(state) {
                        accumulator.add_value(state, values.input(nth, *row), &env)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one row to an accumulator that reads rows. `built` is an upper limit for the bytes of the row that were
    /// built for the query. All other bytes belong to the source.
    pub fn add_row(&mut self, accumulator: &Accumulator, group: u32, built: usize, env: &Env) -> Result<()> {
        match self {
            PartialResults::States(states) => accumulator.add(&mut states[group as usize], built, env),
            PartialResults::Sums(_) | PartialResults::Averages(_) | PartialResults::Extremes(..) => Ok(()),
        }
    }

    /// Returns the results in the order of the groups, each with the bytes that the query is charged for the result.
    pub fn finish(self, accumulator: &Accumulator) -> Vec<(Value, usize)> {
        match self {
            PartialResults::Sums(sums) => sums.iter().map(|sum| (sum.total(), 0)).collect(),
            PartialResults::Averages(averages) => {
                averages.iter().map(|(sum, count)| (sum.average(*count), 0)).collect()
            }
            PartialResults::Extremes(best, _) => {
                best.into_iter().map(|(best, bytes)| (best.unwrap_or_default(), bytes)).collect()
            }
            PartialResults::States(states) => {
                let finish = |state: AccumulatorState| (state.kept_bytes(), accumulator.finish(state));
                states.into_iter().map(finish).map(|(bytes, value)| (value, bytes)).collect()
            }
        }
    }
}

/// Keeps the least or the greatest value of each group. Ignores null and missing values.
fn extremes(
    values: &ChunkValues,
    rows: &[u32],
    groups: &[u32],
    (best, least): (&mut [(Option<Value>, usize)], bool),
    query: &Context,
) -> Result<()> {
    for (nth, (row, group)) in rows.iter().zip(groups).enumerate() {
        let (best, charged) = &mut best[*group as usize];
        if let (InputValues::Segment(segment), Some(Value::Int(known))) = (values.input, &mut *best)
            && let Cells::Ints(cells) = segment.cells()
        {
            let number = cells[*row as usize];
            let is_better = if least { number < *known } else { number > *known };
            if is_better && segment.kind(*row as usize) == CellKind::Value {
                *known = number;
            }
            continue;
        }
        let input = values.input(nth, *row);
        let Some(value) = input.value.as_ref().filter(|value| !value.is_null()) else { continue };
        memory::measure(value, query)?;
        let is_better = best.as_ref().is_none_or(|best| if least { value < best } else { value > best });
        if is_better {
            let bytes = input.built_bytes(query)?;
            query.charge(bytes)?;
            query.give_back(std::mem::replace(charged, bytes));
            *best = input.value;
        }
    }
    Ok(())
}

/// Calls `show` with each number among the values and with the position of its row in `rows`.
fn numbers(values: InputValues, rows: &[u32], mut show: impl FnMut(usize, NumericValue)) {
    let number = |value: Option<&Value>| value.and_then(NumericValue::of);
    match values {
        InputValues::Codes(_) => {}
        InputValues::Constant(value) => {
            if let Some(number) = number(value) {
                (0..rows.len()).for_each(|nth| show(nth, number));
            }
        }
        InputValues::Values(values) => {
            let found = values.iter().enumerate().filter_map(|(nth, value)| Some((nth, number(value.as_ref())?)));
            found.for_each(|(nth, number)| show(nth, number));
        }
        InputValues::Segment(segment) => {
            let rows = rows.iter().map(|row| *row as usize).enumerate();
            match segment.cells() {
                Cells::Ints(cells) if segment.is_plain() => {
                    rows.for_each(|(nth, row)| show(nth, NumericValue::Int(cells[row])));
                }
                Cells::Ints(cells) => rows
                    .filter(|(_, row)| segment.kind(*row) == CellKind::Value)
                    .for_each(|(nth, row)| show(nth, NumericValue::Int(cells[row]))),
                Cells::Numbers(cells) => rows.for_each(|(nth, row)| match segment.kind(row) {
                    CellKind::Value => show(nth, NumericValue::Double(cells[row])),
                    CellKind::Int => show(nth, NumericValue::Int(cells[row] as i64)),
                    CellKind::Null | CellKind::Missing | CellKind::Opaque => {}
                }),
                Cells::Mixed(cells) => {
                    let found = rows.filter_map(|(nth, row)| Some((nth, number(cells.get(row))?)));
                    found.for_each(|(nth, number)| show(nth, number));
                }
                Cells::Empty | Cells::Dates(_) | Cells::Bools(_) | Cells::Texts(_) | Cells::Lists(_) => {}
            }
        }
    }
}
