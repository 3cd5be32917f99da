//! Parses query documents: fields, and operators beside fields, such as `$or`.

use std::sync::Arc;

use super::comparison::Comparison;
use super::field;
use super::node::{FilterNode, Test};
use super::operand;
use super::schema::FilterSchema;
use super::word::TOP_LEVEL;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::ParseScope;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::query_path::QueryPath;

/// The maximum depth of nested predicates (MongoDB's own limit).
const MAX_DEPTH: usize = 100;

/// The context in which a part of a query document is parsed.
#[derive(Clone, Copy)]
pub struct FilterContext<'s> {
    scope: &'s ParseScope<'s>,
    /// Whether the document is inside `$elemMatch`, where operators on the whole row, such as `$expr`, are not allowed.
    nested: bool,
    depth: usize,
}

impl<'s> FilterContext<'s> {
    /// Returns the query whose time and memory limits apply to the parsing.
    pub fn query(&self) -> &'s Context<'s> {
        self.scope.query
    }

    /// Returns the context one level deeper, or an error if the context already has the maximum depth.
    pub fn deeper(self) -> Result<Self> {
        if self.depth >= MAX_DEPTH {
            return err!(2, "exceeded depth limit of {MAX_DEPTH} levels in the query");
        }
        Ok(FilterContext { depth: self.depth + 1, ..self })
    }

    /// Returns the context inside an element of an array.
    pub fn element(self) -> Result<Self> {
        Ok(FilterContext { nested: true, ..self.deeper()? })
    }
}

/// Parses the predicate of a whole `$match`.
pub fn document(spec: &Value, scope: &ParseScope) -> Result<FilterNode> {
    let Value::Object(object) = spec else {
        return Err(Error::new(15959, "the match filter must be an expression in an object"));
    };
    fields(object, FilterContext { scope, nested: false, depth: 0 })
}

/// Parses a conjunction with one node for each field of the object, except comments.
pub fn fields(object: &Object, context: FilterContext) -> Result<FilterNode> {
    let context = context.deeper()?;
    let mut nodes = Vec::with_capacity(object.len());
    for (name, value) in object.iter() {
        context.query().tick()?;
        let parsed = match name.starts_with('$') {
            true => top_level(name, value, context),
            false => field(name, value, context).map(Some),
        };
        nodes.extend(parsed.map_err(|error| error.within(name.clone()))?);
    }
    Ok(FilterNode::And(nodes))
}

fn field(name: &str, value: &Value, context: FilterContext) -> Result<FilterNode> {
    let path = QueryPath::new(name);
    match value {
        Value::Object(operators) if operand::is_operators(operators) => field::operators(&path, operators, context),
        operand => Ok(FilterNode::Field(path, Test::Compare(Comparison::Eq, operand.clone()))),
    }
}

fn top_level(name: &str, value: &Value, context: FilterContext) -> Result<Option<FilterNode>> {
    Ok(Some(match name {
        "$and" => FilterNode::And(branches(name, value, context)?),
        "$or" => FilterNode::Or(branches(name, value, context)?),
        "$nor" => FilterNode::Nor(branches(name, value, context)?),
        "$comment" => return Ok(None),
        "$expr" | "$jsonSchema" | "$sampleRate" if context.nested => {
            return err!(2, "{name} can only be applied to the top-level document");
        }
        "$expr" => FilterNode::Expr(Arc::new(expr::parse(value, context.scope)?)),
        "$sampleRate" => {
            let rate = value.as_f64().ok_or_else(|| Error::new(2, "argument to $sampleRate must be a numeric type"))?;
            if !(0.0..=1.0).contains(&rate) {
                return Err(Error::new(2, "numeric argument to $sampleRate must be in [0, 1]"));
            }
            let draw = Value::from(Object::from_iter([("$rand", Object::new())]));
            let below = Object::from_iter([("$lt", vec![draw, Value::Double(rate)])]).into();
            FilterNode::Expr(Arc::new(expr::parse(&below, context.scope)?))
        }
        "$jsonSchema" => FilterNode::Schema(Arc::new(FilterSchema::parse(value, context.query())?)),
        "$alwaysTrue" | "$alwaysFalse" => {
            if value.as_f64() != Some(1.0) {
                return err!(2, "{name} must be an integer value of 1");
            }
            FilterNode::Constant(name == "$alwaysTrue")
        }
        "$text" if context.nested => return Err(Error::new(2, "$text can only be applied to the top-level document")),
        "$text" => {
            return Err(Error::new(17313, "$match with $text is only allowed as the first pipeline stage")
                .with_hint("use POST /aggregates/search for text search"));
        }
        "$where" => return Err(Error::new(2, "$where is not allowed in this context")),
        _ => {
            let error = Error::new(
                2,
                format!(
                    "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, \
                     consider using $getField or $setField."
                ),
            );
            let known = TOP_LEVEL.iter().map(|word| word.name).chain(["$comment"]);
            return Err(error.suggesting(name, known));
        }
    }))
}

fn branches(name: &str, value: &Value, context: FilterContext) -> Result<Vec<FilterNode>> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items,
        Value::Array(_) => return Err(Error::new(2, "$and/$or/$nor must be a nonempty array")),
        _ => return err!(2, "{name} must be an array"),
    };
    let branch = |(index, item): (usize, &Value)| {
        let parsed = match item {
            Value::Object(object) => fields(object, context),
            _ => Err(Error::new(2, "$or/$and/$nor entries need to be full objects")),
        };
        parsed.map_err(|error| error.within(index.to_string()))
    };
    items.iter().enumerate().map(branch).collect()
}
