//! The catalogue of expression operators, and the scopes that contain them.

use super::operator::ExprOperator;
use super::parse::ParseScope;
use crate::pipeline::value::context::Context;

/// Every family of operators, in the order of the documentation.
const FAMILIES: &[&[ExprOperator]] = &[
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
    super::similarity::OPERATORS,
    super::object::OPERATORS,
    super::set::OPERATORS,
    super::string::OPERATORS,
    super::trim::OPERATORS,
    super::regex::OPERATORS,
    super::hash::OPERATORS,
    super::conversion::OPERATORS,
    super::date::parts::OPERATORS,
    super::date::arithmetic::OPERATORS,
    super::date::format::OPERATORS,
    super::measure::OPERATORS,
];

/// Returns all operators, grouped by family.
pub fn catalogue() -> impl Iterator<Item = &'static ExprOperator> {
    FAMILIES.iter().copied().flatten()
}

impl<'q> ParseScope<'q> {
    /// Returns the scope with all operators and the system variables.
    pub fn root(query: &'q Context<'q>) -> ParseScope<'q> {
        ParseScope::new(FAMILIES, false, query)
    }

    /// Returns the scope of `$redact`: the root scope with the additional variables `$$DESCEND`, `$$PRUNE` and
    /// `$$KEEP`.
    pub fn redact(query: &'q Context<'q>) -> ParseScope<'q> {
        ParseScope::new(FAMILIES, true, query)
    }
}
