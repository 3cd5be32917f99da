//! Standard deviations and covariances over a moving window. The moments of two parts are merged by the formula of
//! Chan, Golub and LeVeque.

use std::ops::Range;

use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use super::stacks::{Merge, TwoStacks};
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::DeviationKind;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// The moments of pairs of numbers: the number of pairs, the mean `x` of the first numbers, the mean `y` of the second
/// numbers, and a sum of products. The product of a pair is the difference between the first number and `x`, multiplied
/// by the difference between the second number and `y`. Pairs with a number that is not finite are counted separately.
#[derive(Clone, Default)]
struct Moments {
    count: u64,
    x: f64,
    y: f64,
    products: f64,
    not_finite: u64,
    /// The sum of all numbers in the pairs that `not_finite` counts. With at least one such pair, the sum is infinite
    /// or NaN.
    sum: f64,
}

impl Moments {
    fn of(x: f64, y: f64) -> Moments {
        match x.is_finite() && y.is_finite() {
            true => Moments { count: 1, x, y, ..Moments::default() },
            false => Moments { not_finite: 1, sum: x + y, ..Moments::default() },
        }
    }

    /// Returns the number by which the sum of products is divided.
    fn divisor(&self, sampled: DeviationKind) -> u64 {
        match sampled {
            DeviationKind::Population => self.count,
            DeviationKind::Sample => self.count.saturating_sub(1),
        }
    }
}

impl Merge for Moments {
    fn merge(&mut self, later: &Moments, _query: &Context) -> Result<()> {
        self.not_finite += later.not_finite;
        self.sum += later.sum;
        if later.count == 0 {
            return Ok(());
        }
        if self.count == 0 {
            (self.count, self.x, self.y, self.products) = (later.count, later.x, later.y, later.products);
            return Ok(());
        }
        let count = self.count + later.count;
        let (x, y) = (later.x - self.x, later.y - self.y);
        let share = later.count as f64 / count as f64;
        self.products += later.products + x * y * self.count as f64 * share;
        self.x += x * share;
        self.y += y * share;
        self.count = count;
        Ok(())
    }
}

/// A statistic that is computed from the moments of a window.
#[derive(Clone, Copy)]
pub enum Statistic {
    /// The result of `$stdDevPop` and `$stdDevSamp`, for numbers.
    Deviation,
    /// The result of `$covariancePop` and `$covarianceSamp`, for pairs of numbers.
    Covariance,
}

/// The window functions that compute a [`Statistic`].
pub struct MomentsWindow<'a> {
    column: InputColumn<'a>,
    stacks: TwoStacks<Moments>,
    statistic: Statistic,
    sampled: DeviationKind,
    keeps: bool,
}

impl<'a> MomentsWindow<'a> {
    pub fn new(
        statistic: Statistic,
        input: &'a Expr,
        sampled: DeviationKind,
        keeps: bool,
        partition: &WindowPartition,
    ) -> Result<MomentsWindow<'a>> {
        let (column, stacks) = (InputColumn::new(input, partition)?, TwoStacks::new(keeps, partition)?);
        Ok(MomentsWindow { column, stacks, statistic, sampled, keeps })
    }

    fn deviation(&self, moments: &Moments) -> Value {
        match moments.divisor(self.sampled) {
            // As in MongoDB, a number that is not finite makes the deviation null until the number leaves the window.
            // If no row ever leaves the window, the deviation is NaN.
            _ if moments.not_finite > 0 && self.keeps => Value::Null,
            _ if moments.not_finite > 0 => Value::Double(f64::NAN),
            0 => Value::Null,
            divisor => Value::Double((moments.products / divisor as f64).sqrt()),
        }
    }

    fn covariance(&self, moments: &Moments) -> Value {
        match moments.divisor(self.sampled) {
            0 => Value::Null,
            // As in MongoDB, the population covariance of one finite pair is 0, even if the window has other pairs that
            // are not finite.
            _ if moments.count == 1 => Value::Double(0.0),
            _ if moments.not_finite > 0 => Value::Double(moments.sum),
            divisor => Value::Double(moments.products / divisor as f64),
        }
    }
}

impl Slide for MomentsWindow<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let value = self.column.get(row, partition)?;
        let pair = match (self.statistic, value.and_then(Value::as_array)) {
            (Statistic::Deviation, _) => value.and_then(Value::as_f64).map(|number| (number, number)),
            (Statistic::Covariance, Some([x, y])) => x.as_f64().zip(y.as_f64()),
            (Statistic::Covariance, _) => None,
        };
        self.stacks.push(pair.map_or_else(Moments::default, |(x, y)| Moments::of(x, y)), partition.run.query)
    }

    fn remove(&mut self, _row: usize, partition: &WindowPartition) -> Result<()> {
        self.stacks.pop(partition.run.query)
    }

    fn value(&mut self, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let moments = self.stacks.total(partition.run.query)?;
        Ok(Some(match self.statistic {
            Statistic::Deviation => self.deviation(&moments),
            Statistic::Covariance => self.covariance(&moments),
        }))
    }
}
