//! Parses the operators of one field, such as `{field: {$gt: 1, $lt: 5}}`.

use super::bits::BitTest;
use super::comparison::Comparison;
use super::node::{Element, FilterNode, Test};
use super::operand;
use super::parse::{FilterContext, fields};
use super::pattern::FilterPattern;
use super::types::TypeSet;
use super::word::OF_FIELD;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::extended_json;
use crate::pipeline::value::query_path::QueryPath;

/// Parses the operators of a field and returns their conjunction.
pub fn operators(path: &QueryPath, object: &Object, context: FilterContext) -> Result<FilterNode> {
    let context = context.deeper()?;
    let mut nodes = Vec::new();
    for (name, value) in object.iter() {
        context.query().tick()?;
        nodes.extend(operator(path, name, value, object, context).map_err(|error| error.within(name.clone()))?);
    }
    Ok(match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => FilterNode::And(nodes),
    })
}

/// Returns the predicate of one operator, or `None` if the operator adds no condition: a `$comment`, or `$options`,
/// which the test of the adjacent `$regex` includes.
fn operator(
    path: &QueryPath,
    name: &str,
    value: &Value,
    all: &Object,
    context: FilterContext,
) -> Result<Option<FilterNode>> {
    if let ("$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte", Some(_)) = (name, FilterPattern::of_value(value)) {
        return err!(2, "Can't have regex as arg to {name}; use $regex to match a pattern");
    }
    let is = |test| FilterNode::Field(path.clone(), test);
    let not = |node| FilterNode::Not(Box::new(node));
    let compare = |comparison| is(Test::Compare(comparison, value.clone()));
    let bits = |test| operand::bits(test, name, value).map(|bits| is(Test::Bits(bits)));
    Ok(Some(match name {
        "$eq" => compare(Comparison::Eq),
        "$ne" => not(compare(Comparison::Eq)),
        "$gt" => compare(Comparison::Gt),
        "$gte" => compare(Comparison::Gte),
        "$lt" => compare(Comparison::Lt),
        "$lte" => compare(Comparison::Lte),
        "$in" => one_of(path, operand::members("$in", value, context.query())?),
        "$nin" => not(one_of(path, operand::members("$nin", value, context.query())?)),
        // As in MongoDB, false, 0 and null are false.
        "$exists" if Expr::truthy(Some(value)) => is(Test::Exists),
        "$exists" => not(is(Test::Exists)),
        "$type" => is(Test::Type(TypeSet::parse(value)?)),
        "$regex" => is(Test::Regex(FilterPattern::of(all)?.compile(context.query())?)),
        extended_json::REGEX => match FilterPattern::of_value(&all.clone().into()) {
            Some(pattern) => is(Test::Regex(pattern.compile(context.query())?)),
            None => return Err(Error::new(2, "unknown operator: $regularExpression")),
        },
        "$options" if all.contains("$regex") => return Ok(None),
        "$options" => return Err(Error::new(2, "$options needs a $regex")),
        "$mod" => {
            let (divisor, remainder) = operand::modulo(value)?;
            is(Test::Mod { divisor, remainder })
        }
        "$size" => is(Test::Size(operand::size(value)?)),
        "$bitsAllSet" => bits(BitTest::AllSet)?,
        "$bitsAllClear" => bits(BitTest::AllClear)?,
        "$bitsAnySet" => bits(BitTest::AnySet)?,
        "$bitsAnyClear" => bits(BitTest::AnyClear)?,
        "$elemMatch" => is(elem_match(value, context)?),
        "$all" => all_of(path, value, context)?,
        "$not" => not(negated(path, value, context)?),
        "$comment" => return Ok(None),
        "$near" | "$nearSphere" | "$geoNear" => {
            return Err(Error::new(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context"));
        }
        _ => {
            let error = Error::new(2, format!("unknown operator: {name}"));
            return Err(error.suggesting(name, OF_FIELD.iter().map(|word| word.name)));
        }
    }))
}

/// Returns the disjunction of the tests.
fn one_of(path: &QueryPath, tests: Vec<Test>) -> FilterNode {
    let mut nodes: Vec<_> = tests.into_iter().map(|test| FilterNode::Field(path.clone(), test)).collect();
    match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => FilterNode::Or(nodes),
    }
}

fn negated(path: &QueryPath, value: &Value, context: FilterContext) -> Result<FilterNode> {
    match value {
        Value::Object(object) if object.is_empty() => Err(Error::new(2, "$not cannot be empty")),
        Value::Object(object) => operators(path, object, context),
        _ => Err(Error::new(2, "$not needs a regex or a document")),
    }
}

fn all_of(path: &QueryPath, value: &Value, context: FilterContext) -> Result<FilterNode> {
    let Value::Array(items) = value else { return Err(Error::new(2, "$all needs an array")) };
    let is_elem_match = |item: &Value| {
        item.as_object().and_then(|object| object.keys().next()).is_some_and(|name| &**name == "$elemMatch")
    };
    let elements = items.first().is_some_and(is_elem_match);
    let mut nodes = Vec::with_capacity(items.len());
    for item in items.iter() {
        let test = match item {
            Value::Object(object) if elements => match object.get("$elemMatch") {
                Some(inner) if object.len() == 1 => elem_match(inner, context)?,
                _ => return Err(Error::new(2, "$all/$elemMatch has to be consistent")),
            },
            _ if elements => return Err(Error::new(2, "$all/$elemMatch has to be consistent")),
            Value::Object(object) if operand::is_operators(object) => match FilterPattern::of_value(item) {
                Some(pattern) => Test::Regex(pattern.compile(context.query())?),
                None => return Err(Error::new(2, "no $ expressions in $all")),
            },
            operand => Test::Compare(Comparison::Eq, operand.clone()),
        };
        nodes.push(FilterNode::Field(path.clone(), test));
    }
    // An empty `$all` matches nothing.
    Ok(if nodes.is_empty() { FilterNode::Constant(false) } else { FilterNode::And(nodes) })
}

fn elem_match(value: &Value, context: FilterContext) -> Result<Test> {
    let Value::Object(object) = value else { return Err(Error::new(2, "$elemMatch needs an Object")) };
    let context = context.element()?;
    let first = object.keys().next().map(|name| &**name);
    let over_values =
        operand::is_operators(object) && !matches!(first, Some("$and" | "$or" | "$nor" | "$where" | "$text"));
    if over_values {
        return Ok(Test::ElemMatchValue(elements(object, context)?));
    }
    Ok(Test::ElemMatchObject(Box::new(fields(object, context)?)))
}

/// Parses the tests that a single element must pass.
fn elements(object: &Object, context: FilterContext) -> Result<Vec<Element>> {
    let context = context.deeper()?;
    // The path is never read, because each test applies to the element itself.
    let path = QueryPath::new("");
    let mut tests = Vec::new();
    for (name, value) in object.iter() {
        tests.extend(operator(&path, name, value, object, context)?.map(of_node));
    }
    Ok(tests)
}

/// Converts a predicate over a path into the corresponding predicate over one element.
fn of_node(node: FilterNode) -> Element {
    match node {
        FilterNode::Field(_, test) => Element::Is(test),
        FilterNode::Not(node) => Element::Not(vec![of_node(*node)]),
        FilterNode::And(nodes) => Element::Not(vec![Element::Not(nodes.into_iter().map(of_node).collect())]),
        FilterNode::Or(nodes) => {
            Element::Not(nodes.into_iter().map(|node| Element::Not(vec![of_node(node)])).collect())
        }
        FilterNode::Constant(answer) if answer => Element::Not(vec![Element::Not(Vec::new())]),
        // Matches nothing. An empty `$all` produces the constant. The operators of a field never produce the other
        // nodes.
        FilterNode::Constant(_) | FilterNode::Nor(_) | FilterNode::Expr(_) | FilterNode::Schema(_) => {
            Element::Not(Vec::new())
        }
    }
}
