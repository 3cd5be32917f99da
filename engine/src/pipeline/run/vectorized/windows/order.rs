//! The order of the rows in a partition.
//!
//! Each row gets an abbreviated key: a number that sorts like the first sort key. Most comparisons need only the
//! abbreviated keys of the two rows. Rows with equal abbreviated keys are compared by their sort keys, and then by
//! their ids. If a sort value is an object or a string of at least 256 bytes, the rows are sorted without abbreviated
//! keys, and the comparisons count as work of the query.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::run::windows::TypedValues;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;
use crate::pipeline::value::sort_key::direct;
use crate::pipeline::value::sorting::sorted;

/// Sorts positions of rows by the sort keys. `keys` contains the values of each sort key, and a flag that is `true` for
/// a descending order. `id` returns the id of the row at a position. Rows with equal sort keys are sorted by id. If
/// `keys` is empty, the order does not change.
pub fn sort(
    positions: &mut Vec<u32>,
    keys: &[(&TypedValues, bool)],
    id: impl Fn(u32) -> Option<Arc<str>>,
    query: &Context,
) -> Result<()> {
    let Some((first, descending)) = keys.first() else { return Ok(()) };
    let compare = |a: u32, b: u32| -> Ordering {
        let of_key =
            |(values, descending): &(&TypedValues, bool)| direct(values.compare(a as usize, b as usize), *descending);
        let unequal = keys.iter().map(of_key).find(|order| order.is_ne());
        unequal.unwrap_or_else(|| id(a).cmp(&id(b)).then(a.cmp(&b)))
    };
    // Comparing objects and long strings takes a long time, so these comparisons count as work of the query.
    let weigh = |position: &u32| {
        keys.iter().try_fold(0usize, |sum, (values, _)| match values {
            TypedValues::Any(values) => match &values[*position as usize] {
                Some(value) => Ok(sum.saturating_add(measure(value, query)?)),
                None => Ok(sum),
            },
            TypedValues::Ints(_) | TypedValues::Dates(_) | TypedValues::Doubles(_) => Ok(sum),
        })
    };
    for position in &*positions {
        if weigh(position)? > 0 {
            *positions = sorted(std::mem::take(positions), query, weigh, |a, b| compare(*a, *b))?;
            return Ok(());
        }
    }
    match first {
        TypedValues::Ints(values) | TypedValues::Dates(values) => {
            sort_by(positions, |position| abbreviated_int(values[position], *descending), compare, query)
        }
        TypedValues::Doubles(values) => {
            sort_by(positions, |position| abbreviated_double(values[position], *descending), compare, query)
        }
        TypedValues::Any(values) => {
            sort_by(positions, |position| abbreviated(values[position].as_ref(), *descending), compare, query)
        }
    }
}

/// Sorts positions by abbreviated keys, and positions with equal keys by `compare`.
fn sort_by<K: Ord + Copy>(
    positions: &mut [u32],
    key: impl Fn(usize) -> K,
    compare: impl Fn(u32, u32) -> Ordering,
    query: &Context,
) -> Result<()> {
    let bytes = positions.len() * size_of::<(K, u32)>();
    query.charge(bytes)?;
    query.check_time()?;
    let mut keyed: Vec<(K, u32)> = positions.iter().map(|position| (key(*position as usize), *position)).collect();
    keyed.sort_unstable_by(|(a, first), (b, second)| a.cmp(b).then_with(|| compare(*first, *second)));
    positions.iter_mut().zip(keyed).for_each(|(position, (_, sorted))| *position = sorted);
    query.give_back(bytes);
    query.check_time()
}

fn abbreviated_int(number: i64, descending: bool) -> u64 {
    let key = (number as u64) ^ (1 << 63);
    if descending { !key } else { key }
}

/// Returns the key of a double. In ascending order, NaN sorts before all other numbers.
fn abbreviated_double(number: f64, descending: bool) -> u64 {
    // Adding 0 turns the negative zero into zero.
    let bits = (number + 0.0).to_bits();
    let key = match number.is_nan() {
        true => 0,
        false if bits >> 63 == 1 => !bits,
        false => bits | (1 << 63),
    };
    if descending { !key } else { key }
}

/// Returns the key of a value of any type: the rank of its type, and the first bytes of a string or the key of a
/// number.
fn abbreviated(value: Option<&Value>, descending: bool) -> u128 {
    let mut bytes = [0; 16];
    if let Some(value) = value {
        bytes[0] = value.type_rank();
        match value {
            Value::String(text) => {
                let len = text.len().min(bytes.len() - 1);
                bytes[1..=len].copy_from_slice(&text.as_bytes()[..len]);
            }
            value => {
                let number = value.as_f64().map_or(0, |number| abbreviated_double(number, false));
                bytes[1..9].copy_from_slice(&number.to_be_bytes());
            }
        }
    }
    let key = u128::from_be_bytes(bytes);
    if descending { !key } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::decimal;

    #[test]
    fn rows_are_sorted_in_the_order_of_their_values() {
        let decimal = |text: &str| Value::Decimal(decimal::of_number(text).expect("a decimal"));
        let mut values: Vec<Option<Value>> = vec![None, Some(Value::Null), Some(Value::Bool(true))];
        values.extend([i64::MIN, -1, 0, 1, 1 << 53, (1 << 53) + 1, i64::MAX].map(|number| Some(Value::Int(number))));
        let doubles = [f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.5, 9_007_199_254_740_992.0, 1e300];
        values.extend(doubles.map(|number| Some(Value::Double(number))));
        values.extend(["-1.5", "0.50", "9007199254740993"].map(|text| Some(decimal(text))));
        values.extend(["", "a", "a\0", "abcdefghijklmnop", "abcdefghijklmnoq"].map(|text| Some(Value::from(text))));
        values.extend([-5, 7].map(|ms| Some(Value::Date(ms))));
        let ints = [5, -3, i64::MAX, i64::MIN, 5].map(Value::Int).map(Some).to_vec();
        let doubles = [0.0, -0.0, f64::NAN, -2.5, 1e9].map(Value::Double).map(Some).to_vec();
        let query = Context::new(0, 0, &|| 0, 1, i64::MAX);
        for values in [values, ints, doubles] {
            let mut typed = TypedValues::default();
            values.iter().for_each(|value| typed.push(value.clone()));
            for descending in [false, true] {
                let count = values.len() as u32;
                let mut found: Vec<u32> = (0..count).rev().collect();
                sort(&mut found, &[(&typed, descending)], |_| None, &query).expect("sorted");
                let mut expected: Vec<u32> = (0..count).collect();
                let value = |position: &u32| values[*position as usize].clone().unwrap_or_default();
                expected.sort_by(|a, b| direct(value(a).cmp(&value(b)), descending));
                assert_eq!(found, expected);
            }
        }
    }
}
