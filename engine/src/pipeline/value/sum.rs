//! Sums of integers and doubles.

use crate::model::value::Value;

/// An integer or a double.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    Int(i64),
    Double(f64),
}

/// A sum that stays an integer as long as possible. The sum compensates rounding errors, so small summands are not lost
/// next to large ones.
#[derive(Debug, Default)]
pub struct Sum {
    whole: i128,
    double: f64,
    /// The accumulated rounding error of `double`.
    lost: f64,
    has_double: bool,
}

impl Sum {
    /// Adds a number. Ignores other values.
    pub fn add(&mut self, value: Option<&Value>) {
        self.add_number(value);
    }

    /// Adds a number as [`Sum::add`] does. Returns `false` if the value is not a number.
    pub fn add_number(&mut self, value: Option<&Value>) -> bool {
        match value {
            Some(Value::Int(number)) => self.take(Number::Int(*number)),
            Some(Value::Double(number)) => self.take(Number::Double(*number)),
            _ => return false,
        }
        true
    }

    pub fn take(&mut self, number: Number) {
        match number {
            Number::Int(number) => self.whole = self.whole.saturating_add(i128::from(number)),
            Number::Double(number) => {
                self.has_double = true;
                let sum = self.double + number;
                if sum.is_finite() {
                    self.lost += match self.double.abs() >= number.abs() {
                        true => (self.double - sum) + number,
                        false => (number - sum) + self.double,
                    };
                }
                self.double = sum;
            }
        }
    }

    fn as_double(&self) -> f64 {
        let mut all = Sum { double: self.double, lost: self.lost, ..Sum::default() };
        // One double cannot represent every integer, but the sum of two doubles can.
        let most = self.whole as f64;
        for part in [most, self.whole.saturating_sub(most as i128) as f64] {
            all.take(Number::Double(part));
        }
        if all.double.is_finite() { all.double + all.lost } else { all.double }
    }

    pub fn total(&self) -> Value {
        match i64::try_from(self.whole) {
            Ok(whole) if !self.has_double => Value::Int(whole),
            _ => Value::Double(self.as_double()),
        }
    }

    pub fn average(&self, count: u64) -> Value {
        if count == 0 { Value::Null } else { Value::Double(self.as_double() / count as f64) }
    }
}
