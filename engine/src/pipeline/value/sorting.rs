//! A sort that fails when the query exceeds its time limit. Comparing values with shared parts can take a long time.

use std::cmp::Ordering;

use super::context::Context;
use super::error::Result;

/// Sorts the items stably. `weigh` returns the approximate number of values that a comparison of an item visits, or 0
/// if the comparison takes negligible time. `weigh` also counts its own work for the query. Fails if the query exceeds
/// its time limit. If all comparisons take negligible time, checks the time limit only before the sort.
pub fn sorted<T>(
    mut items: Vec<T>,
    query: &Context,
    weigh: impl Fn(&T) -> Result<usize>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>> {
    query.tick_many(items.len())?;
    let weights: Vec<usize> = items.iter().map(weigh).collect::<Result<_>>()?;
    if weights.iter().all(|weight| *weight == 0) {
        query.check_time()?;
        items.sort_by(compare);
        return Ok(items);
    }
    let order = merged(items.len(), |a, b| {
        query.tick_many(1 + weights[a].min(weights[b]))?;
        Ok(compare(&items[a], &items[b]).is_le())
    })?;
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|place| items[place].take()).collect())
}

/// Returns the indexes `0..count` in sorted order. Merges neighboring runs until one run is left.
fn merged(count: usize, mut is_before: impl FnMut(usize, usize) -> Result<bool>) -> Result<Vec<usize>> {
    let mut runs: Vec<usize> = (0..count).collect();
    let mut width = 1;
    while width < count {
        let mut merged = Vec::with_capacity(count);
        for pair in runs.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                if is_before(*a, *b)? {
                    merged.push(*a);
                    left = left_rest;
                } else {
                    merged.push(*b);
                    right = right_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        runs = merged;
        width *= 2;
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Value;
    use crate::pipeline::value::memory::measure;

    #[test]
    fn the_sort_order_does_not_depend_on_the_size_of_the_values() {
        for count in [0, 1, 2, 3, 7, 64, 1_000] {
            let items: Vec<(usize, usize)> = (0..count).map(|place| (place * 7919 % 31, place)).collect();
            let query = Context::new(0, 0, &|| 0, 1, i64::MAX);
            let of = |is_small: bool| {
                sorted(items.clone(), &query, |_| Ok(usize::from(!is_small)), |a, b| a.0.cmp(&b.0))
                    .expect("enough time")
            };
            assert_eq!(of(true), of(false));
        }
    }

    #[test]
    fn the_time_limit_of_the_query_ends_a_sort() {
        let clock = std::cell::Cell::new(0);
        let elapsed = || {
            clock.set(clock.get() + 1);
            clock.get()
        };
        let query = Context::new(0, 0, &elapsed, 3, i64::MAX);
        let large: Value = vec![Value::Null; 10].into();
        let items = vec![large; 2_000];
        assert!(sorted(items, &query, |item| measure(item, &query), Value::cmp).is_err());
    }
}
