//! Operators that build and rearrange arrays.

use std::sync::Arc;

use super::operator::ArgumentForm::{Between, Exactly, Own};
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named_specs};
use super::{Answer, Env, Expr, NULL, ParseScope, parse, some};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::{measure, measure_all};
use crate::pipeline::value::number::whole_i32;
use crate::pipeline::value::sort_by::{SortSpec, parse_sort};
use crate::pipeline::value::sorting::sorted;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the integers from the start up to, but not including, the end.
    "$range"("start: integer, end: integer, step?: integer") [r#"{"$range":[0,"$n",2]}"#, r#"{"n":5}"#, "[0,2,4]"]:
        Between(2, 3), range;
    /// Returns the items in reverse order.
    "$reverseArray"("array") [r#"{"$reverseArray":"$a"}"#, r#"{"a":[1,2]}"#, "[2,1]"]:
        Exactly(1), reverse;
    /// Returns the first `n` items, the last `-n` items if `n` is negative, or at most `n` items from a position.
    "$slice"("array, position?: integer, n: integer") [r#"{"$slice":["$a",-2]}"#, r#"{"a":[1,2,3]}"#, "[2,3]"]:
        Between(2, 3), slice;
    /// Sorts the items as whole values or by their fields.
    "$sortArray"("input: array, sortBy: object | integer")
        [r#"{"$sortArray":{"input":"$a","sortBy":-1}}"#, r#"{"a":[1,3,2]}"#, "[3,2,1]"]:
        Own(parse_sort_array), sort_array;
    /// Returns one array for each index; the array contains the item at the index from every input.
    "$zip"("inputs: array, useLongestLength?: boolean, defaults?: array")
        [r#"{"$zip":{"inputs":["$a",["x","y"]]}}"#, r#"{"a":[1,2]}"#, r#"[[1,"x"],[2,"y"]]"#]:
        Own(parse_zip), zip;
};

fn range(call: &OperatorCall, env: &Env) -> Answer {
    let start = range_bound(&call.value(0, env)?, "starting value", 34443)?;
    let end = range_bound(&call.value(1, env)?, "ending value", 34445)?;
    let step = if call.has_argument(2) { range_bound(&call.value(2, env)?, "step value", 34447)? } else { 1 };
    if step == 0 {
        return Err(Error::new(34449, "$range requires a non-zero step value"));
    }
    let distance = if step > 0 { i64::from(end) - i64::from(start) } else { i64::from(start) - i64::from(end) };
    let count = usize::try_from(distance).map_or(0, |distance| distance.div_ceil(step.unsigned_abs() as usize));
    env.query.charge(count.saturating_mul(size_of::<Value>()))?;
    let items = (0..count as i64).map(|index| Value::Int(i64::from(start) + index * i64::from(step)));
    some(items.collect::<Vec<_>>())
}

/// Parses a bound or the step of `$range`. The error code is `code` for a value that is not a number, and `code + 1`
/// for a number that is not a 32-bit integer.
fn range_bound(value: &Value, what: &str, code: i32) -> Result<i32> {
    if !value.is_number() {
        return err!(code, "$range requires a numeric {what}, found value of type: {}", value.type_name());
    }
    whole_i32(value).ok_or_else(|| {
        let message = format!(
            "$range requires a {what} that can be represented as a 32-bit integer, found value: {}",
            excerpt(value)
        );
        Error::new(code + 1, message)
    })
}

fn reverse(call: &OperatorCall, env: &Env) -> Answer {
    let complaint = "The argument to $reverseArray must be an array, but was of type:";
    let Some(items) = call.array(0, 34435, complaint, env)? else { return NULL };
    env.query.charge(size_of_val(items.as_slice()))?;
    some(items.iter().rev().cloned().collect::<Vec<_>>())
}

fn slice(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |array, second| {
        let Value::Array(items) = array else {
            return err!(28724, "First argument to $slice must be an array, but is of type: {}", array.type_name());
        };
        let second = slice_number(second, "Second", 28725)?;
        let len = items.len();
        let from_end = |index: i64| len.saturating_sub(index.unsigned_abs() as usize);
        let (start, end) = if call.has_argument(2) {
            let third = call.value(2, env)?;
            if third.is_null() {
                return NULL;
            }
            let count = slice_number(&third, "Third", 28727)?;
            if count <= 0 {
                return err!(28729, "Third argument to $slice must be positive: {count}");
            }
            let start = if second < 0 { from_end(second) } else { len.min(second as usize) };
            (start, len.min(start + count as usize))
        } else if second < 0 {
            (from_end(second), len)
        } else {
            (0, len.min(second as usize))
        };
        env.query.charge((end - start) * size_of::<Value>())?;
        some(items[start..end].to_vec())
    })
}

fn slice_number(value: &Value, which: &str, code: i32) -> Result<i64> {
    if !value.is_number() {
        return err!(code, "{which} argument to $slice must be numeric, but is of type: {}", value.type_name());
    }
    whole_i32(value).map(i64::from).ok_or_else(|| {
        Error::new(
            code + 1,
            format!("{which} argument to $slice can't be represented as a 32-bit integer: {}", excerpt(value)),
        )
    })
}

/// The sort order of a `$sortArray`.
enum ArrayOrder {
    Whole { ascending: bool },
    Fields(SortSpec),
}

static SORT_ARRAY: NamedArguments = NamedArguments {
    not_object: 2_942_500,
    unknown: 2_942_501,
    fields: &[("input", Some(2_942_502)), ("sortBy", Some(2_942_503))],
};

fn parse_sort_array(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let specs = named_specs("$sortArray", &SORT_ARRAY, spec)?;
    let input = specs[0].map(|input| parse(input, scope)).transpose()?;
    let order = match specs[1] {
        Some(fields @ Value::Object(_)) => ArrayOrder::Fields(parse_sort(fields, 2_942_507).map_err(|mut error| {
            if matches!(error.code, crate::pipeline::value::error::PipelineErrorCode::Number(15974..=15976)) {
                error.code = crate::pipeline::value::error::PipelineErrorCode::Number(2_942_505);
            }
            error
        })?),
        Some(number) if number.is_number() => match number.as_f64() {
            Some(1.0) => ArrayOrder::Whole { ascending: true },
            Some(-1.0) => ArrayOrder::Whole { ascending: false },
            _ => return err!(2_942_506, "The $sortArray sort direction must be 1 or -1: {}", excerpt(number)),
        },
        other => {
            let found = other.map_or("missing", Value::type_name);
            return err!(2_942_507, "The $sortArray sortBy must be a number or an object, found: {found}");
        }
    };
    Ok(OperatorArguments { values: vec![input], prepared: Some(Box::new(order)) })
}

fn sort_array(call: &OperatorCall, env: &Env) -> Answer {
    let complaint = "The input argument to $sortArray must be an array, but was of type:";
    let Some(items) = call.array(0, 2_942_504, complaint, env)? else { return NULL };
    env.query.charge(2 * size_of_val(items.as_slice()))?;
    match call.prepared() {
        Some(ArrayOrder::Fields(sort)) => {
            let keyed: Vec<_> = items.iter().map(|item| (sort.plain_key(item), item)).collect();
            let weigh = |(key, _): &(Vec<Option<Value>>, _)| measure_all(key.iter().flatten(), env.query);
            let keyed = sorted(keyed, env.query, weigh, |(a, _), (b, _)| sort.compare(a, b))?;
            some(keyed.into_iter().map(|(_, item)| item.clone()).collect::<Vec<_>>())
        }
        Some(ArrayOrder::Whole { ascending: false }) => {
            some(sorted(Arc::unwrap_or_clone(items), env.query, |item| measure(item, env.query), |a, b| b.cmp(a))?)
        }
        _ => some(sorted(Arc::unwrap_or_clone(items), env.query, |item| measure(item, env.query), Value::cmp)?),
    }
}

/// The number of inputs of a `$zip`, and whether the longest input determines the length of the result.
struct Zip {
    inputs: usize,
    longest: bool,
}

fn parse_zip(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let Value::Object(object) = spec else {
        return err!(34460, "$zip only supports an object as an argument, found {}", spec.type_name());
    };
    let (mut inputs, mut defaults, mut longest) = (Vec::new(), Vec::new(), false);
    for (name, argument) in object.iter() {
        match (&**name, argument) {
            ("inputs", Value::Array(items)) => inputs = parse_all(items, scope)?,
            ("inputs", other) => {
                return err!(34461, "inputs must be an array of expressions, found {}", other.type_name());
            }
            ("defaults", Value::Array(items)) => defaults = parse_all(items, scope)?,
            ("defaults", other) => {
                return err!(34462, "defaults must be an array of expressions, found {}", other.type_name());
            }
            ("useLongestLength", Value::Bool(flag)) => longest = *flag,
            ("useLongestLength", other) => {
                return err!(34463, "useLongestLength must be a bool, found {}", other.type_name());
            }
            (stray, _) => return err!(34464, "$zip found an unknown argument: {stray}"),
        }
    }
    if inputs.is_empty() {
        return Err(Error::new(34465, "$zip requires at least one input array"));
    }
    if !defaults.is_empty() && !longest {
        return Err(Error::new(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(Error::new(34467, "defaults and inputs must have the same length"));
    }
    let zip = Zip { inputs: inputs.len(), longest };
    inputs.append(&mut defaults);
    Ok(OperatorArguments { values: inputs, prepared: Some(Box::new(zip)) })
}

fn parse_all(items: &[Value], scope: &ParseScope) -> Result<Vec<Option<Expr>>> {
    items.iter().map(|item| parse(item, scope).map(Some)).collect()
}

fn zip(call: &OperatorCall, env: &Env) -> Answer {
    let Some(zip) = call.prepared::<Zip>() else { return NULL };
    let mut inputs = Vec::with_capacity(zip.inputs);
    for index in 0..zip.inputs {
        match call.value(index, env)? {
            Value::Null => return NULL,
            Value::Array(items) => inputs.push(items),
            other => return err!(34468, "$zip found a non-array expression in input: {}", other.type_name()),
        }
    }
    let lengths = inputs.iter().map(|items| items.len());
    let len = if zip.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let defaults: Vec<Value> =
        (0..zip.inputs).map(|index| call.value(zip.inputs + index, env)).collect::<Result<_>>()?;
    env.query.charge(len.saturating_mul((zip.inputs + 1) * size_of::<Value>()))?;
    let mut rows = Vec::with_capacity(len);
    for place in 0..len {
        env.query.tick()?;
        let row = inputs.iter().zip(&defaults);
        rows.push(row.map(|(items, default)| items.get(place).unwrap_or(default).clone()).collect::<Vec<_>>().into());
    }
    some(rows)
}
