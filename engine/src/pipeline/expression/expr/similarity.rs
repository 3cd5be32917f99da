//! Operators that compare two vectors. A vector is an array of numbers.

use super::operator::ArgumentForm::Own;
use super::operator::{
    ExprOperator, NamedArguments, OperatorArguments, OperatorCall, exact_count, name_table, named_specs, positional,
};
use super::{Answer, Env, ParseScope, some};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};

/// The arguments of an operator that compares two vectors.
const VECTORS: &str = "vectors: array, score?: boolean";

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the cosine of the angle between two vectors, from -1 to 1.
    "$similarityCosine"(VECTORS) [r#"{"$similarityCosine":["$a",[3,4]]}"#, r#"{"a":[4,3]}"#, "0.96"]
        .remark(
            "`{vectors: [a, b], score: true}` returns a score from 0 to 1. The cosine with a vector of zeros is 0."
        ):
        Own(|spec, scope| parse("$similarityCosine", spec, scope)),
        |call, env| similarity(call, env, cosine, |cosine| (1.0 + cosine) / 2.0);
    /// Returns the dot product of two vectors.
    "$similarityDotProduct"(VECTORS) [r#"{"$similarityDotProduct":["$a",[4,5,6]]}"#, r#"{"a":[1,2,3]}"#, "32.0"]
        .remark("With `score: true`, the result is from 0 to 1 for vectors of Euclidean length 1."):
        Own(|spec, scope| parse("$similarityDotProduct", spec, scope)),
        |call, env| similarity(call, env, dot_product, |product| (1.0 + product) / 2.0);
    /// Returns the Euclidean distance between two vectors.
    "$similarityEuclidean"(VECTORS)
        [r#"{"$similarityEuclidean":{"vectors":["$a",[0,4]],"score":true}}"#, r#"{"a":[3,0]}"#, "0.16666666666666666"]
        .remark("With `score: true`, the result is 1 for equal vectors, and approaches 0 for distant ones."):
        Own(|spec, scope| parse("$similarityEuclidean", spec, scope)),
        |call, env| similarity(call, env, distance, |distance| 1.0 / (1.0 + distance));
};

static FULL: NamedArguments =
    NamedArguments { not_object: 40414, unknown: 40415, fields: &[("vectors", Some(40414)), ("score", None)] };

/// Parses two vectors in an array, or in an object that may also request a score.
fn parse(name: &str, spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let (vectors, score) = match spec {
        Value::Object(_) => {
            let specs = named_specs(name, &FULL, spec)?;
            (specs[0].unwrap_or(&Value::Null), specs[1])
        }
        concise => (concise, None),
    };
    let score = match score {
        None => false,
        Some(Value::Bool(score)) => *score,
        Some(other) => {
            let message = format!("'score' of {name} must be a boolean, found: {}", other.type_name());
            return Err(Error::new(14, message).within("score"));
        }
    };
    let values = positional(vectors, scope)?;
    exact_count(name, 2, values.len())?;
    Ok(OperatorArguments { values, prepared: Some(Box::new(score)) })
}

fn similarity(call: &OperatorCall, env: &Env, measure: fn(&[f64], &[f64]) -> f64, score: fn(f64) -> f64) -> Answer {
    call.of_pair(env, |left, right| {
        let (Some(left), Some(right)) = (left.as_array(), right.as_array()) else {
            let (name, left, right) = (call.name(), left.type_name(), right.type_name());
            return err!(10_413_200, "{name} needs two arrays of numbers, found: {left} and {right}");
        };
        if left.len() != right.len() {
            let (name, left, right) = (call.name(), left.len(), right.len());
            return err!(10_413_202, "{name} needs arrays of the same length, found: {left} and {right} items");
        }
        let left = numbers(call, env, left, "first", 10_413_203)?;
        let right = numbers(call, env, right, "second", 10_413_204)?;
        let result = measure(&left, &right);
        some(if call.prepared() == Some(&true) { score(result) } else { result })
    })
}

/// Converts the items of an array to doubles. `place` and `code` are the place of the array among the arguments and the
/// code of the error for an item that is not a number.
fn numbers(call: &OperatorCall, env: &Env, items: &[Value], place: &str, code: i32) -> Result<Vec<f64>> {
    env.query.charge(items.len().saturating_mul(size_of::<f64>()))?;
    let number = |(index, item): (usize, &Value)| {
        item.as_f64().ok_or_else(|| {
            let (name, found) = (call.name(), item.type_name());
            let found = format!("found {found} at index {index} of the {place} array");
            Error::new(code, format!("{name} needs arrays of numbers, {found}"))
        })
    };
    items.iter().enumerate().map(number).collect()
}

fn dot_product(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).fold(0.0, |sum, (left, right)| sum + left * right)
}

fn distance(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).fold(0.0, |distance: f64, (left, right)| distance.hypot(left - right))
}

/// Returns the cosine of the angle between two vectors, or 0 if one of the vectors has only zeros.
fn cosine(left: &[f64], right: &[f64]) -> f64 {
    // The scaling keeps the angle, and prevents an overflow of the squares.
    let (left, right) = (scaled(left), scaled(right));
    let lengths = dot_product(&left, &left).sqrt() * dot_product(&right, &right).sqrt();
    if lengths == 0.0 { 0.0 } else { (dot_product(&left, &right) / lengths).clamp(-1.0, 1.0) }
}

fn scaled(vector: &[f64]) -> Vec<f64> {
    let greatest = vector.iter().fold(0.0, |greatest: f64, item| greatest.max(item.abs()));
    vector.iter().map(|item| if greatest == 0.0 { 0.0 } else { item / greatest }).collect()
}
