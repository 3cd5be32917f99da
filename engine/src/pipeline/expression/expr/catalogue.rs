//! All operators of expressions, and the scope in which an expression may name them.

use super::operator::Operator;
use super::parse::Scope;

/// Every family of operators, in the order of the documentation.
const FAMILIES: &[&[Operator]] = &[
    super::arithmetic::OPERATORS,
    super::rounding::OPERATORS,
    super::trigonometry::OPERATORS,
    super::bitwise::OPERATORS,
    super::boolean::OPERATORS,
    super::comparison::OPERATORS,
    super::conditional::OPERATORS,
    super::variable::OPERATORS,
    super::array::OPERATORS,
    super::sequence::OPERATORS,
    super::statistics::OPERATORS,
    super::object::OPERATORS,
    super::set::OPERATORS,
    super::string::OPERATORS,
    super::trim::OPERATORS,
    super::regex::OPERATORS,
    super::conversion::OPERATORS,
    super::date_parts::OPERATORS,
    super::date_arithmetic::OPERATORS,
    super::date_format::OPERATORS,
    super::measure::OPERATORS,
];

/// All operators, family by family.
pub fn catalogue() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().copied().flatten()
}

impl Scope {
    /// All operators and the system variables.
    pub fn root() -> Scope {
        Scope::new(FAMILIES, false)
    }

    /// As [`root`](Scope::root), with `$$DESCEND`, `$$PRUNE` and `$$KEEP`.
    pub fn redact() -> Scope {
        Scope::new(FAMILIES, true)
    }
}
