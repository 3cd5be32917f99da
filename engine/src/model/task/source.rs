//! The kinds of sources that create tasks.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// The kind of source that created a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum SourceType {
    Agent,
    Event,
    User,
    Api,
}

impl SourceType {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<SourceType> {
        name.parse().ok()
    }
}
