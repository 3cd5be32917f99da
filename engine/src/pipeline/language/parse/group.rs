//! Parses `$group` and `$sortByCount`.

use super::accumulators;
use crate::model::value::Value;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::{Expr, ParseScope};
use crate::pipeline::language::ast::Group;
use crate::pipeline::value::error::{Error, Result, err};

pub fn parse(value: &Value, scope: &ParseScope) -> Result<Group> {
    let Value::Object(object) = value else {
        return Err(Error::new(15947, "a group's fields must be specified in an object"));
    };
    let mut id = None;
    let mut fields = Vec::new();
    for (name, spec) in object.iter() {
        match &**name {
            "_id" => id = Some(key(spec, scope).map_err(|error| error.within(name.clone()))?),
            _ => fields.push(accumulators::field(name, spec, scope)?),
        }
    }
    let id = id.ok_or_else(|| Error::new(15955, "a group specification must include an _id"))?;
    Ok(Group { id, fields })
}

fn key(spec: &Value, scope: &ParseScope) -> Result<Expr> {
    if let Value::Object(object) = spec
        && !object.keys().any(|name| name.starts_with('$'))
        && object.iter().any(|(_, value)| value.is_number() || matches!(value, Value::Bool(_)))
    {
        return Err(Error::new(17390, "$group does not support inclusion-style expressions"));
    }
    expr::parse(spec, scope)
}

pub fn sort_by_count(value: &Value, scope: &ParseScope) -> Result<Expr> {
    let (code, is_expression) = match value {
        Value::Object(object) => (40147, object.keys().next().is_some_and(|name| name.starts_with('$'))),
        Value::String(text) => (40148, text.starts_with('$')),
        _ => return Err(Error::new(40149, "the sortByCount field must be specified as a string or as an object")),
    };
    if is_expression {
        return expr::parse(value, scope);
    }
    err!(code, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
}
