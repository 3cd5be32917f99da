//! Previews of appends: stages an append against the log's end, and writes nothing.

use crate::error::Result;
use crate::state::State;
use crate::state::append::{Append, AppendOutcome};
use crate::state::earlier_writes::EarlierWrites;
use crate::state::staging::BatchBuilder;

impl State {
    /// Returns the events that an append would add now, and the states after them. An append whose events have no ids
    /// draws random ids, so a preview should choose ids.
    pub fn preview(&self, append: &Append) -> Result<AppendOutcome> {
        let (definitions, known) = (self.types.all(), EarlierWrites::default());
        BatchBuilder::new(self, &definitions, &known).stage(append)
    }
}
