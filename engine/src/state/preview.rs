//! Previews of appends: stages an append against the log's end, and writes nothing.

use crate::error::Result;
use crate::state::State;
use crate::state::append::{Append, Appended};
use crate::state::known::Known;
use crate::state::staging::Staging;

impl State {
    /// Returns the events that an append would add now, and the states after them. An append whose events have no ids
    /// draws random ids, so a preview should choose ids.
    pub fn preview(&self, append: &Append) -> Result<Appended> {
        let (definitions, known) = (self.types.all(), Known::default());
        Staging::new(self, &definitions, &known).stage(append)
    }
}
