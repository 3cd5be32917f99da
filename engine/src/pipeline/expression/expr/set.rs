//! Operators that treat arrays as sets. As in MongoDB, unions and intersections are sorted.

use std::collections::HashSet;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use super::operator::ArgumentForm::{AnyNumber, Exactly, Own};
use super::operator::{ExprOperator, OperatorArguments, OperatorCall, name_table, positional};
use super::{Answer, Env, Expr, NULL, ParseScope, some};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::{measure, measure_all};
use crate::pipeline::value::sorting::sorted;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns whether no item is false, null or zero.
    "$allElementsTrue"("array") [r#"{"$allElementsTrue":["$a"]}"#, r#"{"a":[1,true,"x"]}"#, "true"]:
        Exactly(1), all_elements_true;
    /// Returns whether at least one item is neither false nor null nor zero.
    "$anyElementTrue"("array") [r#"{"$anyElementTrue":["$a"]}"#, r#"{"a":[0,null]}"#, "false"]:
        Exactly(1), any_element_true;
    /// Returns the distinct items of the first array that the second array does not contain.
    "$setDifference"("array, array") [r#"{"$setDifference":["$a",[2]]}"#, r#"{"a":[1,2,1]}"#, "[1]"]:
        Exactly(2), difference;
    /// Returns whether all arrays contain the same distinct items.
    "$setEquals"("array, array...") [r#"{"$setEquals":["$a",[2,1]]}"#, r#"{"a":[1,2,2]}"#, "true"]:
        Own(parse_equals), equals;
    /// Returns the distinct items that all arrays contain.
    "$setIntersection"("array...") [r#"{"$setIntersection":["$a",[2,3]]}"#, r#"{"a":[1,2,2]}"#, "[2]"]:
        AnyNumber, intersection;
    /// Returns whether the second array contains all items of the first.
    "$setIsSubset"("array, array") [r#"{"$setIsSubset":["$a",[1,2,3]]}"#, r#"{"a":[1,2]}"#, "true"]:
        Exactly(2), is_subset;
    /// Returns the distinct items of all arrays.
    "$setUnion"("array...") [r#"{"$setUnion":["$a",[2,3]]}"#, r#"{"a":[1,2]}"#, "[1,2,3]"]:
        AnyNumber, union;
};

type Hashed<'v> = HashSet<&'v Value, FxBuildHasher>;

/// The position of an argument that must be an array. The error for an argument of another type names the position.
#[derive(Clone, Copy)]
enum SetArgument {
    Only,
    First,
    Second,
    OneOfMany,
}

fn array(call: &OperatorCall, value: Value, code: i32, argument: SetArgument) -> Result<Arc<Vec<Value>>> {
    let (name, found) = match value {
        Value::Array(items) => return Ok(items),
        ref other => (call.name(), other.type_name()),
    };
    let message = match argument {
        SetArgument::Only => format!("{name}'s argument must be an array, but is {found}"),
        SetArgument::First => format!("both operands of {name} must be arrays. First argument is of type: {found}"),
        SetArgument::Second => format!("both operands of {name} must be arrays. Second argument is of type: {found}"),
        SetArgument::OneOfMany => format!("All operands of {name} must be arrays. One argument is of type: {found}"),
    };
    Err(Error::new(code, message))
}

fn hashed<'v>(items: &'v [Value], env: &Env) -> Result<Hashed<'v>> {
    env.query.charge(size_of_val(items))?;
    let mut set = Hashed::default();
    for item in items {
        env.query.tick()?;
        measure(item, env.query)?;
        set.insert(item);
    }
    Ok(set)
}

/// Returns the distinct items in the order of their first appearance.
fn distinct(items: &[Value], env: &Env) -> Result<Vec<Value>> {
    let mut seen = Hashed::default();
    env.query.charge(2 * size_of_val(items))?;
    let mut kept = Vec::new();
    for item in items {
        env.query.tick()?;
        measure(item, env.query)?;
        if seen.insert(item) {
            kept.push(item.clone());
        }
    }
    Ok(kept)
}

fn all_elements_true(call: &OperatorCall, env: &Env) -> Answer {
    let items = array(call, call.value(0, env)?, 17040, SetArgument::Only)?;
    some(items.iter().all(|item| Expr::truthy(Some(item))))
}

fn any_element_true(call: &OperatorCall, env: &Env) -> Answer {
    let items = array(call, call.value(0, env)?, 17041, SetArgument::Only)?;
    some(items.iter().any(|item| Expr::truthy(Some(item))))
}

fn difference(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |a, b| {
        let a = array(call, a.clone(), 17048, SetArgument::First)?;
        let b = array(call, b.clone(), 17049, SetArgument::Second)?;
        let excluded = hashed(&b, env)?;
        measure_all(a.iter(), env.query)?;
        let rest: Vec<Value> = a.iter().filter(|item| !excluded.contains(item)).cloned().collect();
        some(distinct(&rest, env)?)
    })
}

fn parse_equals(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let values = positional(spec, scope)?;
    if values.len() < 2 {
        return err!(17045, "$setEquals needs at least two arguments had: {}", values.len());
    }
    // A constant that is not an array is an error regardless of the other arguments.
    for (index, value) in values.iter().enumerate() {
        if let Some(constant) = value.as_ref().and_then(Expr::constant).filter(|constant| constant.as_array().is_none())
        {
            let found = constant.type_name();
            let message =
                format!("All operands of $setEquals must be arrays. {}-th argument is of type: {found}", index + 1);
            return Err(Error::new(5_887_502, message));
        }
    }
    Ok(values.into())
}

fn equals(call: &OperatorCall, env: &Env) -> Answer {
    let first = array(call, call.value(0, env)?, 17044, SetArgument::OneOfMany)?;
    let first = hashed(&first, env)?;
    let mut same = true;
    for index in 1..call.len() {
        let other = array(call, call.value(index, env)?, 17044, SetArgument::OneOfMany)?;
        same = same && hashed(&other, env)? == first;
    }
    some(same)
}

fn intersection(call: &OperatorCall, env: &Env) -> Answer {
    let mut kept: Option<Vec<Value>> = None;
    for index in operands(call) {
        let value = call.value(index, env)?;
        if value.is_null() {
            return NULL;
        }
        let items = array(call, value, 17047, SetArgument::OneOfMany)?;
        kept = Some(match kept {
            None => distinct(&items, env)?,
            Some(mut kept) => {
                let other = hashed(&items, env)?;
                kept.retain(|item| other.contains(item));
                kept
            }
        });
    }
    let kept = kept.unwrap_or_default();
    some(sorted(kept, env.query, |item| measure(item, env.query), Value::cmp)?)
}

/// Returns the indexes of the arguments in the order in which MongoDB evaluates the arguments: constants last.
fn operands(call: &OperatorCall) -> impl Iterator<Item = usize> {
    let is_constant = |index: &usize| call.expr(*index).is_some_and(|operand| operand.constant().is_some());
    let varying = (0..call.len()).filter(move |index| !is_constant(index));
    varying.chain((0..call.len()).filter(is_constant))
}

fn is_subset(call: &OperatorCall, env: &Env) -> Answer {
    let a = array(call, call.value(0, env)?, 17046, SetArgument::First)?;
    let b = array(call, call.value(1, env)?, 17042, SetArgument::Second)?;
    let superset = hashed(&b, env)?;
    measure_all(a.iter(), env.query)?;
    some(a.iter().all(|item| superset.contains(item)))
}

fn union(call: &OperatorCall, env: &Env) -> Answer {
    let mut all = Vec::new();
    for index in operands(call) {
        let value = call.value(index, env)?;
        if value.is_null() {
            return NULL;
        }
        let items = array(call, value, 17043, SetArgument::OneOfMany)?;
        env.query.charge(size_of_val(items.as_slice()))?;
        all.extend_from_slice(&items);
    }
    some(sorted(distinct(&all, env)?, env.query, |item| measure(item, env.query), Value::cmp)?)
}
