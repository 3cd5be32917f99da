//! `$bucket`: computes a value for each row, and groups the rows by the range that contains the value.

use std::collections::BTreeMap;

use super::group::GroupStates;
use crate::model::value::Value;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::memory::measure;

/// The operator of `$bucket`.
pub struct BucketOperator {
    pub bucket: ast::Bucket,
    pub owner: RowOwner,
}

impl Operator for BucketOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let fields = &self.bucket.fields;
        let mut buckets: BTreeMap<Value, GroupStates> = BTreeMap::new();
        for row in input {
            let row = row?;
            let env = run.env(&row);
            let value = run.query.uncharged(|| self.bucket.by.eval(&env))?.unwrap_or_default();
            measure(&value, run.query)?;
            let id = self.range(&value).ok_or_else(|| {
                let text = "$switch could not find a matching branch for an input, and no default was specified.";
                Error::new(40066, text)
            })?;
            if !buckets.contains_key(id) {
                buckets.insert(id.clone(), GroupStates::new(fields, id, &env)?);
            }
            if let Some(gathering) = buckets.get_mut(id) {
                gathering.add(fields, self.owner, &env)?;
            }
        }
        Ok(Box::new(buckets.into_iter().map(move |(id, gathering)| gathering.finish(id, fields, run.query))))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

impl BucketOperator {
    /// Returns the lower boundary of the range that contains the value. For a value outside the boundaries, returns the
    /// default, if any.
    fn range(&self, value: &Value) -> Option<&Value> {
        let above = self.bucket.boundaries.partition_point(|boundary| boundary <= value);
        let inside = (above < self.bucket.boundaries.len()).then(|| above.checked_sub(1)).flatten();
        match inside {
            Some(number) => self.bucket.boundaries.get(number),
            None => self.bucket.default.as_ref(),
        }
    }
}
