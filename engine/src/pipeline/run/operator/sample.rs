//! `$sample`: returns randomly selected rows, each at most once.

use crate::pipeline::run::rows::{KeptRow, KeptRows, Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$sample`.
pub struct SampleOperator {
    pub size: u64,
    pub owner: RowOwner,
}

impl Operator for SampleOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut rows = KeptRow::collect(input, self.owner, run.query)?;
        let mut random = fastrand::Rng::with_seed(run.query.seed);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX).min(rows.len());
        for index in 0..size {
            let other = random.usize(index..rows.len());
            rows.swap(index, other);
        }
        drop(KeptRows::new(rows.split_off(size), run.query));
        Ok(Box::new(KeptRows::new(rows, run.query)))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}
