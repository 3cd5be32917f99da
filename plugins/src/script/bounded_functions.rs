//! Replaces the built-in functions of which a single call can become very expensive. The replacement of `sleep` always
//! fails. The other replacements check the size of the data first.
//!
//! rhai checks the size of a result only after the function has created the result, and does not count the values that
//! `map[key] = value` adds. Without the replacements, a text that is stored once but referred to ten thousand times
//! would be formatted ten thousand times.

use std::cmp::Ordering;

use rhai::{Array, Dynamic, Engine, FLOAT, INT, ImmutableString, Map, NativeCallContext};

use super::functions::{Refused, thrown, to_json, too_large};

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("replace", |context: NativeCallContext, text: &mut ImmutableString, find: &str, by: &str| {
            replace(&context, text, find, by)
        })
        .register_fn("replace", |context: NativeCallContext, text: &mut ImmutableString, find: &str, by: char| {
            replace(&context, text, find, by.encode_utf8(&mut [0; 4]))
        })
        .register_fn("replace", |context: NativeCallContext, text: &mut ImmutableString, find: char, by: &str| {
            replace(&context, text, find.encode_utf8(&mut [0; 4]), by)
        })
        .register_fn("replace", |context: NativeCallContext, text: &mut ImmutableString, find: char, by: char| {
            replace(&context, text, find.encode_utf8(&mut [0; 4]), by.encode_utf8(&mut [0; 4]))
        });
    engine
        .register_fn("to_json", |context: NativeCallContext, map: &mut Map| to_json(&context, |r| r.read_map(map)))
        .register_fn("to_json", |context: NativeCallContext, array: &mut Array| {
            to_json(&context, |r| r.read_array(array))
        });
    for name in ["to_string", "to_debug", "print", "debug"] {
        engine
            .register_fn(name, |context: NativeCallContext, map: &mut Map| {
                display_text(&context, to_json(&context, |r| r.read_map(map)))
            })
            .register_fn(name, |context: NativeCallContext, array: &mut Array| {
                display_text(&context, to_json(&context, |r| r.read_array(array)))
            });
    }
    engine
        .register_fn("sort", |context: NativeCallContext, array: &mut Array| sort(&context, array, false))
        .register_fn("sort_desc", |context: NativeCallContext, array: &mut Array| sort(&context, array, true))
        .register_fn("sleep", |_: INT| -> Result<(), Refused> { Err(no_clock()) })
        .register_fn("sleep", |_: FLOAT| -> Result<(), Refused> { Err(no_clock()) });
}

/// Returns the text of a map or an array. Returns a placeholder if `json` is an error or too long. Never returns an
/// error, because rhai would handle an error by formatting the value without a limit.
fn display_text(context: &NativeCallContext, json: Result<ImmutableString, Refused>) -> ImmutableString {
    let short = json.ok().filter(|text| text.len() <= context.engine().max_string_size());
    short.unwrap_or_else(|| "(too large, or not convertible to JSON)".into())
}

fn no_clock() -> Refused {
    thrown("a script may not call 'sleep'")
}

fn replace(context: &NativeCallContext, text: &mut ImmutableString, find: &str, by: &str) -> Result<(), Refused> {
    let max_bytes = context.engine().max_string_size();
    let count = text.matches(find).count();
    let length = text.len().saturating_sub(count * find.len()).saturating_add(count.saturating_mul(by.len()));
    if length > max_bytes {
        return Err(too_large("Length of string"));
    }
    if count > 0 {
        *text = text.replace(find, by).into();
    }
    Ok(())
}

/// Sorts an array. Rejects values of different types, values of a type without an order, and texts that are too long in
/// total.
fn sort(context: &NativeCallContext, array: &mut Array, descending: bool) -> Result<(), Refused> {
    let first = array.first().map(Dynamic::type_id);
    if array.iter().any(|item| Some(item.type_id()) != first) {
        return Err(thrown("values of different types have no order; pass a comparison function to 'sort'"));
    }
    let text = |item: &Dynamic| item.as_immutable_string_ref().map_or(0, |text| text.len());
    if array.iter().map(text).fold(0, usize::saturating_add) > context.engine().max_string_size() {
        return Err(too_large("Length of string"));
    }
    if let Some(unordered) = array.first().filter(|item| compare(item, item).is_none()) {
        let kind = unordered.type_name();
        return Err(thrown(format!("values of type {kind} have no order; pass a comparison function to 'sort'")));
    }
    array.sort_by(|a, b| {
        let order = compare(a, b).unwrap_or(Ordering::Equal);
        if descending { order.reverse() } else { order }
    });
    Ok(())
}

/// Compares two values of one type. Returns `None` for types without an order.
fn compare(a: &Dynamic, b: &Dynamic) -> Option<Ordering> {
    if let (Ok(a), Ok(b)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return Some(a.as_str().cmp(b.as_str()));
    }
    let ints = a.as_int().ok().zip(b.as_int().ok()).map(|(a, b)| a.cmp(&b));
    let floats = || a.as_float().ok().zip(b.as_float().ok()).map(|(a, b)| a.total_cmp(&b));
    let characters = || a.as_char().ok().zip(b.as_char().ok()).map(|(a, b)| a.cmp(&b));
    let flags = || a.as_bool().ok().zip(b.as_bool().ok()).map(|(a, b)| a.cmp(&b));
    ints.or_else(floats).or_else(characters).or_else(flags)
}
