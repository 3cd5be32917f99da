//! The least and the greatest value of a moving window. A monotone deque keeps only the rows that can still become the
//! extreme, so each row enters and leaves the deque at most once.

use std::collections::VecDeque;
use std::ops::Range;

use super::computation::Computation;
use super::partition::{InputColumn, WindowPartition};
use super::slide::{Slide, SlidingWindow};
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::Extremum;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::window::Scale;
use crate::pipeline::value::error::{Result, err};
use crate::pipeline::value::memory::measure;

/// The window functions `$min` and `$max`.
pub struct Extreme<'a> {
    column: InputColumn<'a>,
    direction: Extremum,
    /// The rows that are or may become the extreme, with their values. The first entry is the current extreme.
    rows: VecDeque<(usize, Value)>,
}

impl<'a> Extreme<'a> {
    pub fn new(input: &'a Expr, direction: Extremum, partition: &WindowPartition) -> Result<Extreme<'a>> {
        partition.run.query.charge(partition.len() * size_of::<(usize, Value)>())?;
        Ok(Extreme { column: InputColumn::new(input, partition)?, direction, rows: VecDeque::new() })
    }
}

impl Slide for Extreme<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let Some(value) = self.column.get(row, partition)?.filter(|value| !value.is_null()).cloned() else {
            return Ok(());
        };
        measure(&value, partition.run.query)?;
        let is_worse = |kept: &Value| match self.direction {
            Extremum::Least => *kept > value,
            Extremum::Greatest => *kept < value,
        };
        while self.rows.back().is_some_and(|(_, kept)| is_worse(kept)) {
            partition.run.query.tick()?;
            self.rows.pop_back();
        }
        self.rows.push_back((row, value));
        Ok(())
    }

    fn remove(&mut self, row: usize, _partition: &WindowPartition) -> Result<()> {
        if self.rows.front().is_some_and(|(first, _)| *first == row) {
            self.rows.pop_front();
        }
        Ok(())
    }

    fn value(&mut self, _frame: Range<usize>, _partition: &WindowPartition) -> Result<Option<Value>> {
        Ok(Some(self.rows.front().map(|(_, value)| value.clone()).unwrap_or_default()))
    }
}

/// The window function `$minMaxScaler`.
pub struct ScalerWindow<'a> {
    scale: &'a Scale,
    column: InputColumn<'a>,
    least: SlidingWindow<Extreme<'a>>,
    greatest: SlidingWindow<Extreme<'a>>,
}

impl<'a> ScalerWindow<'a> {
    pub fn new(scale: &'a Scale, partition: &WindowPartition) -> Result<ScalerWindow<'a>> {
        let extreme = |direction| Ok(SlidingWindow::new(Extreme::new(&scale.input, direction, partition)?));
        Ok(ScalerWindow {
            scale,
            column: InputColumn::new(&scale.input, partition)?,
            least: extreme(Extremum::Least)?,
            greatest: extreme(Extremum::Greatest)?,
        })
    }
}

impl<'a> Computation<'a> for ScalerWindow<'a> {
    fn value(&mut self, row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        for row in frame.clone().take(1).chain(std::iter::once(row)) {
            check_number(self.column.get(row, partition)?)?;
        }
        let value = self.column.get(row, partition)?.cloned().unwrap_or_default();
        let least = self.least.value(row, frame.clone(), partition)?.unwrap_or_default();
        let greatest = self.greatest.value(row, frame, partition)?.unwrap_or_default();
        // The extremes ignore null. Values of all other types sort after numbers, so the greatest value shows whether
        // the window contains a value of these types.
        check_number(Some(&greatest))?;
        let Scale { min, max, .. } = self.scale;
        let width = number::subtract(&greatest, &least);
        if width.as_f64() == Some(0.0) {
            return Ok(Some(min.clone()));
        }
        let share = number::divide(&number::subtract(&value, &least), &width);
        Ok(Some(number::add(&number::multiply(&share, &number::subtract(max, min)), min)))
    }
}

fn check_number(value: Option<&Value>) -> Result<()> {
    match value {
        Some(value) if value.is_number() => Ok(()),
        other => {
            let found = other.map_or("missing", Value::type_name);
            err!(10_487_001, "'input' argument to $minMaxScaler must evaluate to a numeric type, got: {found}")
        }
    }
}
