//! Filters over whole segments, which return the matching rows as masks.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use super::numbers;
use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells, Column, Lists, Mask, SEGMENT, Segment, TextCode, can_keep};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::expression::filter::{Comparison, FilterNode, MemberSet, Test};
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::query_path::Leaf;

/// Visits the paths that a filter reads. Returns `false` at the first condition that columns cannot evaluate.
pub fn paths<'f>(node: &'f FilterNode, visit: &mut dyn FnMut(&'f str)) -> bool {
    match node {
        FilterNode::And(nodes) | FilterNode::Or(nodes) | FilterNode::Nor(nodes) => {
            nodes.iter().all(|node| paths(node, visit))
        }
        FilterNode::Not(node) => paths(node, visit),
        FilterNode::Constant(_) => true,
        FilterNode::Expr(_) | FilterNode::Schema(_) => false,
        FilterNode::Field(path, test) => {
            visit(path.text());
            can_keep(path.text()) && is_of_cells(test)
        }
    }
}

/// Returns whether a test can be evaluated on cells. Other tests need the row.
fn is_of_cells(test: &Test) -> bool {
    !matches!(test, Test::ElemMatchObject(_))
}

/// Returns whether a condition may fail or take a long time. Such a condition is evaluated row by row, after the
/// conditions that are evaluated for whole segments.
pub fn is_costly(node: &FilterNode) -> bool {
    match node {
        FilterNode::And(nodes) | FilterNode::Or(nodes) | FilterNode::Nor(nodes) => nodes.iter().any(is_costly),
        FilterNode::Not(node) => is_costly(node),
        FilterNode::Field(_, test) => matches!(test, Test::Regex(_) | Test::ElemMatchValue(_)),
        FilterNode::Constant(_) => false,
        FilterNode::Expr(_) | FilterNode::Schema(_) => true,
    }
}

/// A filter bound to the columns that it reads.
pub enum Predicate<'a> {
    And(Vec<Predicate<'a>>),
    Or(Vec<Predicate<'a>>),
    Not(Box<Predicate<'a>>),
    Constant(bool),
    Test(Box<ColumnTest<'a>>),
}

/// A test of one column.
pub struct ColumnTest<'a> {
    column: &'a Column,
    test: &'a Test,
    null: bool,
    missing: bool,
    texts: Texts,
}

/// The known results of a test on strings.
enum Texts {
    /// The codes of all strings that satisfy the test.
    OneOf(Vec<TextCode>),
    /// The results that are already known, indexed by the code of the string.
    Verdicts(RefCell<Vec<SegmentVerdict>>),
}

#[derive(Clone, Copy, PartialEq)]
enum SegmentVerdict {
    Unknown,
    Holds,
    Fails,
}

impl<'a> Predicate<'a> {
    /// Binds a filter to columns. Returns `None` if there is no column for a path, or if a column cannot evaluate a
    /// condition.
    pub fn bind(node: &'a FilterNode, columns: &'a dyn Columns, query: &Context) -> Result<Option<Predicate<'a>>> {
        let all = |nodes: &'a [FilterNode]| -> Result<Option<Vec<Predicate<'a>>>> {
            nodes.iter().map(|node| Predicate::bind(node, columns, query)).collect::<Result<Option<Vec<_>>>>()
        };
        Ok(match node {
            FilterNode::And(nodes) => all(nodes)?.map(Predicate::And),
            FilterNode::Or(nodes) => all(nodes)?.map(Predicate::Or),
            FilterNode::Nor(nodes) => all(nodes)?.map(|nodes| Predicate::Not(Box::new(Predicate::Or(nodes)))),
            FilterNode::Not(node) => {
                Predicate::bind(node, columns, query)?.map(|predicate| Predicate::Not(Box::new(predicate)))
            }
            FilterNode::Constant(answer) => Some(Predicate::Constant(*answer)),
            FilterNode::Expr(_) | FilterNode::Schema(_) => None,
            FilterNode::Field(path, test) if is_of_cells(test) => {
                let column = columns.column(path.text()).filter(|column| column.is_clear());
                column.map(|column| Ok(Predicate::Test(Box::new(ColumnTest::new(column, test, query)?)))).transpose()?
            }
            FilterNode::Field(..) => None,
        })
    }

    /// Returns whether one row satisfies the filter.
    pub fn holds(&self, row_index: usize, query: &Context) -> Result<bool> {
        match self {
            Predicate::And(nodes) => {
                for node in nodes {
                    if !node.holds(row_index, query)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Predicate::Or(nodes) => {
                for node in nodes {
                    if node.holds(row_index, query)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Predicate::Not(node) => Ok(!node.holds(row_index, query)?),
            Predicate::Constant(answer) => Ok(*answer),
            Predicate::Test(test) => match test.column.segments().get(row_index / SEGMENT) {
                Some(segment) => test.cell(segment, row_index % SEGMENT, &Env::new(query, &Value::Null)),
                None => Ok(false),
            },
        }
    }

    /// Returns the rows of a segment that satisfy the filter.
    pub fn mask(&self, segment: usize, len: usize, query: &Context) -> Result<Mask> {
        match self {
            Predicate::And(nodes) => {
                let mut mask = Mask::all(len);
                for node in nodes {
                    if mask.is_empty() {
                        break;
                    }
                    mask.and(&node.mask(segment, len, query)?);
                }
                Ok(mask)
            }
            Predicate::Or(nodes) => {
                let mut mask = Mask::none(len);
                for node in nodes {
                    mask.or(&node.mask(segment, len, query)?);
                }
                Ok(mask)
            }
            Predicate::Not(node) => {
                let mut mask = node.mask(segment, len, query)?;
                mask.negate();
                Ok(mask)
            }
            Predicate::Constant(answer) => Ok(Mask::constant(len, *answer)),
            Predicate::Test(test) => match test.column.segments().get(segment) {
                Some(segment) => {
                    query.tick_many(len)?;
                    test.mask(segment, query)
                }
                None => Ok(Mask::none(len)),
            },
        }
    }
}

impl<'a> ColumnTest<'a> {
    pub fn new(column: &'a Column, test: &'a Test, query: &Context) -> Result<ColumnTest<'a>> {
        let env = Env::new(query, &Value::Null);
        let code = |value: &Value| value.as_str().and_then(|text| column.texts().code(text));
        let texts = match test {
            Test::Compare(Comparison::Eq, operand) => Texts::OneOf(code(operand).into_iter().collect()),
            Test::In(members) => Texts::OneOf(members.values().filter_map(code).collect()),
            _ => Texts::Verdicts(RefCell::default()),
        };
        Ok(ColumnTest {
            column,
            test,
            null: test.matches(Some(&Value::Null), &env)?,
            missing: test.matches(None, &env)?,
            texts,
        })
    }

    /// Returns the rows of a segment whose cells satisfy the test.
    pub fn mask(&self, segment: &Segment, query: &Context) -> Result<Mask> {
        let Some(mut mask) = self.values(segment) else { return self.cell_by_cell(segment, query) };
        if !segment.is_plain() {
            let kinds = segment.kinds();
            mask.and(&Mask::of(kinds, |kind| matches!(kind, CellKind::Value | CellKind::Int)));
            if self.null {
                mask.or(&Mask::of(kinds, |kind| *kind == CellKind::Null));
            }
            if self.missing {
                mask.or(&Mask::of(kinds, |kind| *kind == CellKind::Missing));
            }
        }
        Ok(mask)
    }

    /// Returns the rows whose cells satisfy the test, under the assumption that every cell contains a plain value.
    /// Returns `None` if there is no specialized loop for the test and the type of the cells.
    fn values(&self, segment: &Segment) -> Option<Mask> {
        let len = segment.len();
        let compared = |cells: &[i64], comparison: Comparison, operand: &Value| {
            let range = numbers::ints(comparison, operand);
            Some(range.map_or_else(|| Mask::none(len), |range| in_range(cells, range, segment.span())))
        };
        match (segment.cells(), self.test) {
            (Cells::Empty, _) => Some(Mask::none(len)),
            (_, Test::Exists) => Some(Mask::all(len)),
            (Cells::Ints(cells), Test::Compare(comparison, operand)) => compared(cells, *comparison, operand),
            (Cells::Dates(cells), Test::Compare(comparison, Value::Date(ms))) => {
                compared(cells, *comparison, &Value::Int(*ms))
            }
            (Cells::Dates(_), Test::Compare(..)) => Some(Mask::none(len)),
            (Cells::Ints(cells), Test::In(members)) => Some(among(cells, members)),
            (Cells::Numbers(cells), Test::Compare(comparison, operand)) => {
                let comparison = *comparison;
                Some(match operand {
                    Value::Double(number) if !number.is_nan() => compare(cells, comparison, *number),
                    Value::Int(number) if *number as f64 as i64 == *number && *number != i64::MAX => {
                        compare(cells, comparison, *number as f64)
                    }
                    operand if operand.is_number() => {
                        Mask::of(cells, |cell| comparison.holds(Some(&Value::Double(*cell)), operand))
                    }
                    _ => Mask::none(len),
                })
            }
            (Cells::Texts(cells), _) => match &self.texts {
                Texts::OneOf(codes) => Some(one_of(cells, codes)),
                Texts::Verdicts(_) => None,
            },
            (Cells::Lists(lists), Test::Compare(Comparison::Eq, Value::String(_))) => self.listed(lists, len),
            (Cells::Lists(lists), Test::In(members)) if members.values().all(|member| member.as_str().is_some()) => {
                self.listed(lists, len)
            }
            _ => None,
        }
    }

    /// Returns the rows whose lists contain any of the strings that satisfy the test. Returns `None` if these strings
    /// are not known.
    fn listed(&self, lists: &Lists, len: usize) -> Option<Mask> {
        let Texts::OneOf(codes) = &self.texts else { return None };
        let mut mask = Mask::none(len);
        if codes.is_empty() {
            return Some(mask);
        }
        for row in 0..len {
            if lists.get(row).iter().any(|code| codes.contains(code)) {
                mask.set(row);
            }
        }
        Some(mask)
    }

    /// Tests the cells one by one. In a segment of strings, equal strings are tested once.
    fn cell_by_cell(&self, segment: &Segment, query: &Context) -> Result<Mask> {
        let env = Env::new(query, &Value::Null);
        let mut mask = Mask::none(segment.len());
        for row in 0..segment.len() {
            if self.cell(segment, row, &env)? {
                mask.set(row);
            }
        }
        Ok(mask)
    }

    fn cell(&self, segment: &Segment, row: usize, env: &Env) -> Result<bool> {
        match (segment.kind(row), segment.cells(), &self.texts) {
            (CellKind::Null, ..) => Ok(self.null),
            (CellKind::Missing, ..) => Ok(self.missing),
            (CellKind::Value, Cells::Texts(cells), Texts::Verdicts(verdicts)) => {
                self.verdict(cells[row], &mut verdicts.borrow_mut(), env)
            }
            _ => self.holds(segment.value(row, self.column.texts()).as_ref(), env),
        }
    }

    fn verdict(&self, code: TextCode, verdicts: &mut Vec<SegmentVerdict>, env: &Env) -> Result<bool> {
        let Some(number) = code.index() else { return Ok(false) };
        if verdicts.len() <= number {
            verdicts.resize(self.column.texts().len().max(number + 1), SegmentVerdict::Unknown);
        }
        if verdicts[number] == SegmentVerdict::Unknown {
            let text = self.column.texts().text(code).cloned().map(Value::String);
            verdicts[number] =
                if self.holds(text.as_ref(), env)? { SegmentVerdict::Holds } else { SegmentVerdict::Fails };
        }
        Ok(verdicts[number] == SegmentVerdict::Holds)
    }

    /// Returns whether a value satisfies the test. For an array, the items are tested before the array, unless the test
    /// applies only to the array itself.
    fn holds(&self, value: Option<&Value>, env: &Env) -> Result<bool> {
        if let (Some(Value::Array(items)), Leaf::Expanded) = (value, self.test.leaf()) {
            for item in items.iter() {
                if self.test.matches(Some(item), env)? {
                    return Ok(true);
                }
            }
        }
        self.test.matches(value, env)
    }
}

/// Returns the rows whose cells lie within `range`. `there` is a range that contains all cells. The cells are not read
/// if `there` lies completely inside or completely outside `range`.
pub fn in_range(cells: &[i64], range: RangeInclusive<i64>, there: &RangeInclusive<i64>) -> Mask {
    let (min, max) = (*range.start(), *range.end());
    if min <= *there.start() && max >= *there.end() {
        return Mask::all(cells.len());
    }
    if min > *there.end() || max < *there.start() || min > max {
        return Mask::none(cells.len());
    }
    Mask::of(cells, |cell| (*cell >= min) & (*cell <= max))
}

fn compare(cells: &[f64], comparison: Comparison, operand: f64) -> Mask {
    // A NaN cell satisfies none of these comparisons.
    match comparison {
        Comparison::Eq => Mask::of(cells, |cell| *cell == operand),
        Comparison::Gt => Mask::of(cells, |cell| *cell > operand),
        Comparison::Gte => Mask::of(cells, |cell| *cell >= operand),
        Comparison::Lt => Mask::of(cells, |cell| *cell < operand),
        Comparison::Lte => Mask::of(cells, |cell| *cell <= operand),
    }
}

fn one_of(cells: &[TextCode], codes: &[TextCode]) -> Mask {
    match codes {
        [] => Mask::none(cells.len()),
        [code] => Mask::of(cells, |cell| cell == code),
        few if few.len() <= 8 => Mask::of(cells, |cell| few.contains(cell)),
        many => {
            let many: rustc_hash::FxHashSet<TextCode> = many.iter().copied().collect();
            Mask::of(cells, |cell| many.contains(cell))
        }
    }
}

fn among(cells: &[i64], members: &MemberSet) -> Mask {
    let mut numbers: Vec<i64> = members.values().filter_map(crate::pipeline::value::number::whole).collect();
    numbers.sort_unstable();
    match numbers.as_slice() {
        [] => Mask::none(cells.len()),
        few if few.len() <= 8 => Mask::of(cells, |cell| few.contains(cell)),
        many => Mask::of(cells, |cell| many.binary_search(cell).is_ok()),
    }
}
