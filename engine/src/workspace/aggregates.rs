//! Aggregates of any type: their folded state, now or at an earlier version or time.

use std::sync::Arc;

use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;

/// The moment for which a state is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    #[default]
    Now,
    /// The state after the event with this version.
    Version(u64),
    /// The state after the events that occurred up to this time, in milliseconds since the epoch.
    At(i64),
}

impl Reader {
    /// Returns the folded state of an aggregate. A deleted aggregate has no current state, but still has earlier
    /// states.
    pub async fn aggregate(&self, id: &str, moment: Moment) -> Result<(Arc<Aggregate>, Arc<Definition>)> {
        let state = self.context.state();
        state.refresh().await?;
        let not_found = || Error::not_found("aggregate", id);
        let now = state.folded.get(id).ok_or_else(not_found)?;
        let definition = state.types.get(&now.aggregate_type).ok_or_else(not_found)?;
        let aggregate = match moment {
            Moment::Now => Some(now),
            Moment::Version(version) if version > now.version => None,
            Moment::Version(version) => state.fold_stream(&now.id, version, None, &definition).await?.map(Arc::new),
            Moment::At(at) => state.fold_stream(&now.id, now.version, Some(at), &definition).await?.map(Arc::new),
        };
        let aggregate = aggregate.filter(|aggregate| !aggregate.deleted).ok_or_else(not_found)?;
        Ok((aggregate, definition))
    }
}
