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
use crate::pipeline::value::number::parse_count;
use crate::pipeline::value::number::{whole, whole_i32};
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
    /// Returns the greatest items that are not null, greatest first.
    "$maxN"("input: array, n: integer") [r#"{"$maxN":{"input":"$a","n":2}}"#, r#"{"a":[1,3,2]}"#, "[3,2]"]:
        ByName(&COUNTED), |call, env| counted(call, env, |items, count| best(items, count, env, |a, b| b.cmp(a)));
    /// Returns the least items that are not null, least first.
    "$minN"("input: array, n: integer") [r#"{"$minN":{"input":"$a","n":2}}"#, r#"{"a":[1,3,2]}"#, "[1,2]"]:
        ByName(&COUNTED), |call, env| counted(call, env, |items, count| best(items, count, env, Value::cmp));
    /// Returns the number of items.
    "$size"("array") [r#"{"$size":"$a"}"#, r#"{"a":[1,2]}"#, "2"]: Exactly(1), size;
};

fn element_at(call: &OperatorCall, env: &Env) -> Answer {
    let (array, index) = (call.value(0, env)?, call.value(1, env)?);
    if array.is_null() || index.is_null() {
        return NULL;
    }
    let Value::Array(items) = array else {
        return err!(28689, "$arrayElemAt's first argument must be an array, but is {}", array.type_name());
    };
    if !index.is_number() {
        return err!(28690, "$arrayElemAt's second argument must be a numeric value, but is {}", index.type_name());
    }
    let Some(index) = whole_i32(&index) else {
        let message =
            format!("$arrayElemAt's second argument must be representable as a 32-bit integer: {}", excerpt(&index));
        return Err(Error::new(28691, message));
    };
    Ok(place(i64::from(index), items.len()).and_then(|place| items.get(place)).cloned())
}

/// Converts an index to a position in an array of `len` items. A negative index counts from the end.
fn place(index: i64, len: usize) -> Option<usize> {
    if index < 0 { len.checked_sub(index.unsigned_abs() as usize) } else { Some(index as usize) }
}

fn end(call: &OperatorCall, env: &Env, code: i32, pick: fn(&[Value]) -> Option<&Value>) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        Value::Array(items) => Ok(pick(&items).cloned()),
        other => err!(code, "{}'s argument must be an array, but is {}", call.name(), other.type_name()),
    }
}

fn array_to_object(call: &OperatorCall, env: &Env) -> Answer {
    let items = match call.value(0, env)? {
        Value::Null => return NULL,
        Value::Array(items) => items,
        other => return err!(40386, "$arrayToObject requires an array input, found: {}", other.type_name()),
    };
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
        pairs.push(if is_pairs { array_pair(item)? } else { object_pair(item)? });
    }
    some(pairs.into_iter().collect::<Object>())
}

fn array_pair(item: &Value) -> Result<(Arc<str>, Value)> {
    let Value::Array(pair) = item else {
        let found = item.type_name();
        let message = format!(
            "$arrayToObject requires a consistent input format. \
             Elements must all be arrays or all be objects. Array was detected, now found: {found}"
        );
        return Err(Error::new(40396, message));
    };
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
    check_key(name)?;
    Ok((name.clone(), value.clone()))
}

fn object_pair(item: &Value) -> Result<(Arc<str>, Value)> {
    let Value::Object(pair) = item else {
        let found = item.type_name();
        let message = format!(
            "$arrayToObject requires a consistent input format. \
             Elements must all be arrays or all be objects. Object was detected, now found: {found}"
        );
        return Err(Error::new(40391, message));
    };
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
    check_key(name)?;
    Ok((name.clone(), value.clone()))
}

fn check_key(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(Error::new(4_940_401, "Key field cannot contain an embedded null byte"));
    }
    Ok(())
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
    let items = match call.value(0, env)? {
        Value::Null => return NULL,
        Value::Array(items) => items,
        other => {
            return err!(40090, "$indexOfArray requires an array as a first argument, found: {}", other.type_name());
        }
    };
    let value = call.field(1, env)?;
    let start = bound(call, env, 2, "starting")?.unwrap_or(0);
    let end = bound(call, env, 3, "ending")?.unwrap_or(usize::MAX).min(items.len());
    let window = items.get(start..end).unwrap_or_default();
    let found = value.map(|value| place_of(&value, window, env)).transpose()?.flatten();
    some(found.map_or(-1, |place| (start + place) as i64))
}

fn bound(call: &OperatorCall, env: &Env, index: usize, which: &str) -> Result<Option<usize>> {
    if !call.has_argument(index) {
        return Ok(None);
    }
    let value = call.value(index, env)?;
    let Some(number) = whole(&value).filter(|number| i32::try_from(*number).is_ok()) else {
        let message =
            format!("$indexOfArray requires an integral {which} index, found a value of type: {}", value.type_name());
        return Err(Error::new(9_711_600, message));
    };
    match usize::try_from(number) {
        Ok(number) => Ok(Some(number)),
        Err(_) => err!(9_711_601, "$indexOfArray requires a nonnegative {which} index, found: {number}"),
    }
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
