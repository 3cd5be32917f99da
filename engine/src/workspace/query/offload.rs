//! Runs long reads of a workspace on a thread for blocking work, within a query's limits on time and memory.

use std::cell::{Cell, RefCell};

use tokio::runtime::Handle;

use super::reader::QueryReader;
use super::{QueryCost, sharing};
use crate::error::{Error, Result};
use crate::resident::Snapshot;
use crate::state::admission::QueryPermit;
use crate::workspace::rights::Reader;

impl Reader {
    /// Waits until the caller may run another query, then runs `work` over the current states.
    pub(super) async fn read_offloaded<T: Send + 'static>(
        &self,
        work: impl FnOnce(&QueryReader<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let admitted = self.context.admit_query().await?;
        self.context.refresh().await?;
        let snapshot = self.context.snapshot_with(&[]).await?;
        let (asked_by, handle) = (self.clone(), Handle::current());
        let task = tokio::task::spawn_blocking(move || asked_by.read_now(&handle, snapshot, &admitted, work));
        task.await.map_err(Error::internal)?
    }

    fn read_now<T>(
        &self,
        handle: &Handle,
        snapshot: Snapshot,
        admitted: &QueryPermit,
        work: impl FnOnce(&QueryReader<'_>) -> Result<T>,
    ) -> Result<T> {
        let state = self.context.state();
        let clock = &state.clock;
        let began = clock.monotonic_us();
        let elapsed_us = move || clock.monotonic_us().saturating_sub(began);
        let is_refused = Cell::new(false);
        let share = sharing(admitted, &is_refused);
        let context = self.context(clock.now_ms(), 0, &elapsed_us, QueryCost::default(), &share);
        let position = snapshot.position();
        let definitions = state.types.all();
        let failed = RefCell::new(None);
        let reader = QueryReader { state, handle, context: &context, snapshot, position, definitions, failed };
        let done = work(&reader);
        if is_refused.get() {
            return Err(QueryPermit::out_of_memory());
        }
        match reader.failed.take() {
            Some(error) => Err(error),
            None => done,
        }
    }
}
