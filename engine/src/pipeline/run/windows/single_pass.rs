//! Functions that pass once over a partition: ranks, moving averages and filled values.

use std::ops::Range;

use super::computation::Computation;
use super::partition::{InputColumn, WindowPartition};
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::window::Ranking;
use crate::pipeline::value::error::{Error, Result, err};

/// The window functions `$rank`, `$denseRank` and `$documentNumber`.
pub struct Rank {
    ranking: Ranking,
    /// The rank of the previous row.
    last: i64,
}

impl Rank {
    pub fn new(ranking: Ranking) -> Rank {
        Rank { ranking, last: 0 }
    }
}

impl Computation<'_> for Rank {
    fn value(&mut self, row: usize, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let number = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(1);
        let is_equal = match (self.ranking, row.checked_sub(1)) {
            (Ranking::Rank | Ranking::Dense, Some(previous)) => partition.rows().equals_next(previous)?,
            (Ranking::Number, _) | (_, None) => false,
        };
        self.last = match self.ranking {
            _ if is_equal => self.last,
            Ranking::Dense => self.last + 1,
            Ranking::Rank | Ranking::Number => number,
        };
        Ok(Some(Value::Int(self.last)))
    }
}

/// The window function `$expMovingAvg`.
pub struct MovingAverage<'a> {
    column: InputColumn<'a>,
    alpha: f64,
    average: Option<f64>,
}

impl<'a> MovingAverage<'a> {
    pub fn new(input: &'a Expr, alpha: f64, partition: &WindowPartition) -> Result<MovingAverage<'a>> {
        Ok(MovingAverage { column: InputColumn::read_once(input, partition)?, alpha, average: None })
    }
}

impl<'a> Computation<'a> for MovingAverage<'a> {
    fn value(&mut self, row: usize, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        if let Some(number) = self.column.get(row, partition)?.and_then(Value::as_f64) {
            self.average = Some(match self.average {
                Some(average) => number * self.alpha + average * (1.0 - self.alpha),
                None => number,
            });
        }
        Ok(Some(self.average.into()))
    }
}

/// The window function `$locf`.
pub struct LastKnown<'a> {
    column: InputColumn<'a>,
    last: Value,
    /// The number of bytes that the query is charged for `last`.
    last_bytes: usize,
}

impl<'a> LastKnown<'a> {
    pub fn new(input: &'a Expr, partition: &WindowPartition) -> Result<LastKnown<'a>> {
        Ok(LastKnown { column: InputColumn::read_once(input, partition)?, last: Value::Null, last_bytes: 0 })
    }
}

impl<'a> Computation<'a> for LastKnown<'a> {
    fn value(&mut self, row: usize, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let (value, bytes) = self.column.get_kept(row, partition)?;
        if let Some(value) = value.filter(|value| !value.is_null()) {
            partition.run.query.charge(bytes)?;
            partition.run.query.give_back(std::mem::replace(&mut self.last_bytes, bytes));
            self.last = value;
        }
        Ok(Some(self.last.clone()))
    }
}

/// The window function `$linearFill`.
pub struct LinearFill<'a> {
    column: InputColumn<'a>,
    /// The values of all rows. `None` until a value is requested for the first time.
    filled: Option<Vec<Value>>,
}

impl<'a> LinearFill<'a> {
    pub fn new(input: &'a Expr, partition: &WindowPartition) -> Result<LinearFill<'a>> {
        Ok(LinearFill { column: InputColumn::read_once(input, partition)?, filled: None })
    }

    fn fill(&mut self, partition: &WindowPartition) -> Result<Vec<Value>> {
        partition.run.query.charge(partition.len() * 2 * size_of::<Value>())?;
        let mut filled = Vec::with_capacity(partition.len());
        let mut places: Vec<Value> = Vec::with_capacity(partition.len());
        let mut last: Option<usize> = None;
        for row in 0..partition.len() {
            partition.run.query.tick()?;
            let value = self.column.get(row, partition)?.cloned().unwrap_or_default();
            if !value.is_number() && !value.is_null() {
                return err!(14, "Value to be filled must be numeric or nullish, but found {}", value.type_name());
            }
            let place = place(row, partition)?;
            check_next(places.last(), &place)?;
            places.push(place);
            if !value.is_null() {
                if let Some(last) = last {
                    between(&mut filled, &places, last, row, &value);
                }
                last = Some(row);
            }
            filled.push(value);
        }
        Ok(filled)
    }
}

impl<'a> Computation<'a> for LinearFill<'a> {
    fn value(&mut self, row: usize, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let filled = match &self.filled {
            Some(filled) => filled,
            None => {
                let filled = self.fill(partition)?;
                self.filled.insert(filled)
            }
        };
        Ok(filled.get(row).cloned())
    }
}

fn place(row: usize, partition: &WindowPartition) -> Result<Value> {
    match partition.rows().sort_value(row)? {
        Some(value @ Value::Date(_)) => Ok(value),
        Some(value) if value.is_number() => Ok(value),
        other => {
            let found = other.as_ref().map_or("missing", Value::type_name);
            err!(14, "Value of the sortBy field must be numeric or a date, but found {found}")
        }
    }
}

fn check_next(last: Option<&Value>, place: &Value) -> Result<()> {
    match last {
        Some(last) if last == place => {
            Err(Error::new(6_050_106, "There can be no repeated values in the sort field in the same partition"))
        }
        Some(last) if last.is_number() != place.is_number() => {
            let (last, place) = (last.type_name(), place.type_name());
            err!(14, "Conflicting sort value types, previous and current types are {last}, {place}")
        }
        _ => Ok(()),
    }
}

/// Interpolates the values of the rows between `from` and `to`. `value` is the value of the row `to`.
fn between(filled: &mut [Value], places: &[Value], from: usize, to: usize, value: &Value) {
    let distance = |a: &Value, b: &Value| match (a, b) {
        (Value::Date(a), Value::Date(b)) => number::subtract(&Value::Int(*a), &Value::Int(*b)),
        _ => number::subtract(a, b),
    };
    let start = filled[from].clone();
    let slope = number::divide(&number::subtract(value, &start), &distance(&places[to], &places[from]));
    for row in from + 1..to {
        filled[row] = number::add(&start, &number::multiply(&distance(&places[row], &places[from]), &slope));
    }
}
