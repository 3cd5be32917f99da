//! The kinds of sources that create tasks.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::model::closed_set::closed_set;

closed_set!(SourceType);

/// The kind of source that created a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum SourceType {
    Agent,
    Event,
    User,
    Api,
}
