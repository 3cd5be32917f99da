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
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::extended_json;
use crate::pipeline::value::query_path::QueryPath;

/// The meaning of one operator: a test, a negated test, a predicate that contains the path, or nothing.
enum FilterOperator {
    Is(Test),
    Not(Test),
    Node(FilterNode),
    /// The operator adds no condition: a `$comment`, or `$options`, which the test of the adjacent `$regex` includes.
    Nothing,
}

/// Parses the operators of a field and returns their conjunction.
pub fn operators(path: &QueryPath, object: &Object, context: FilterContext) -> Result<FilterNode> {
    let context = context.deeper()?;
    let mut nodes = Vec::new();
    for (name, value) in object.iter() {
        context.query().tick()?;
        let parsed = operator(path, name, value, object, context).map_err(|error| error.within(name.clone()))?;
        let node = match parsed {
            FilterOperator::Is(test) => FilterNode::Field(path.clone(), test),
            FilterOperator::Not(test) => FilterNode::Not(Box::new(FilterNode::Field(path.clone(), test))),
            FilterOperator::Node(node) => node,
            FilterOperator::Nothing => continue,
        };
        nodes.push(node);
    }
    Ok(match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => FilterNode::And(nodes),
    })
}

fn operator(
    path: &QueryPath,
    name: &str,
    value: &Value,
    all: &Object,
    context: FilterContext,
) -> Result<FilterOperator> {
    if let ("$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte", Some(_)) = (name, FilterPattern::of_value(value)) {
        return err!(2, "Can't have regex as arg to {name}; use $regex to match a pattern");
    }
    let compare = |comparison| Test::Compare(comparison, value.clone());
    Ok(match name {
        "$eq" => FilterOperator::Is(compare(Comparison::Eq)),
        "$ne" => FilterOperator::Not(compare(Comparison::Eq)),
        "$gt" => FilterOperator::Is(compare(Comparison::Gt)),
        "$gte" => FilterOperator::Is(compare(Comparison::Gte)),
        "$lt" => FilterOperator::Is(compare(Comparison::Lt)),
        "$lte" => FilterOperator::Is(compare(Comparison::Lte)),
        "$in" => one_of(path, operand::members("$in", value, context.query())?),
        "$nin" => match one_of(path, operand::members("$nin", value, context.query())?) {
            FilterOperator::Is(test) => FilterOperator::Not(test),
            FilterOperator::Node(node) => FilterOperator::Node(FilterNode::Not(Box::new(node))),
            other => other,
        },
        "$exists" if is_true(value) => FilterOperator::Is(Test::Exists),
        "$exists" => FilterOperator::Not(Test::Exists),
        "$type" => FilterOperator::Is(Test::Type(TypeSet::parse(value)?)),
        "$regex" => FilterOperator::Is(Test::Regex(FilterPattern::of(all)?.compile(context.query())?)),
        extended_json::REGEX => match FilterPattern::of_value(&all.clone().into()) {
            Some(pattern) => FilterOperator::Is(Test::Regex(pattern.compile(context.query())?)),
            None => return Err(Error::new(2, "unknown operator: $regularExpression")),
        },
        "$options" if all.contains("$regex") => FilterOperator::Nothing,
        "$options" => return Err(Error::new(2, "$options needs a $regex")),
        "$mod" => {
            let (divisor, remainder) = operand::modulo(value)?;
            FilterOperator::Is(Test::Mod { divisor, remainder })
        }
        "$size" => FilterOperator::Is(Test::Size(operand::size(value)?)),
        "$bitsAllSet" => FilterOperator::Is(Test::Bits(operand::bits(BitTest::AllSet, name, value)?)),
        "$bitsAllClear" => FilterOperator::Is(Test::Bits(operand::bits(BitTest::AllClear, name, value)?)),
        "$bitsAnySet" => FilterOperator::Is(Test::Bits(operand::bits(BitTest::AnySet, name, value)?)),
        "$bitsAnyClear" => FilterOperator::Is(Test::Bits(operand::bits(BitTest::AnyClear, name, value)?)),
        "$elemMatch" => FilterOperator::Is(elem_match(value, context)?),
        "$all" => FilterOperator::Node(all_of(path, value, context)?),
        "$not" => FilterOperator::Node(FilterNode::Not(Box::new(negated(path, value, context)?))),
        "$comment" => FilterOperator::Nothing,
        "$near" | "$nearSphere" | "$geoNear" => {
            return Err(Error::new(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context"));
        }
        _ => {
            let error = Error::new(2, format!("unknown operator: {name}"));
            return Err(error.suggesting(name, OF_FIELD.iter().map(|word| word.name)));
        }
    })
}

/// Returns the disjunction of the tests.
fn one_of(path: &QueryPath, mut tests: Vec<Test>) -> FilterOperator {
    match tests.len() {
        1 => FilterOperator::Is(tests.swap_remove(0)),
        _ => FilterOperator::Node(FilterNode::Or(
            tests.into_iter().map(|test| FilterNode::Field(path.clone(), test)).collect(),
        )),
    }
}

/// Converts a value to a flag as MongoDB does: false, 0 and null are false.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Int(number) => *number != 0,
        Value::Double(number) => *number != 0.0,
        Value::Decimal(number) => !number.is_zero(),
        Value::Date(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => true,
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
        let test = match operator(&path, name, value, object, context)? {
            FilterOperator::Is(test) => Element::Is(test),
            FilterOperator::Not(test) => Element::Not(vec![Element::Is(test)]),
            FilterOperator::Node(node) => of_node(node),
            FilterOperator::Nothing => continue,
        };
        tests.push(test);
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
