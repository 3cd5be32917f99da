//! `$redact`: keeps, removes or descends into each object of a row.

use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::{Result, err};
use crate::pipeline::value::memory::own_bytes;

/// The operator of `$redact`.
pub struct RedactOperator {
    pub expr: Expr,
}

impl Operator for RedactOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.filter_map(move |row| {
            let redacted = row.and_then(|row| run.query.uncharged(|| self.object(&row, &row, run)));
            redacted.transpose()
        })))
    }
}

impl RedactOperator {
    /// Evaluates the stage's expression for `part`, which is the row or an object inside the row. Returns `part`
    /// without the values that the expression removes, or `None` if the expression removes `part` itself.
    fn object(&self, part: &Value, row: &Value, run: RunContext) -> Result<Option<Value>> {
        run.query.tick()?;
        let env = run.env(row);
        let current = [Some(part.clone())];
        let decision = run.query.uncharged(|| self.expr.eval(&env.bind(&env.frame(&current))))?;
        match (decision.as_ref().and_then(Value::as_str), part) {
            (Some("keep"), _) => Ok(Some(part.clone())),
            (Some("prune"), _) => Ok(None),
            (Some("descend"), Value::Object(object)) => {
                run.query.charge(own_bytes(part))?;
                let mut kept = Object::with_capacity(object.len());
                for (name, value) in object.iter() {
                    if let Some(value) = self.value(value, row, run)? {
                        kept.push(name.clone(), value);
                    }
                }
                Ok(Some(kept.into()))
            }
            _ => {
                let text = "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, \
                            and $$PRUNE, but returned";
                let shown = decision.map_or_else(|| "nothing".to_owned(), |value| excerpt(&value));
                err!(17053, "{text} {shown}")
            }
        }
    }

    fn value(&self, value: &Value, row: &Value, run: RunContext) -> Result<Option<Value>> {
        match value {
            Value::Object(_) => self.object(value, row, run),
            Value::Array(items) => {
                run.query.tick_many(items.len())?;
                run.query.charge(own_bytes(value))?;
                let mut kept = Vec::with_capacity(items.len());
                for item in items.iter() {
                    kept.extend(self.value(item, row, run)?);
                }
                Ok(Some(kept.into()))
            }
            scalar => Ok(Some(scalar.clone())),
        }
    }
}
