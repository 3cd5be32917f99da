//! Spread and ranks of numbers: standard deviation, percentiles, median.

use crate::model::value::Value;
use crate::pipeline::error::Result;
use crate::pipeline::expr::Env;

/// Running mean and squared distance from it (Welford's method).
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    pub fn add(&mut self, value: Option<&Value>) {
        let Some(number) = value.and_then(Value::as_f64) else { return };
        self.count += 1;
        let distance = number - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (number - self.mean);
    }

    pub fn population(&self) -> Value {
        self.over(self.count)
    }

    pub fn sample(&self) -> Value {
        self.over(self.count.saturating_sub(1))
    }

    fn over(&self, count: u64) -> Value {
        if count == 0 { Value::Null } else { Value::Double((self.squares / count as f64).sqrt()) }
    }
}

pub(super) fn add_number(numbers: &mut Vec<f64>, value: Option<&Value>, env: &Env) -> Result<()> {
    if let Some(number) = value.and_then(Value::as_f64).filter(|number| !number.is_nan()) {
        env.query.charge(size_of::<f64>())?;
        numbers.push(number);
    }
    Ok(())
}

/// The smallest number that the share `rank` of all does not exceed, for each rank.
pub(in crate::pipeline) fn percentiles(numbers: &mut [f64], ranks: &[f64]) -> Value {
    numbers.sort_unstable_by(f64::total_cmp);
    ranks.iter().map(|rank| percentile(numbers, *rank)).collect::<Vec<_>>().into()
}

pub(in crate::pipeline) fn median(numbers: &mut [f64]) -> Value {
    numbers.sort_unstable_by(f64::total_cmp);
    percentile(numbers, 0.5)
}

fn percentile(sorted: &[f64], rank: f64) -> Value {
    let place = (rank * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().into()
}
