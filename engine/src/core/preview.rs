//! Previews of appends: stages an append against the log's end, and writes nothing.

use crate::core::State;
use crate::core::append::{Append, Appended};
use crate::core::known::Known;
use crate::core::staging::Staging;
use crate::error::Result;

impl State {
    /// Returns the events that an append would add now, and the states after them. An append whose events have no ids
    /// draws random ids, so a preview should choose ids.
    pub fn preview(&self, append: &Append) -> Result<Appended> {
        let (definitions, known) = (self.types.all(), Known::default());
        Staging::new(self, &definitions, &known).stage(append)
    }
}
