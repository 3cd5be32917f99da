//! Statistics over numbers: standard deviation, percentiles and median.

use super::context::Context;
use super::error::{Error, Result, err};
use super::memory::KeptBytes;
use crate::model::excerpt::excerpt;
use crate::model::value::Value;

/// The state of a standard deviation: the running mean, and the sum of squared distances from the mean (Welford's
/// method).
#[derive(Debug, Default)]
pub struct Deviation {
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

/// Adds a number to a list. Ignores NaN and values that are not numbers. `memory` counts the bytes of the list.
pub fn add_number(
    numbers: &mut Vec<f64>,
    value: Option<&Value>,
    memory: &mut KeptBytes,
    query: &Context,
) -> Result<()> {
    if let Some(number) = value.and_then(Value::as_f64).filter(|number| !number.is_nan()) {
        memory.charge(size_of::<f64>(), query)?;
        numbers.push(number);
    }
    Ok(())
}

/// Sorts the numbers and returns the percentile for each rank, or null for each rank if there are no numbers. The
/// percentile for a rank is the smallest number `n` in the list for which at least the fraction `rank` of the numbers
/// are less than or equal to `n`.
pub fn percentiles(numbers: &mut [f64], ranks: &[f64]) -> Value {
    numbers.sort_unstable_by(f64::total_cmp);
    ranks.iter().map(|rank| percentile(numbers, *rank)).collect::<Vec<_>>().into()
}

pub fn median(numbers: &mut [f64]) -> Value {
    numbers.sort_unstable_by(f64::total_cmp);
    percentile(numbers, 0.5)
}

fn percentile(sorted: &[f64], rank: f64) -> Value {
    let place = (rank * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().into()
}

/// Checks the name of a percentile method. Both methods return the same exact result, which is one of the numbers.
pub fn check_method(name: &str, method: Option<&Value>) -> Result<()> {
    match method {
        None => err!(40414, "Missing value for 'method' in {name}"),
        Some(Value::String(method)) if matches!(&**method, "approximate" | "discrete") => Ok(()),
        Some(Value::String(_)) => {
            Err(Error::new(2, "Currently only 'approximate' and 'discrete' can be used as percentile 'method'."))
        }
        Some(other) => {
            err!(14, "BSON field '{name}.method' is the wrong type '{}', expected type 'string'", other.type_name())
        }
    }
}

/// Parses the ranks of percentiles: a non-empty array of numbers from 0 to 1.
pub fn parse_shares(spec: Option<&Value>) -> Result<Vec<f64>> {
    let items = spec.and_then(Value::as_array).filter(|items| !items.is_empty()).ok_or_else(|| {
        Error::new(7_750_301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
    })?;
    let share = |item: &Value| match item.as_f64() {
        None => err!(7_750_302, "The $percentile 'p' array must hold numbers, found: {}", excerpt(item)),
        Some(share) if !(0.0..=1.0).contains(&share) => Err(Error::new(
            7_750_303,
            format!("The $percentile 'p' numbers must be in [0.0, 1.0], found: {}", excerpt(item)),
        )),
        Some(share) => Ok(share),
    };
    items.iter().map(share).collect()
}
