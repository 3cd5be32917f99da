//! Functions that select values of a moving window by their rank: medians, percentiles, and the first or last values in
//! an order. The rows of the partition are ranked once. A Fenwick tree counts the ranks in the window and finds the
//! value of a rank in logarithmic time.

use std::cmp::Ordering;
use std::ops::Range;

use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorKind, Extremum, OrderEnd};
use crate::pipeline::expression::window::{Bounds, WindowBound};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{measure, measure_all};
use crate::pipeline::value::sort_key::SortKey;
use crate::pipeline::value::sorting::sorted;

/// A function that selects values of a moving window by rank.
pub struct RankWindow<'a> {
    kind: &'a AccumulatorKind,
    count: usize,
    /// The values in the order of their ranks.
    values: Vec<Value>,
    /// The rank of each row, or `None` if the function ignores the row.
    ranks: Vec<Option<usize>>,
    tree: Tree,
}

impl<'a> RankWindow<'a> {
    pub fn new(
        accumulator: &'a Accumulator,
        count: usize,
        bounds: &Bounds,
        partition: &WindowPartition,
    ) -> Result<RankWindow<'a>> {
        let bytes = size_of::<(SortKey, usize, Value)>() + size_of::<Value>() + 3 * size_of::<usize>();
        partition.run.query.charge(partition.len() * bytes)?;
        let (kind, query) = (accumulator.kind(), partition.run.query);
        let mut column = InputColumn::read_once(accumulator.input(), partition)?;
        let mut rows: Vec<(SortKey, usize, Value)> = Vec::new();
        for row in reached(bounds, partition.len()) {
            query.tick()?;
            let value = column.get(row, partition)?.cloned();
            let (key, value) = match kind {
                AccumulatorKind::Ranked(_, sort, _) => {
                    (sort.key(&*partition.rows().input(row)?)?, value.unwrap_or_default())
                }
                AccumulatorKind::ExtremeN(..) => match value.filter(|value| !value.is_null()) {
                    Some(value) => (SortKey::new(), value),
                    None => continue,
                },
                _ => match value.and_then(|value| value.as_f64()).filter(|number| !number.is_nan()) {
                    Some(number) => (SortKey::new(), Value::Double(number)),
                    None => continue,
                },
            };
            rows.push((key, row, value));
        }
        let compare = |(a, _, first): &(SortKey, usize, Value), (b, _, second): &(SortKey, usize, Value)| -> Ordering {
            match kind {
                AccumulatorKind::Ranked(_, sort, _) => sort.compare(a, b),
                AccumulatorKind::ExtremeN(Extremum::Greatest, _) => second.cmp(first),
                _ => first.cmp(second),
            }
        };
        let weight = |(key, _, value): &(SortKey, usize, Value)| match kind {
            AccumulatorKind::Ranked(..) => measure_all(key.iter().flatten(), query),
            _ => measure(value, query),
        };
        let rows = sorted(rows, query, weight, compare)?;
        let mut ranks = vec![None; partition.len()];
        let mut values = Vec::with_capacity(rows.len());
        for (rank, (_, row, value)) in rows.into_iter().enumerate() {
            ranks[row] = Some(rank);
            values.push(value);
        }
        let tree = Tree::new(values.len());
        Ok(RankWindow { kind, count, values, ranks, tree })
    }

    /// Returns the values of the window at `places` in the sort order, counted from 0.
    fn at(&self, places: Range<usize>, partition: &WindowPartition) -> Result<Vec<Value>> {
        partition.check_bytes(places.len() * size_of::<Value>())?;
        let mut values = Vec::with_capacity(places.len());
        for place in places {
            partition.run.query.tick()?;
            values.push(self.values[self.tree.nth(place)].clone());
        }
        Ok(values)
    }

    /// Returns the smallest number in the window that is greater than or equal to at least the fraction `share` of the
    /// numbers. Returns null if the window contains no numbers.
    fn percentile(&self, share: f64) -> Value {
        let held = self.tree.held;
        match held {
            0 => Value::Null,
            _ => {
                let place = (share * held as f64).ceil() as usize;
                self.values[self.tree.nth(place.clamp(1, held) - 1)].clone()
            }
        }
    }
}

/// Returns a range that contains every row that lies in at least one window.
fn reached(bounds: &Bounds, rows: usize) -> Range<usize> {
    let Bounds::Documents(lower, upper) = bounds else { return 0..rows };
    let start = match lower {
        WindowBound::Offset(lower) => usize::try_from((*lower).max(0)).unwrap_or(usize::MAX).min(rows),
        WindowBound::Unbounded | WindowBound::Current => 0,
    };
    let end = match upper {
        WindowBound::Offset(upper) => {
            rows.saturating_sub(usize::try_from(upper.saturating_neg().max(0)).unwrap_or(usize::MAX))
        }
        WindowBound::Unbounded | WindowBound::Current => rows,
    };
    start..end.max(start)
}

impl Slide for RankWindow<'_> {
    fn add(&mut self, row: usize, _partition: &WindowPartition) -> Result<()> {
        if let Some(rank) = self.ranks[row] {
            self.tree.add(rank);
        }
        Ok(())
    }

    fn remove(&mut self, row: usize, _partition: &WindowPartition) -> Result<()> {
        if let Some(rank) = self.ranks[row] {
            self.tree.remove(rank);
        }
        Ok(())
    }

    fn value(&mut self, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let held = self.tree.held;
        let count = self.count.min(held);
        let first = |places: Range<usize>| Ok(self.at(places, partition)?.pop().unwrap_or_default());
        let value = match self.kind {
            AccumulatorKind::Median => self.percentile(0.5),
            AccumulatorKind::Percentiles(shares) => {
                shares.iter().map(|share| self.percentile(*share)).collect::<Vec<_>>().into()
            }
            AccumulatorKind::Ranked(OrderEnd::Front, _, None) => first(0..count)?,
            AccumulatorKind::Ranked(OrderEnd::Back, _, None) => first(held - count..held)?,
            AccumulatorKind::Ranked(OrderEnd::Back, _, Some(_)) => self.at(held - count..held, partition)?.into(),
            _ => self.at(0..count, partition)?.into(),
        };
        Ok(Some(value))
    }
}

/// A set of ranks, stored as a Fenwick tree, which finds the rank at a place in ascending order.
struct Tree {
    counts: Vec<usize>,
    /// The number of ranks in the set.
    held: usize,
}

impl Tree {
    fn new(ranks: usize) -> Tree {
        Tree { counts: vec![0; ranks + 1], held: 0 }
    }

    fn add(&mut self, rank: usize) {
        self.held += 1;
        self.each(rank, |count| *count += 1);
    }

    fn remove(&mut self, rank: usize) {
        self.held -= 1;
        self.each(rank, |count| *count -= 1);
    }

    fn each(&mut self, rank: usize, change: impl Fn(&mut usize)) {
        let mut node = rank + 1;
        while let Some(count) = self.counts.get_mut(node) {
            change(count);
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the rank at a place, from 0. The set must contain more ranks than `place`.
    fn nth(&self, place: usize) -> usize {
        let (mut node, mut left) = (0, place);
        let mut step = self.counts.len().next_power_of_two();
        while step > 0 {
            if let Some(count) = self.counts.get(node + step)
                && *count <= left
            {
                node += step;
                left -= count;
            }
            step /= 2;
        }
        node
    }
}
