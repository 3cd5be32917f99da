//! `$sort`: sorts stably by the keys and then by `_id`. With a limit, the sort keeps no more rows than the limit.

use std::collections::BinaryHeap;

use crate::model::value::Value;
use crate::pipeline::language::ast::SortKey;
use crate::pipeline::run::rows::{KeptRow, KeptRows, Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure_all;
use crate::pipeline::value::sort_key::{SortOrder, SortValue};
use crate::pipeline::value::sorting::sorted;

/// The operator of `$sort`.
pub struct SortOperator {
    order: SortOrder,
    /// Whether the order is descending, for each value of a sort key.
    descending: Vec<bool>,
    limit: Option<usize>,
    owner: RowOwner,
}

impl SortOperator {
    pub fn new(keys: Vec<SortKey>, limit: Option<u64>, owner: RowOwner) -> SortOperator {
        let order = SortOrder::then_by_id(keys.iter().map(|key| (&**key.path.text(), key.descending)));
        let descending = order.directions().collect();
        SortOperator {
            order,
            descending,
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            owner,
        }
    }
}

/// A row with its sort key. Rows compare by their keys, and rows with equal keys by their indexes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SortRow {
    keys: Box<[SortValue]>,
    row_index: usize,
    row: Value,
    /// The number of bytes that the query was charged for keeping the row.
    charged: usize,
}

impl Operator for SortOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut heap: BinaryHeap<SortRow> = BinaryHeap::new();
        let mut rows: Vec<SortRow> = Vec::new();
        for (row_index, row) in input.enumerate() {
            let mut keyed = self.keyed(row?, row_index)?;
            if self.limit.is_some() {
                measure_all(keyed.keys.iter().filter_map(|key| key.value.as_ref()), run.query)?;
            }
            match self.limit {
                Some(limit) if heap.len() >= limit => {
                    // A row that sorts earlier replaces the last of the kept rows.
                    if let Some(mut highest) = heap.peek_mut()
                        && keyed < *highest
                    {
                        self.hold(&mut keyed, run)?;
                        run.query.give_back(highest.charged);
                        *highest = keyed;
                    }
                }
                Some(_) => {
                    self.hold(&mut keyed, run)?;
                    heap.push(keyed);
                }
                None => {
                    self.hold(&mut keyed, run)?;
                    rows.push(keyed);
                }
            }
        }
        if self.limit.is_some() {
            rows = heap.into_vec();
        }
        let weigh = |keyed: &SortRow| measure_all(keyed.keys.iter().filter_map(|key| key.value.as_ref()), run.query);
        let rows = sorted(rows, run.query, weigh, SortRow::cmp)?;
        let rows = rows.into_iter().map(|SortRow { row, charged, .. }| KeptRow { row, charged });
        Ok(Box::new(KeptRows::new(rows.collect(), run.query)))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

impl SortOperator {
    fn hold(&self, keyed: &mut SortRow, run: RunContext) -> Result<()> {
        let before = run.query.remaining_bytes();
        run.query.charge(self.descending.len() * size_of::<SortValue>())?;
        self.owner.hold(&keyed.row, run.query)?;
        keyed.charged = before.saturating_sub(run.query.remaining_bytes());
        Ok(())
    }

    fn keyed(&self, row: Value, row_index: usize) -> Result<SortRow> {
        let keys = self.order.key(&row)?.into_iter().zip(&self.descending);
        let keys = keys.map(|(value, descending)| SortValue { value, descending: *descending }).collect();
        Ok(SortRow { keys, row_index, row, charged: 0 })
    }
}
