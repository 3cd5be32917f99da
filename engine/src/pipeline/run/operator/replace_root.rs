//! `$replaceRoot`: replaces each row with an object.

use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::{Result, err};
use crate::pipeline::value::memory;

/// The operator of `$replaceRoot`.
pub struct ReplaceRootOperator {
    pub new_root: Expr,
}

impl Operator for ReplaceRootOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            match run.query.uncharged(|| self.new_root.eval(&run.env(&row)))? {
                Some(object @ Value::Object(_)) => {
                    memory::check_depth(&object, run.query)?;
                    Ok(object)
                }
                other => {
                    let (shown, kind) = match &other {
                        Some(value) => (excerpt(value), value.type_name()),
                        None => ("MISSING".to_owned(), "missing"),
                    };
                    err!(
                        40228,
                        "'newRoot' expression must evaluate to an object, but resulting value was: {shown}. Type of \
                             resulting value: '{kind}'. Input document: {}",
                        excerpt(&row)
                    )
                }
            }
        })))
    }
}
