//! `$count`: returns one row with the number of input rows, or no row if the input is empty.

use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$count`.
pub struct CountOperator {
    pub name: Arc<str>,
}

impl Operator for CountOperator {
    fn open<'a>(&'a self, input: Rows<'a>, _run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut count = 0i64;
        for row in input {
            row?;
            count += 1;
        }
        let row = (count > 0).then(|| Value::from(Object::from_iter([(self.name.clone(), count)])));
        Ok(Box::new(row.into_iter().map(Ok)))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}
