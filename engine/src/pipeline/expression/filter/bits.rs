//! The four query operators that test the bits of a number.

use crate::model::value::Value;
use crate::pipeline::value::number::whole;

/// The condition that a test imposes on the tested bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitTest {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

/// A bit test and the bits that it reads.
#[derive(Debug, Clone)]
pub struct Bits {
    pub test: BitTest,
    /// The bits at positions below 64.
    pub mask: u64,
    /// Whether the test reads a position of 64 or more, where each bit equals the sign bit.
    pub sign: bool,
}

impl Bits {
    /// Returns whether the bits of a number pass the test. Returns `false` for a value that is not a whole number or
    /// does not fit into 64 bits.
    pub fn matches(&self, value: &Value) -> bool {
        let Some(number) = whole(value) else { return false };
        let (bits, negative) = (number as u64, number < 0);
        match self.test {
            BitTest::AllSet => bits & self.mask == self.mask && (!self.sign || negative),
            BitTest::AllClear => bits & self.mask == 0 && (!self.sign || !negative),
            BitTest::AnySet => bits & self.mask != 0 || (self.sign && negative),
            BitTest::AnyClear => !bits & self.mask != 0 || (self.sign && !negative),
        }
    }
}
