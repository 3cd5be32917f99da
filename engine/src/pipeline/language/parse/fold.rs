//! Parses `$fold`, which folds streams of events into states.

use crate::model::date::parse_date;
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::ParseScope;
use crate::pipeline::language::ast::FoldOptions;
use crate::pipeline::source::scan::AsOf;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole_double;

const OPTIONS: [&str; 5] = ["at", "version", "position", "deleted", "events"];

pub fn parse(value: &Value, scope: &ParseScope) -> Result<FoldOptions> {
    let Value::Object(object) = value else {
        return err!(14, "the $fold stage specification must be an object, found {}", value.type_name());
    };
    let mut fold = FoldOptions::default();
    for (name, value) in object.iter() {
        let as_of = match &**name {
            "at" => AsOf::At(time(value, scope)?),
            "version" => AsOf::Version(number(name, value)?),
            "position" => AsOf::Position(number(name, value)?),
            "deleted" => {
                fold.deleted = flag(name, value)?;
                continue;
            }
            "events" => {
                fold.events = flag(name, value)?;
                continue;
            }
            unknown => {
                let allowed = OPTIONS.join(", ");
                let error = Error::new(9, format!("unknown argument to $fold: {unknown} (allowed: {allowed})"));
                return Err(error.suggesting(unknown, OPTIONS));
            }
        };
        if fold.as_of != AsOf::Now {
            return Err(Error::new(9, "$fold accepts at most one of 'at', 'version' and 'position'"));
        }
        fold.as_of = as_of;
    }
    Ok(fold)
}

fn time(value: &Value, scope: &ParseScope) -> Result<i64> {
    let known = match value {
        Value::Object(_) => expr::parse(value, scope)?.constant().cloned(),
        plain => Some(plain.clone()),
    };
    match known {
        Some(Value::Date(ms)) => Some(ms),
        Some(Value::String(text)) => parse_date(&text),
        _ => None,
    }
    .ok_or_else(|| {
        let found = excerpt(value);
        Error::new(14, format!("the 'at' argument to $fold must be a constant RFC 3339 time or date, found: {found}"))
    })
}

fn number(name: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => whole_double(*number),
        _ => None,
    }
    .filter(|number| *number >= 0)
    .ok_or_else(|| {
        let found = excerpt(value);
        Error::new(14, format!("the '{name}' argument to $fold must be a non-negative integer, found: {found}"))
    })
}

fn flag(name: &str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        other => err!(14, "the '{name}' argument to $fold must be a boolean, found: {}", excerpt(other)),
    }
}
