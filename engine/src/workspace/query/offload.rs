//! Runs long reads of a workspace on a thread for blocking work, within a query's limits on time and memory.

use std::cell::RefCell;

use tokio::runtime::Handle;

use super::page::Continuation;
use super::reader::QueryReader;
use super::{QueryCost, denied};
use crate::error::{Error, Result};
use crate::resident::Snapshot;
use crate::state::admission::QueryPermit;
use crate::workspace::rights::Reader;

impl Reader {
    /// Waits until the caller may run another query, then runs `work` over the current states, on a thread for blocking
    /// work.
    pub(super) async fn read_offloaded<T: Send + 'static>(
        &self,
        work: impl FnOnce(&QueryReader<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let admitted = self.context.admit_query().await?;
        self.context.refresh().await?;
        let snapshot = self.context.snapshot_with(&[]).await?;
        let (position, now_ms) = (snapshot.position(), self.context.state().clock.now_ms());
        let now = Continuation { position, now_ms, seed: 0, offset: 0, limit: u32::MAX, binding: 0 };
        self.read_at(snapshot, now, QueryCost::default(), admitted, work).await
    }

    /// Runs `work` over the states at a moment, on a thread for blocking work. Queries use much processor time and
    /// block on reads, so they must not run on the threads that serve requests. `spent` contains the time and memory
    /// that the query has already used. These amounts count towards the limits of the query.
    pub(super) async fn read_at<T: Send + 'static>(
        &self,
        snapshot: Snapshot,
        moment: Continuation,
        spent: QueryCost,
        admitted: QueryPermit,
        work: impl FnOnce(&QueryReader<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (asked_by, handle) = (self.clone(), Handle::current());
        let read = move || {
            let state = asked_by.context.state();
            let began = state.clock.monotonic_us();
            let elapsed_us = || state.clock.monotonic_us().saturating_sub(began).saturating_add(spent.us);
            let share = |bytes| admitted.grant(bytes);
            let context = asked_by.context(moment.now_ms, moment.seed, &elapsed_us, spent, &share);
            let reader = QueryReader {
                state,
                handle: &handle,
                context: &context,
                snapshot,
                position: moment.position,
                definitions: state.types.all(),
                failed: RefCell::new(None),
            };
            let done = work(&reader);
            // A table that ends early cannot return an error, so the reader stores the error.
            let done = reader.failed.take().map_or(done, Err);
            done.map_err(denied)
        };
        tokio::task::spawn_blocking(read).await.map_err(Error::internal)?
    }
}
