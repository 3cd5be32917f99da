//! Sums of numbers.

use crate::model::decimal::{self, Decimal};
use crate::model::value::Value;

/// A number of any type.
#[derive(Debug, Clone, Copy)]
pub enum NumericValue {
    Int(i64),
    Double(f64),
    Decimal(Decimal),
}

impl NumericValue {
    /// Returns the number, or `None` for other values.
    pub fn of(value: &Value) -> Option<NumericValue> {
        match value {
            Value::Int(number) => Some(NumericValue::Int(*number)),
            Value::Double(number) => Some(NumericValue::Double(*number)),
            Value::Decimal(number) => Some(NumericValue::Decimal(*number)),
            _ => None,
        }
    }
}

/// A sum of numbers. The sum of integers is an integer if the sum fits in 64 bits. A sum with decimal summands is a
/// decimal if decimals can represent the sum and all intermediate sums. Any other sum is a double. Rounding errors of
/// doubles are compensated, so small summands are not lost next to large summands.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    whole: i128,
    double: f64,
    /// The accumulated rounding error of `double`.
    lost: f64,
    has_double: bool,
    decimal: Option<Decimal>,
    /// Whether the sum of the decimals exceeded the range of a decimal. The field `double` contains the decimals that
    /// did not fit.
    is_beyond: bool,
}

impl Sum {
    /// Adds a number. Ignores other values.
    pub fn add(&mut self, value: Option<&Value>) {
        self.add_number(value);
    }

    /// Adds a number, as [`Sum::add`] does. Returns `false` if the value is not a number.
    pub fn add_number(&mut self, value: Option<&Value>) -> bool {
        let number = value.and_then(NumericValue::of);
        number.into_iter().for_each(|number| self.take(number));
        number.is_some()
    }

    pub fn take(&mut self, number: NumericValue) {
        match number {
            NumericValue::Int(number) => self.whole = self.whole.saturating_add(i128::from(number)),
            NumericValue::Decimal(number) => match self.decimal.unwrap_or_default().checked_add(number) {
                Some(sum) => self.decimal = Some(sum),
                None => {
                    self.is_beyond = true;
                    self.take(NumericValue::Double(decimal::to_double(number)));
                }
            },
            NumericValue::Double(number) => {
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

    /// Removes an integer that was added before. Doubles cannot be removed without rounding errors.
    pub fn remove_int(&mut self, number: i64) {
        self.whole = self.whole.saturating_sub(i128::from(number));
    }

    /// Adds all summands of another sum.
    pub fn merge(&mut self, other: &Sum) {
        self.whole = self.whole.saturating_add(other.whole);
        if let Some(number) = other.decimal {
            self.take(NumericValue::Decimal(number));
        }
        if other.has_double || other.is_beyond {
            self.take(NumericValue::Double(other.double));
            self.lost += other.lost;
        }
        self.is_beyond |= other.is_beyond;
    }

    fn as_double(&self) -> f64 {
        let mut all = Sum { double: self.double, lost: self.lost, ..Sum::default() };
        // One double cannot represent every integer, but the sum of two doubles can.
        let most = self.whole as f64;
        let decimal = self.decimal.map_or(0.0, decimal::to_double);
        for part in [most, self.whole.saturating_sub(most as i128) as f64, decimal] {
            all.take(NumericValue::Double(part));
        }
        if all.double.is_finite() { all.double + all.lost } else { all.double }
    }

    /// Returns the sum as a decimal. Returns `None` if there are no decimal summands, or if no decimal can represent
    /// the sum or an intermediate sum. First converts the sum of the doubles to a decimal. Many decimals have this sum
    /// as their nearest double: the conversion chooses the decimal with the fewest digits.
    fn as_decimal(&self) -> Option<Decimal> {
        let decimals = self.decimal.filter(|_| !self.is_beyond)?;
        let whole = Decimal::try_from_i128_with_scale(self.whole, 0).ok()?;
        let doubles = if self.has_double { decimal::of_double(self.double + self.lost)? } else { Decimal::ZERO };
        decimals.checked_add(whole)?.checked_add(doubles)
    }

    pub fn total(&self) -> Value {
        if let Some(total) = self.as_decimal() {
            return Value::Decimal(total);
        }
        match i64::try_from(self.whole) {
            Ok(whole) if !self.has_double && self.decimal.is_none() => Value::Int(whole),
            _ => Value::Double(self.as_double()),
        }
    }

    pub fn average(&self, count: u64) -> Value {
        if count == 0 {
            return Value::Null;
        }
        let quotient = self.as_decimal().and_then(|total| total.checked_div(Decimal::from(count)));
        quotient.map_or_else(
            || Value::Double(self.as_double() / count as f64),
            |quotient| Value::Decimal(quotient.normalize()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json::text;

    fn sum(values: &[Value]) -> Sum {
        let mut sum = Sum::default();
        values.iter().for_each(|value| sum.add(Some(value)));
        sum
    }

    fn decimal(text: &str) -> Value {
        Value::Decimal(decimal::parse(text).expect("a decimal"))
    }

    #[test]
    fn decimals_are_summed_exactly() {
        let cents = vec![decimal("0.10"); 1_000];
        assert_eq!(text(&sum(&cents).total()), r#""100.00""#);
        assert_eq!(text(&sum(&cents).average(1_000)), r#""0.1""#);
        let mixed = [decimal("1.05"), Value::Int(2), Value::Double(0.5), Value::Double(0.25), Value::from("x")];
        assert_eq!(text(&sum(&mixed).total()), r#""3.80""#);
        assert_eq!(
            text(&sum(&[decimal("1"), decimal("0"), decimal("0")]).average(3)),
            r#""0.3333333333333333333333333333""#
        );
    }

    #[test]
    fn a_sum_beyond_the_range_of_decimals_is_a_double() {
        let most = decimal("79228162514264337593543950335");
        assert_eq!(sum(&[most.clone(), most.clone(), decimal("1")]).total().as_f64(), Some(1.584_563_250_285_286_8e29));
        assert_eq!(text(&sum(&[most, Value::Double(f64::NAN)]).total()), "null");
    }
}
