//! Runs work on many servers in one test. A few servers run at the same time, each on its own runtime. When the runtime
//! is dropped, all background tasks of its server end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// The number of servers that run at the same time.
const CONCURRENCY: usize = 4;

/// Calls `run` for each item, with a separate runtime for each call. Returns the results in the order of the items. A
/// failure or panic is returned as text.
pub fn each<'a, T: Sync, R: Send, F>(items: &'a [T], run: impl Fn(&'a T) -> F + Sync) -> Vec<Result<R, String>>
where
    F: Future<Output = anyhow::Result<R>>,
{
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENCY.min(items.len()) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    // The receiver lives until all threads have ended.
                    let _ = sender.send((index, alone(|| run(item))));
                }
            });
        }
    });
    drop(sender);
    let mut results: Vec<_> = receiver.into_iter().collect();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn alone<R, F: Future<Output = anyhow::Result<R>>>(run: impl FnOnce() -> F) -> Result<R, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(async { run().await })));
    runtime.shutdown_background();
    match result {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned())
        }
    }
}
