//! Iterates over the aggregates of a snapshot, newest first, in blocks. Callers on threads that serve requests let
//! other tasks run between two blocks.

use std::sync::Arc;

use super::{ResidentStates, Snapshot};
use crate::model::aggregate::Aggregate;

/// The maximum number of aggregates in a block. Visiting a block takes about 0.1 ms.
const BLOCK_LENGTH: usize = 1_024;

/// The aggregates of a snapshot, newest first, including deleted aggregates.
pub struct NewestFirst<'a> {
    resident: &'a ResidentStates,
    snapshot: Snapshot,
    aggregate_type: Option<&'a str>,
    /// The rows that have not been visited are before this row.
    before: usize,
    block: Vec<u32>,
}

impl<'a> NewestFirst<'a> {
    /// Creates an iterator over the aggregates whose first event is before a position. With `aggregate_type`, visits
    /// only aggregates of this type.
    pub(super) fn new(resident: &'a ResidentStates, aggregate_type: Option<&'a str>, position: u64) -> NewestFirst<'a> {
        let snapshot = resident.snapshot();
        let before = snapshot.first_row_at(position);
        NewestFirst { resident, snapshot, aggregate_type, before, block: Vec::new() }
    }

    /// Returns the aggregates of the next block, or `None` after the last block.
    pub fn next_block(&mut self) -> Option<impl Iterator<Item = &Arc<Aggregate>>> {
        self.block.clear();
        match self.aggregate_type {
            Some(name) => self.resident.rows.read().rows_before(name, self.before, BLOCK_LENGTH, &mut self.block),
            None => self.block.extend((0..self.before as u32).rev().take(BLOCK_LENGTH)),
        }
        self.before = *self.block.last()? as usize;
        Some(self.block.iter().filter_map(|row| self.snapshot.at(*row as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Object;

    #[test]
    fn aggregates_of_one_type_or_of_all_types_are_visited_newest_first() {
        let resident = ResidentStates::default();
        let aggregate = |number: u64| {
            let name = if number.is_multiple_of(100) { "rare" } else { "common" };
            let sample = Aggregate::sample(name, &format!("i-{number}"), Object::new());
            Arc::new(Aggregate { first_position: number, ..sample })
        };
        resident.publish((1..=5_000).map(aggregate), 5_000);
        let visit = |name: Option<&str>, before: u64| {
            let (mut newest, mut found, mut blocks) = (NewestFirst::new(&resident, name, before), Vec::new(), 0);
            // Aggregates after the snapshot are not visited.
            resident.publish([aggregate(resident.snapshot().len() as u64 + 1)], 1);
            while let Some(block) = newest.next_block() {
                found.extend(block.map(|aggregate| aggregate.first_position));
                blocks += 1;
            }
            (found, blocks)
        };
        assert_eq!(visit(Some("rare"), 401), (vec![400, 300, 200, 100], 1));
        assert_eq!(visit(Some("rare"), 400), (vec![300, 200, 100], 1));
        assert_eq!(visit(Some("unknown"), u64::MAX), (Vec::new(), 0));
        let (common, blocks) = visit(Some("common"), 5_001);
        assert_eq!((common.len(), blocks), (4_950, 5));
        let all = visit(None, 3_001);
        assert_eq!(all, ((1..=3_000).rev().collect(), 3));
        assert_eq!(visit(None, 1), (Vec::new(), 0));
        let count = resident.snapshot().len();
        assert_eq!(visit(None, u64::MAX).0.len(), count);
    }
}
