//! The four tests of a number's bits.

use crate::model::value::Value;
use crate::pipeline::value::number::whole_double;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitTest {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

/// A bit test and the bits it looks at.
#[derive(Debug, Clone)]
pub struct Bits {
    pub test: BitTest,
    /// Positions below 64.
    pub mask: u64,
    /// Whether a position of 64 or more is looked at: there stands the number's sign.
    pub sign: bool,
}

impl Bits {
    /// Whether the number's bits pass; a value that is no whole number of 64 bits does not.
    pub fn matches(&self, value: &Value) -> bool {
        let number = match value {
            Value::Int(number) => *number,
            Value::Double(number) => match whole_double(*number) {
                Some(number) => number,
                None => return false,
            },
            Value::Null | Value::Bool(_) | Value::Date(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return false;
            }
        };
        let (bits, negative) = (number as u64, number < 0);
        match self.test {
            BitTest::AllSet => bits & self.mask == self.mask && (!self.sign || negative),
            BitTest::AllClear => bits & self.mask == 0 && (!self.sign || !negative),
            BitTest::AnySet => bits & self.mask != 0 || (self.sign && negative),
            BitTest::AnyClear => !bits & self.mask != 0 || (self.sign && !negative),
        }
    }
}
