//! Functions that select values of a moving window by their rank: medians, percentiles, and the first or last values in
//! an order. The rows of the partition are ranked once. A Fenwick tree counts the ranks in the window and finds the
//! rank at a given place of the sorted window in logarithmic time.

use std::cmp::Ordering;
use std::ops::Range;

use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorKind, Extremum, OrderEnd};
use crate::pipeline::expression::window::{Bounds, WindowBound};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{built_bytes, measure, measure_all};
use crate::pipeline::value::sort_key::SortKey;
use crate::pipeline::value::sorting::sorted;

/// A function that selects values of a moving window by rank.
pub struct RankWindow<'a> {
    kind: &'a AccumulatorKind,
    count: usize,
    values: RankedValues,
    /// The rank of each row, or [`NO_RANK`] if the function ignores the row.
    ranks: Vec<u32>,
    tree: Tree,
}

/// The values in the order of their ranks.
enum RankedValues {
    Numbers(Vec<f64>),
    Any(Vec<Value>),
}

/// The rank of a row that the function ignores.
const NO_RANK: u32 = u32::MAX;

impl<'a> RankWindow<'a> {
    pub fn new(
        accumulator: &'a Accumulator,
        count: usize,
        bounds: &Bounds,
        partition: &WindowPartition,
    ) -> Result<RankWindow<'a>> {
        let kind = accumulator.kind();
        let (values, ranks) = match kind {
            AccumulatorKind::Median | AccumulatorKind::Percentiles(_) => {
                ranked_numbers(accumulator, bounds, partition)?
            }
            _ => ranked_values(accumulator, bounds, partition)?,
        };
        partition.run.query.charge(values.len() * size_of::<u32>())?;
        let tree = Tree::new(values.len());
        Ok(RankWindow { kind, count, values, ranks, tree })
    }

    /// Returns the values at `places` in the sorted window. The first place is 0.
    fn at(&self, places: Range<usize>, partition: &WindowPartition) -> Result<Vec<Value>> {
        partition.check_bytes(places.len() * size_of::<Value>())?;
        let mut values = Vec::with_capacity(places.len());
        for place in places {
            partition.run.query.tick()?;
            values.push(self.values.get(self.tree.nth(place)));
        }
        Ok(values)
    }

    /// Returns a percentile of the numbers in the window. At least the fraction `share` of the numbers must be less
    /// than or equal to the result. Returns the smallest number of the window that satisfies this condition, or null if
    /// the window contains no numbers.
    fn percentile(&self, share: f64) -> Value {
        let held = self.tree.held;
        match held {
            0 => Value::Null,
            _ => {
                let place = (share * held as f64).ceil() as usize;
                self.values.get(self.tree.nth(place.clamp(1, held) - 1))
            }
        }
    }
}

impl RankedValues {
    fn len(&self) -> usize {
        match self {
            RankedValues::Numbers(values) => values.len(),
            RankedValues::Any(values) => values.len(),
        }
    }

    fn get(&self, rank: usize) -> Value {
        match self {
            RankedValues::Numbers(values) => Value::Double(values[rank]),
            RankedValues::Any(values) => values[rank].clone(),
        }
    }
}

/// Ranks the numbers of the rows. Returns the numbers in the order of their ranks, and the rank of each row. A row
/// without a number, with NaN or outside the range of [`reached`] gets [`NO_RANK`].
fn ranked_numbers(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &WindowPartition,
) -> Result<(RankedValues, Vec<u32>)> {
    let query = partition.run.query;
    query.charge(partition.len() * (size_of::<(f64, u32)>() + size_of::<f64>() + size_of::<u32>()))?;
    let mut column = InputColumn::read_once(accumulator.input(), partition)?;
    let mut rows: Vec<(f64, u32)> = Vec::with_capacity(partition.len());
    for row in reached(bounds, partition.len()) {
        query.tick()?;
        let number = column.get(row, partition)?.and_then(Value::as_f64).filter(|number| !number.is_nan());
        rows.extend(number.map(|number| (number, row as u32)));
    }
    query.check_time()?;
    // No number is NaN, and equal numbers are in the order of their rows.
    rows.sort_unstable_by(|(a, first), (b, second)| {
        a.partial_cmp(b).unwrap_or(Ordering::Equal).then(first.cmp(second))
    });
    let mut ranks = vec![NO_RANK; partition.len()];
    rows.iter().enumerate().for_each(|(rank, (_, row))| ranks[*row as usize] = rank as u32);
    Ok((RankedValues::Numbers(rows.into_iter().map(|(number, _)| number).collect()), ranks))
}

/// Ranks the values of the rows as [`ranked_numbers`] ranks numbers. `$minN` and `$maxN` ignore null and missing
/// values.
fn ranked_values(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &WindowPartition,
) -> Result<(RankedValues, Vec<u32>)> {
    let (kind, query) = (accumulator.kind(), partition.run.query);
    query.charge(partition.len() * (size_of::<(SortKey, u32, Value)>() + size_of::<Value>() + size_of::<u32>()))?;
    let mut column = InputColumn::read_once(accumulator.input(), partition)?;
    let mut rows: Vec<(SortKey, u32, Value)> = Vec::new();
    for row in reached(bounds, partition.len()) {
        query.tick()?;
        let (value, bytes) = column.get_kept(row, partition)?;
        let (key, value) = match kind {
            AccumulatorKind::Ranked(_, sort, _) => {
                let (key, built) = partition.read(row, |row| sort.key(row))?;
                key.iter().flatten().try_for_each(|part| query.charge(built_bytes(part, built, query)?))?;
                (key, value.unwrap_or_default())
            }
            _ => match value.filter(|value| !value.is_null()) {
                Some(value) => (SortKey::new(), value),
                None => continue,
            },
        };
        query.charge(bytes)?;
        rows.push((key, row as u32, value));
    }
    let compare = |(a, _, first): &(SortKey, u32, Value), (b, _, second): &(SortKey, u32, Value)| -> Ordering {
        match kind {
            AccumulatorKind::Ranked(_, sort, _) => sort.compare(a, b),
            AccumulatorKind::ExtremeN(Extremum::Greatest, _) => second.cmp(first),
            _ => first.cmp(second),
        }
    };
    let weight = |(key, _, value): &(SortKey, u32, Value)| match kind {
        AccumulatorKind::Ranked(..) => measure_all(key.iter().flatten(), query),
        _ => measure(value, query),
    };
    let rows = sorted(rows, query, weight, compare)?;
    let mut ranks = vec![NO_RANK; partition.len()];
    rows.iter().enumerate().for_each(|(rank, (_, row, _))| ranks[*row as usize] = rank as u32);
    Ok((RankedValues::Any(rows.into_iter().map(|(_, _, value)| value).collect()), ranks))
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
        let rank = self.ranks[row];
        if rank != NO_RANK {
            self.tree.add(rank as usize);
        }
        Ok(())
    }

    fn remove(&mut self, row: usize, _partition: &WindowPartition) -> Result<()> {
        let rank = self.ranks[row];
        if rank != NO_RANK {
            self.tree.remove(rank as usize);
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

/// A set of ranks, stored as a Fenwick tree. The tree finds the rank at a given index of the ascending order.
struct Tree {
    counts: Vec<u32>,
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

    fn each(&mut self, rank: usize, change: impl Fn(&mut u32)) {
        let mut node = rank + 1;
        while let Some(count) = self.counts.get_mut(node) {
            change(count);
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the rank at the index `place` in ascending order, counted from 0. The index must be less than the number
    /// of ranks in the set.
    fn nth(&self, place: usize) -> usize {
        let (mut node, mut left) = (0, place);
        let mut step = self.counts.len().next_power_of_two();
        while step > 0 {
            if let Some(count) = self.counts.get(node + step)
                && *count as usize <= left
            {
                node += step;
                left -= *count as usize;
            }
            step /= 2;
        }
        node
    }
}
