//! `$unwind`: returns one row for each item of an array.

use std::sync::Arc;

use super::nested_fields;
use crate::model::value::Value;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$unwind`.
pub struct UnwindOperator {
    pub unwind: ast::Unwind,
}

impl Operator for UnwindOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.flat_map(move |row| match row {
            Ok(row) => self.rows(row, run),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })))
    }
}

impl UnwindOperator {
    fn rows<'a>(&'a self, row: Value, run: RunContext<'a>) -> Rows<'a> {
        let value = row.as_object().and_then(|object| nested_fields::get(object, self.unwind.path.segments()));
        let items = match value {
            Some(Value::Array(items)) if !items.is_empty() => items.clone(),
            // With `preserve`, the row is returned without the field of the empty array.
            Some(Value::Array(_)) => return self.single(self.unwind.preserve, row, true),
            None | Some(Value::Null) => return self.single(self.unwind.preserve, row, false),
            Some(_) => return self.single(true, row, false),
        };
        Box::new((0..items.len()).map(move |nth| {
            run.query.tick()?;
            let index = i64::try_from(nth).map_or(Value::Null, Value::Int);
            Ok(self.with(row.clone(), Some(items[nth].clone()), index))
        }))
    }

    fn single<'a>(&self, passes: bool, row: Value, without_field: bool) -> Rows<'a> {
        if !passes {
            return Box::new(std::iter::empty());
        }
        let mut row = self.with(row, None, Value::Null);
        if let (true, Value::Object(object)) = (without_field, &mut row) {
            nested_fields::remove(Arc::make_mut(object), self.unwind.path.segments());
        }
        Box::new(std::iter::once(Ok(row)))
    }

    /// Returns the row with an item in place of the array. If the stage names a field for the index, also sets this
    /// field to `index`. Without an item, leaves the value at the path unchanged.
    fn with(&self, mut row: Value, item: Option<Value>, index: Value) -> Value {
        if let Value::Object(object) = &mut row
            && (item.is_some() || self.unwind.index.is_some())
        {
            let object = Arc::make_mut(object);
            if let Some(item) = item {
                nested_fields::set(object, self.unwind.path.segments(), item);
            }
            if let Some(path) = &self.unwind.index {
                nested_fields::set(object, path.segments(), index);
            }
        }
        row
    }
}
