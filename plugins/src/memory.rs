//! Counts the memory that each thread allocates. The count makes it possible to stop scripts that allocate too much.
#![expect(
    unsafe_code,
    reason = "an allocator requires unsafe code; every call is passed unchanged to the inner allocator"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// An allocator that counts allocated and freed bytes for each thread.
pub struct CountingAllocator<A>(pub A);

/// The counters of a thread's memory, in bytes.
#[derive(Clone, Copy)]
struct MemoryCounters {
    /// The number of allocated bytes minus the number of freed bytes.
    net: i64,
    /// The highest value of `net` since the start of the last call of [`peak_of`].
    peak: i64,
}

thread_local! {
    static HELD: Cell<MemoryCounters> = const { Cell::new(MemoryCounters { net: 0, peak: 0 }) };
}

/// Returns the number of bytes that the calling thread has allocated, minus the number of bytes that the thread has
/// freed. Returns 0 if [`CountingAllocator`] is not the program's allocator.
pub fn allocated() -> i64 {
    HELD.try_with(Cell::get).map_or(0, |held| held.net)
}

/// Runs a function. Returns the function's result, and the largest growth of the calling thread's memory during the
/// call, in bytes.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, i64) {
    let start = allocated();
    let _ = HELD.try_with(|held| held.set(MemoryCounters { net: start, peak: start }));
    let result = run();
    (result, HELD.try_with(Cell::get).map_or(0, |held| held.peak - start))
}

fn count(bytes: i64) {
    // A thread that is ending may already have dropped its counters. Such a thread runs no script.
    let _ = HELD.try_with(|held| {
        let net = held.get().net.wrapping_add(bytes);
        held.set(MemoryCounters { net, peak: held.get().peak.max(net) });
    });
}

unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}
