//! Parses the operators of one field, such as `{field: {$gt: 1, $lt: 5}}`.

use super::bits::BitTest;
use super::comparison::Comparison;
use super::node::{Element, Node, Test};
use super::operand;
use super::parse::{FilterContext, fields};
use super::pattern::Pattern;
use super::types::TypeSet;
use super::word::OF_FIELD;
use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::extended;
use crate::pipeline::value::hint;
use crate::pipeline::value::query_path::Path;

/// The meaning of one operator: a test, a negated test, or a predicate that needs the path itself.
enum Operator {
    Is(Test),
    Not(Test),
    Node(Node),
    /// A comment, which has no effect.
    Nothing,
}

/// Parses the operators of a field and returns their conjunction.
pub fn operators(path: &Path, object: &Object, context: FilterContext) -> Result<Node> {
    let context = context.deeper()?;
    let mut nodes = Vec::new();
    for (name, value) in object.iter() {
        context.query().tick()?;
        let parsed = operator(path, name, value, object, context).map_err(|error| error.within(name.clone()))?;
        let node = match parsed {
            Operator::Is(test) => Node::Field(path.clone(), test),
            Operator::Not(test) => Node::Not(Box::new(Node::Field(path.clone(), test))),
            Operator::Node(node) => node,
            Operator::Nothing => continue,
        };
        nodes.push(node);
    }
    Ok(match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => Node::And(nodes),
    })
}

fn operator(path: &Path, name: &str, value: &Value, all: &Object, context: FilterContext) -> Result<Operator> {
    if let ("$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte", Some(_)) = (name, Pattern::of_value(value)) {
        let message = format!("Can't have regex as arg to {name}; use $regex to match a pattern");
        return Err(Error::new(2, message));
    }
    let compare = |comparison| Test::Compare(comparison, value.clone());
    Ok(match name {
        "$eq" => Operator::Is(compare(Comparison::Eq)),
        "$ne" => Operator::Not(compare(Comparison::Eq)),
        "$gt" => Operator::Is(compare(Comparison::Gt)),
        "$gte" => Operator::Is(compare(Comparison::Gte)),
        "$lt" => Operator::Is(compare(Comparison::Lt)),
        "$lte" => Operator::Is(compare(Comparison::Lte)),
        "$in" => one_of(path, operand::members("$in", value, context.query())?),
        "$nin" => match one_of(path, operand::members("$nin", value, context.query())?) {
            Operator::Is(test) => Operator::Not(test),
            Operator::Node(node) => Operator::Node(Node::Not(Box::new(node))),
            other => other,
        },
        "$exists" if is_true(value) => Operator::Is(Test::Exists),
        "$exists" => Operator::Not(Test::Exists),
        "$type" => Operator::Is(Test::Type(TypeSet::parse(value)?)),
        "$regex" => Operator::Is(Test::Regex(Pattern::of(all)?.compile(context.query())?)),
        extended::REGEX => match Pattern::of_value(&all.clone().into()) {
            Some(pattern) => Operator::Is(Test::Regex(pattern.compile(context.query())?)),
            None => return Err(Error::new(2, "unknown operator: $regularExpression")),
        },
        "$options" if all.contains("$regex") => Operator::Nothing,
        "$options" => return Err(Error::new(2, "$options needs a $regex")),
        "$mod" => {
            let (divisor, remainder) = operand::modulo(value)?;
            Operator::Is(Test::Mod { divisor, remainder })
        }
        "$size" => Operator::Is(Test::Size(operand::size(value)?)),
        "$bitsAllSet" => Operator::Is(Test::Bits(operand::bits(BitTest::AllSet, name, value)?)),
        "$bitsAllClear" => Operator::Is(Test::Bits(operand::bits(BitTest::AllClear, name, value)?)),
        "$bitsAnySet" => Operator::Is(Test::Bits(operand::bits(BitTest::AnySet, name, value)?)),
        "$bitsAnyClear" => Operator::Is(Test::Bits(operand::bits(BitTest::AnyClear, name, value)?)),
        "$elemMatch" => Operator::Is(elem_match(value, context)?),
        "$all" => Operator::Node(all_of(path, value, context)?),
        "$not" => Operator::Node(Node::Not(Box::new(negated(path, value, context)?))),
        "$comment" => Operator::Nothing,
        "$near" | "$nearSphere" | "$geoNear" => {
            return Err(Error::new(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context"));
        }
        _ => {
            let error = Error::new(2, format!("unknown operator: {name}"));
            return Err(match hint::did_you_mean(name, OF_FIELD.iter().map(|word| word.name)) {
                Some(hint) => error.with_hint(hint),
                None => error,
            });
        }
    })
}

/// Returns the disjunction of the tests.
fn one_of(path: &Path, mut tests: Vec<Test>) -> Operator {
    match tests.len() {
        1 => Operator::Is(tests.swap_remove(0)),
        _ => Operator::Node(Node::Or(tests.into_iter().map(|test| Node::Field(path.clone(), test)).collect())),
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

fn negated(path: &Path, value: &Value, context: FilterContext) -> Result<Node> {
    match value {
        Value::Object(object) if object.is_empty() => Err(Error::new(2, "$not cannot be empty")),
        Value::Object(object) => operators(path, object, context),
        _ => Err(Error::new(2, "$not needs a regex or a document")),
    }
}

fn all_of(path: &Path, value: &Value, context: FilterContext) -> Result<Node> {
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
            Value::Object(object) if operand::is_operators(object) => match Pattern::of_value(item) {
                Some(pattern) => Test::Regex(pattern.compile(context.query())?),
                None => return Err(Error::new(2, "no $ expressions in $all")),
            },
            operand => Test::Compare(Comparison::Eq, operand.clone()),
        };
        nodes.push(Node::Field(path.clone(), test));
    }
    // An empty `$all` matches nothing.
    Ok(if nodes.is_empty() { Node::Constant(false) } else { Node::And(nodes) })
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
    let path = Path::new("");
    let mut tests = Vec::new();
    for (name, value) in object.iter() {
        let test = match operator(&path, name, value, object, context)? {
            Operator::Is(test) => Element::Is(test),
            Operator::Not(test) => Element::Not(vec![Element::Is(test)]),
            Operator::Node(node) => of_node(node),
            Operator::Nothing => continue,
        };
        tests.push(test);
    }
    Ok(tests)
}

/// Converts a predicate over a path into the same predicate over one element.
fn of_node(node: Node) -> Element {
    match node {
        Node::Field(_, test) => Element::Is(test),
        Node::Not(node) => Element::Not(vec![of_node(*node)]),
        Node::And(nodes) => Element::Not(vec![Element::Not(nodes.into_iter().map(of_node).collect())]),
        Node::Or(nodes) => Element::Not(nodes.into_iter().map(|node| Element::Not(vec![of_node(node)])).collect()),
        Node::Constant(answer) if answer => Element::Not(vec![Element::Not(Vec::new())]),
        // The operators of a single field produce no other nodes. The fallback matches nothing.
        Node::Constant(_) | Node::Nor(_) | Node::Expr(_) | Node::Schema(_) => Element::Not(Vec::new()),
    }
}
