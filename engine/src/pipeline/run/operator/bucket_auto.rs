//! `$bucketAuto`: groups rows into ranges with about equal numbers of rows.

use super::group::GroupStates;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::language::ast;
use crate::pipeline::language::ast::Granularity;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::measure;
use crate::pipeline::value::sorting::sorted;

/// The operator of `$bucketAuto`.
pub struct BucketAutoOperator {
    pub bucket: ast::BucketAuto,
    pub owner: RowOwner,
}

struct BucketRange {
    min: Value,
    max: Value,
    gathering: GroupStates,
    /// The number of bytes that the query is charged for the rows of the range.
    charged: usize,
}

/// A row, the value by which the row is grouped, and the number of bytes that the query is charged for the row and the
/// value.
struct BucketRow {
    by: Value,
    row: Value,
    charged: usize,
}

impl Operator for BucketAutoOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut rows = Vec::new();
        for row in input {
            let row = row?;
            rows.push(self.charged_row(row, run)?);
        }
        let rows = sorted(rows, run.query, |row| measure(&row.by, run.query), |a, b| a.by.cmp(&b.by))?;
        let ranges = self.ranges(rows, run)?;
        let fields = &self.bucket.fields;
        Ok(Box::new(ranges.into_iter().map(move |range| {
            run.query.give_back(range.charged);
            let id: Object = Object::from_iter([("min", range.min), ("max", range.max)]);
            range.gathering.finish(id.into(), fields, run.query)
        })))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

fn check_number(value: &Value) -> Result<()> {
    match value.as_f64() {
        None => {
            let text =
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: ";
            err!(40258, "{text}{}", value.type_name())
        }
        Some(number) if number.is_nan() => Err(Error::new(
            40259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN",
        )),
        Some(number) if number < 0.0 => Err(Error::new(
            40260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number",
        )),
        Some(_) => Ok(()),
    }
}

impl BucketAutoOperator {
    /// Charges the query for a row and for the value by which the row is grouped. With a granularity, rejects values
    /// other than numbers of at least 0.
    fn charged_row(&self, row: Value, run: RunContext) -> Result<BucketRow> {
        let (by, charged) = run.query.charged(|| {
            // The charge for the row covers the values that belong to the row.
            let input = InputValue::of_row(&self.bucket.by, 0, &run.env(&row))?;
            run.query.charge(size_of::<BucketRow>() + input.built_bytes(run.query)?)?;
            let by = input.value.unwrap_or_default();
            if self.bucket.granularity.is_some() {
                check_number(&by)?;
            }
            self.owner.hold(&row, run.query)?;
            Ok(by)
        })?;
        Ok(BucketRow { by, row, charged })
    }

    fn ranges(&self, rows: Vec<BucketRow>, run: RunContext) -> Result<Vec<BucketRange>> {
        let fields = &self.bucket.fields;
        let bucket_count = self.bucket.buckets;
        // Each range gets the average number of rows, rounded to the nearest integer, but at least one row.
        let size = ((rows.len() as f64 / bucket_count as f64).round() as usize).max(1);
        let mut ranges: Vec<BucketRange> = Vec::new();
        let mut rows = rows.into_iter().peekable();
        while let Some(first) = rows.next() {
            let gathering = GroupStates::new(fields, &Value::Null, &run.env(&first.row))?;
            let mut range = BucketRange { min: first.by.clone(), max: Value::Null, gathering, charged: 0 };
            range.take(first, fields, run)?;
            let last = ranges.len() + 1 == bucket_count;
            let mut taken = 1;
            while taken < size || last {
                let Some(row) = rows.next() else { break };
                range.take(row, fields, run)?;
                taken += 1;
            }
            match self.bucket.granularity {
                None => {
                    while let Some(row) = rows.next_if(|row| row.by == range.max) {
                        range.take(row, fields, run)?;
                    }
                }
                Some(granularity) => {
                    let boundary = Value::Double(granularity.round_up(number(&range.max)));
                    while let Some(row) = rows.next_if(|row| row.by < boundary) {
                        range.take(row, fields, run)?;
                    }
                    range.max = match rows.peek() {
                        // A range that contains only zeros ends where the next range begins.
                        Some(next) if number(&boundary) == 0.0 => {
                            Value::Double(granularity.round_down(number(&next.by)))
                        }
                        _ => boundary,
                    };
                }
            }
            join(&mut ranges, &mut range, self.bucket.granularity);
            ranges.push(range);
        }
        Ok(ranges)
    }
}

/// Joins the `next` range to the last range in `ranges`. Without a granularity, moves the end of the last range to the
/// start of `next`. With a granularity, moves the start of `next` to the end of the last range, or rounds the start
/// down if `next` is the first range.
fn join(ranges: &mut [BucketRange], next: &mut BucketRange, granularity: Option<Granularity>) {
    match (ranges.last_mut(), granularity) {
        (Some(previous), None) => previous.max = next.min.clone(),
        (Some(previous), Some(_)) => next.min = previous.max.clone(),
        (None, Some(granularity)) => next.min = Value::Double(granularity.round_down(number(&next.min))),
        (None, None) => {}
    }
}

/// Returns a number as a double. The operator has already rejected values that are not numbers.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

impl BucketRange {
    fn take(&mut self, row: BucketRow, fields: &super::group::Fields, run: RunContext) -> Result<()> {
        // The query remains charged for the row until the range is finished, so the values of the row need no further
        // charge.
        self.gathering.add(fields, RowOwner::Source, &run.env(&row.row))?;
        self.max = row.by;
        self.charged += row.charged;
        Ok(())
    }
}
