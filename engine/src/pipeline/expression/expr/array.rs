//! Operators that read arrays.

use std::cmp::Ordering;
use std::sync::Arc;

use super::operator::ArgumentForm::{AnyNumber, Between, Exactly, Named as ByName};
use super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::measure;
use crate::pipeline::value::number::{parse_count, whole_i32};
use crate::pipeline::value::sorting::sorted;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the item at an index; negative indexes count from the end.
    "$arrayElemAt"("array, index: integer") [r#"{"$arrayElemAt":["$a",-1]}"#, r#"{"a":[1,2]}"#, "2"]:
        Exactly(2), element_at;
    /// Returns an object built from `[name, value]` or `{k, v}` items.
    "$arrayToObject"("array") [r#"{"$arrayToObject":"$a"}"#, r#"{"a":[["x",1],["y",2]]}"#, r#"{"x":1,"y":2}"#]:
        Exactly(1), array_to_object;
    /// Concatenates the arrays.
    "$concatArrays"("array...") [r#"{"$concatArrays":["$a",[3]]}"#, r#"{"a":[1,2]}"#, "[1,2,3]"]:
        AnyNumber, concat_arrays;
    /// Returns the first item.
    "$first"("array") [r#"{"$first":"$a"}"#, r#"{"a":[1,2]}"#, "1"]:
        Exactly(1), |call, env| end(call, env, 28689, |items| items.first());
    /// Returns the first items.
    "$firstN"("input: array, n: integer") [r#"{"$firstN":{"input":"$a","n":2}}"#, r#"{"a":[1,2,3]}"#, "[1,2]"]:
        ByName(&COUNTED), |call, env| counted(call, env, |items, count| Ok(items[..count.min(items.len())].to_vec()));
    /// Returns whether the array contains the value.
    "$in"("value: any, array") [r#"{"$in":[2,"$a"]}"#, r#"{"a":[1,2]}"#, "true"]: Exactly(2), is_in;
    /// Returns the index of a value's first occurrence, or -1.
    "$indexOfArray"("array, value: any, start?: integer, end?: integer")
        [r#"{"$indexOfArray":["$a",2]}"#, r#"{"a":[1,2]}"#, "1"]: Between(2, 4), index_of;
    /// Returns whether the value is an array.
    "$isArray"("value: any") [r#"{"$isArray":"$a"}"#, r#"{"a":[]}"#, "true"]:
        Exactly(1), |call, env| some(matches!(call.field(0, env)?, Some(Value::Array(_))));
    /// Returns the last item.
    "$last"("array") [r#"{"$last":"$a"}"#, r#"{"a":[1,2]}"#, "2"]:
        Exactly(1), |call, env| end(call, env, 28689, |items| items.last());
    /// Returns the last items.
    "$lastN"("input: array, n: integer") [r#"{"$lastN":{"input":"$a","n":2}}"#, r#"{"a":[1,2,3]}"#, "[2,3]"]:
        ByName(&COUNTED),
        |call, env| counted(call, env, |items, count| Ok(items[items.len().saturating_sub(count)..].to_vec()));
    /// Returns the `n` greatest items that are not null, in descending order.
    "$maxN"("input: array, n: integer") [r#"{"$maxN":{"input":"$a","n":2}}"#, r#"{"a":[1,3,2]}"#, "[3,2]"]:
        ByName(&COUNTED), |call, env| counted(call, env, |items, count| best(items, count, env, |a, b| b.cmp(a)));
    /// Returns the `n` least items that are not null, in ascending order.
    "$minN"("input: array, n: integer") [r#"{"$minN":{"input":"$a","n":2}}"#, r#"{"a":[1,3,2]}"#, "[1,2]"]:
        ByName(&COUNTED), |call, env| counted(call, env, |items, count| best(items, count, env, Value::cmp));
    /// Returns the number of items.
    "$size"("array") [r#"{"$size":"$a"}"#, r#"{"a":[1,2]}"#, "2"]: Exactly(1), size;
};

fn element_at(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |array, index| {
        let Value::Array(items) = array else {
            return err!(28689, "$arrayElemAt's first argument must be an array, but is {}", array.type_name());
        };
        if !index.is_number() {
            return err!(28690, "$arrayElemAt's second argument must be a numeric value, but is {}", index.type_name());
        }
        let Some(position) = whole_i32(index) else {
            let needed = "$arrayElemAt's second argument must be representable as a 32-bit integer";
            return err!(28691, "{needed}: {}", excerpt(index));
        };
        Ok(place(i64::from(position), items.len()).and_then(|place| items.get(place)).cloned())
    })
}

/// Converts an index to a position in an array of `len` items. A negative index counts from the end. Returns `None` if
/// a negative index lies before the first item. The position of other indexes may lie after the last item.
fn place(index: i64, len: usize) -> Option<usize> {
    if index < 0 { len.checked_sub(index.unsigned_abs() as usize) } else { Some(index as usize) }
}

fn end(call: &OperatorCall, env: &Env, code: i32, pick: fn(&[Value]) -> Option<&Value>) -> Answer {
    let complaint = format_args!("{}'s argument must be an array, but is", call.name());
    Ok(call.array(0, code, complaint, env)?.map_or(Some(Value::Null), |items| pick(&items).cloned()))
}

fn array_to_object(call: &OperatorCall, env: &Env) -> Answer {
    let complaint = "$arrayToObject requires an array input, found:";
    let Some(items) = call.array(0, 40386, complaint, env)? else { return NULL };
    env.query.charge(items.len() * 48)?;
    let mut pairs: Vec<(Arc<str>, Value)> = Vec::with_capacity(items.len());
    let is_pairs = match items.first() {
        None => return some(Object::new()),
        Some(Value::Array(_)) => true,
        Some(Value::Object(_)) => false,
        Some(other) => return err!(40398, "Unrecognised input type format for $arrayToObject: {}", other.type_name()),
    };
    for item in items.iter() {
        env.query.tick()?;
        let (name, value) = if is_pairs { array_pair(item)? } else { object_pair(item)? };
        if name.contains('\0') {
            return Err(Error::new(4_940_401, "Key field cannot contain an embedded null byte"));
        }
        pairs.push((name, value));
    }
    some(pairs.into_iter().collect::<Object>())
}

fn array_pair(item: &Value) -> Result<(Arc<str>, Value)> {
    let Value::Array(pair) = item else { return Err(inconsistent("Array", item, 40396)) };
    let [name, value] = pair.as_slice() else {
        return err!(40397, "$arrayToObject requires an array of size 2 arrays, found array of size: {}", pair.len());
    };
    let Value::String(name) = name else {
        let found = name.type_name();
        let message = format!(
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string. \
             Found key type: {found}"
        );
        return Err(Error::new(40395, message));
    };
    Ok((name.clone(), value.clone()))
}

fn object_pair(item: &Value) -> Result<(Arc<str>, Value)> {
    let Value::Object(pair) = item else { return Err(inconsistent("Object", item, 40391)) };
    if pair.len() != 2 {
        let found = pair.len();
        let message =
            format!("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{found}");
        return Err(Error::new(40392, message));
    }
    let (Some(name), Some(value)) = (pair.get("k"), pair.get("v")) else {
        let message =
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from the object";
        return Err(Error::new(40393, message));
    };
    let Value::String(name) = name else {
        let found = name.type_name();
        let message = format!(
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be \
             of type string. Found type: {found}"
        );
        return Err(Error::new(40394, message));
    };
    Ok((name.clone(), value.clone()))
}

/// Returns the error for an item of another type than the first item.
fn inconsistent(detected: &str, item: &Value, code: i32) -> Error {
    let found = item.type_name();
    let message = format!(
        "$arrayToObject requires a consistent input format. \
         Elements must all be arrays or all be objects. {detected} was detected, now found: {found}"
    );
    Error::new(code, message)
}

fn concat_arrays(call: &OperatorCall, env: &Env) -> Answer {
    let mut all = Vec::new();
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Null => return NULL,
            Value::Array(items) => {
                env.query.charge(size_of_val(items.as_slice()))?;
                all.extend_from_slice(&items);
            }
            other => return err!(28664, "$concatArrays only supports arrays, not {}", other.type_name()),
        }
    }
    some(all)
}

/// The arguments of the operators that take a count. MongoDB uses a separate code for each error in these arguments.
static COUNTED: NamedArguments = NamedArguments {
    not_object: 5_787_801,
    unknown: 5_787_901,
    fields: &[("input", Some(5_787_907)), ("n", Some(5_787_906))],
};

fn counted(call: &OperatorCall, env: &Env, pick: impl FnOnce(&[Value], usize) -> Result<Vec<Value>>) -> Answer {
    let count = parse_count(&call.value(1, env)?)?;
    match call.value(0, env)? {
        Value::Array(items) => {
            env.query.charge(size_of_val(items.as_slice()))?;
            some(pick(&items, count)?)
        }
        _ => Err(Error::new(5_788_200, "Input must be an array")),
    }
}

fn best(items: &[Value], count: usize, env: &Env, order: fn(&Value, &Value) -> Ordering) -> Result<Vec<Value>> {
    let items = items.iter().filter(|item| !item.is_null()).cloned().collect();
    let mut items = sorted(items, env.query, |item| measure(item, env.query), order)?;
    items.truncate(count);
    Ok(items)
}

fn is_in(call: &OperatorCall, env: &Env) -> Answer {
    let value = call.field(0, env)?;
    match call.field(1, env)? {
        Some(Value::Array(items)) => match value {
            Some(value) => some(place_of(&value, &items, env)?.is_some()),
            None => some(false),
        },
        other => {
            let found = other.as_ref().map_or("missing", Value::type_name);
            err!(40081, "$in requires an array as a second argument, found: {found}")
        }
    }
}

/// Returns the position of a value among items. Each comparison counts as work in proportion to the size of the value.
fn place_of(value: &Value, items: &[Value], env: &Env) -> Result<Option<usize>> {
    let weight = measure(value, env.query)?;
    for (place, item) in items.iter().enumerate() {
        if item.type_rank() == value.type_rank() {
            env.query.tick_many(weight)?;
            if item == value {
                return Ok(Some(place));
            }
        }
    }
    Ok(None)
}

fn index_of(call: &OperatorCall, env: &Env) -> Answer {
    let complaint = "$indexOfArray requires an array as a first argument, found:";
    let Some(items) = call.array(0, 40090, complaint, env)? else { return NULL };
    let value = call.field(1, env)?;
    let start = bound(call, 2, "starting", 9_711_600, int32, env)?.unwrap_or(0);
    let end = bound(call, 3, "ending", 9_711_600, int32, env)?.unwrap_or(usize::MAX).min(items.len());
    let window = items.get(start..end).unwrap_or_default();
    let found = value.map(|value| place_of(&value, window, env)).transpose()?.flatten();
    some(found.map_or(-1, |place| (start + place) as i64))
}

/// Evaluates the start or the end of a search. Returns `None` if the argument is absent. The error code is `code` for a
/// value from which `read` reads no number, and `code + 1` for a negative number.
pub(super) fn bound(
    call: &OperatorCall,
    index: usize,
    which: &str,
    code: i32,
    read: fn(&Value) -> Option<i64>,
    env: &Env,
) -> Result<Option<usize>> {
    if !call.has_argument(index) {
        return Ok(None);
    }
    let (name, value) = (call.name(), call.value(index, env)?);
    let Some(number) = read(&value) else {
        return err!(code, "{name} requires an integral {which} index, found a value of type: {}", value.type_name());
    };
    match usize::try_from(number) {
        Ok(number) => Ok(Some(number)),
        Err(_) => err!(code + 1, "{name} requires a nonnegative {which} index, found: {number}"),
    }
}

fn int32(value: &Value) -> Option<i64> {
    whole_i32(value).map(i64::from)
}

fn size(call: &OperatorCall, env: &Env) -> Answer {
    match call.field(0, env)? {
        Some(Value::Array(items)) => some(items.len() as i64),
        other => {
            let found = other.as_ref().map_or("missing", Value::type_name);
            err!(17124, "The argument to $size must be an array, but was of type: {found}")
        }
    }
}
