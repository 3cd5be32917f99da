//! Accumulators over columns. Loops compute sums, averages and extremes. Other accumulators receive the values one by
//! one.

use super::keys::InputValues;
use crate::model::value::Value;
use crate::pipeline::column::Dictionary;
use crate::pipeline::column::{Cells, Kind};
use crate::pipeline::expression::accumulator::{Accumulator, State};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::run::rows::Run;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::sum::{Number, Sum};

/// The intermediate results of one accumulator, by group.
pub enum Gathered {
    Sums(Vec<Sum>),
    Averages(Vec<(Sum, u64)>),
    /// The least or the greatest value of each group so far. The flag is `true` for the least.
    Extremes(Vec<Option<Value>>, bool),
    States(Vec<State>),
}

impl Gathered {
    pub fn new(accumulator: &Accumulator) -> Gathered {
        match accumulator.name() {
            "$sum" | "$count" => Gathered::Sums(Vec::new()),
            "$avg" => Gathered::Averages(Vec::new()),
            "$min" => Gathered::Extremes(Vec::new(), true),
            "$max" => Gathered::Extremes(Vec::new(), false),
            _ => Gathered::States(Vec::new()),
        }
    }

    /// Adds an initial result for each group in `ids` that has no result yet.
    pub fn widen(&mut self, ids: &[Value], accumulator: &Accumulator, run: Run) -> Result<()> {
        match self {
            Gathered::Sums(sums) => sums.resize_with(ids.len(), Sum::default),
            Gathered::Averages(averages) => averages.resize_with(ids.len(), Default::default),
            Gathered::Extremes(best, _) => best.resize(ids.len(), None),
            Gathered::States(states) => {
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
        values: InputValues,
        (rows, groups): (&[u32], &[u32]),
        texts: &Dictionary,
        query: &Context,
    ) -> Result<()> {
        match self {
            Gathered::Sums(sums) => {
                numbers(values, rows, |nth, number| sums[groups[nth] as usize].take(number));
            }
            Gathered::Averages(averages) => numbers(values, rows, |nth, number| {
                let (sum, count) = &mut averages[groups[nth] as usize];
                sum.take(number);
                *count += 1;
            }),
            Gathered::Extremes(best, least) => extremes(values, rows, groups, texts, (best, *least)),
            Gathered::States(states) => {
                let env = Env::new(query, &Value::Null);
                for (nth, (row, group)) in rows.iter().zip(groups).enumerate() {
                    let state = &mut states[*group as usize];
                    if !accumulator.is_final(state) {
                        accumulator.add_value(state, values.value(nth, *row, texts), &env)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one row to an accumulator that reads rows.
    pub fn add_row(&mut self, accumulator: &Accumulator, group: u32, env: &Env) -> Result<()> {
        match self {
            Gathered::States(states) => accumulator.add(&mut states[group as usize], env),
            Gathered::Sums(_) | Gathered::Averages(_) | Gathered::Extremes(..) => Ok(()),
        }
    }

    /// Returns the results in the order of the groups.
    pub fn finish(self, accumulator: &Accumulator, query: &Context) -> Result<Vec<Value>> {
        match self {
            Gathered::Sums(sums) => Ok(sums.iter().map(Sum::total).collect()),
            Gathered::Averages(averages) => Ok(averages.iter().map(|(sum, count)| sum.average(*count)).collect()),
            Gathered::Extremes(best, _) => Ok(best.into_iter().map(Option::unwrap_or_default).collect()),
            Gathered::States(states) => states.into_iter().map(|state| accumulator.finish(state, query)).collect(),
        }
    }
}

/// Keeps the least or the greatest value of each group. Ignores null and missing values.
fn extremes(
    values: InputValues,
    rows: &[u32],
    groups: &[u32],
    texts: &Dictionary,
    (best, least): (&mut [Option<Value>], bool),
) {
    for (nth, (row, group)) in rows.iter().zip(groups).enumerate() {
        let best = &mut best[*group as usize];
        if let (InputValues::Segment(segment), Some(Value::Int(known))) = (values, &mut *best)
            && let Cells::Ints(cells) = segment.cells()
        {
            let number = cells[*row as usize];
            let is_better = if least { number < *known } else { number > *known };
            if is_better && segment.kind(*row as usize) == Kind::Value {
                *known = number;
            }
            continue;
        }
        let Some(value) = values.value(nth, *row, texts).filter(|value| !value.is_null()) else { continue };
        let is_better = best.as_ref().is_none_or(|best| if least { value < *best } else { value > *best });
        if is_better {
            *best = Some(value);
        }
    }
}

/// Calls `show` with each number among the values and with the position of its row in `rows`.
fn numbers(values: InputValues, rows: &[u32], mut show: impl FnMut(usize, Number)) {
    let number = |value: Option<&Value>| value.and_then(Number::of);
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
                    rows.for_each(|(nth, row)| show(nth, Number::Int(cells[row])));
                }
                Cells::Ints(cells) => rows
                    .filter(|(_, row)| segment.kind(*row) == Kind::Value)
                    .for_each(|(nth, row)| show(nth, Number::Int(cells[row]))),
                Cells::Numbers(cells) => rows.for_each(|(nth, row)| match segment.kind(row) {
                    Kind::Value => show(nth, Number::Double(cells[row])),
                    Kind::Int => show(nth, Number::Int(cells[row] as i64)),
                    Kind::Null | Kind::Missing | Kind::Opaque => {}
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
