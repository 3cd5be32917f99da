//! Counts what each thread allocates, so that a script that takes too much memory can be stopped.
#![expect(
    unsafe_code,
    reason = "an allocator cannot be written without it; every call goes to the inner allocator as it came"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// An allocator that counts for each thread what it hands out and takes back.
pub struct Counting<A>(pub A);

/// What a thread holds, in bytes.
#[derive(Clone, Copy)]
struct Held {
    /// What it allocated, less what it freed.
    net: i64,
    /// The most that this was since somebody began to look.
    peak: i64,
}

thread_local! {
    static HELD: Cell<Held> = const { Cell::new(Held { net: 0, peak: 0 }) };
}

/// Bytes that the calling thread allocated so far, less those that it freed. It stays 0 where [`Counting`] is not the
/// allocator of the program.
pub fn allocated() -> i64 {
    HELD.try_with(Cell::get).map_or(0, |held| held.net)
}

/// Runs something, and tells how many bytes more than before the calling thread held while it ran.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, i64) {
    let before = allocated();
    let _ = HELD.try_with(|held| held.set(Held { net: before, peak: before }));
    let done = run();
    (done, HELD.try_with(Cell::get).map_or(0, |held| held.peak - before))
}

fn count(bytes: i64) {
    // A thread that is ending has no counter any more, and no script that runs on it.
    let _ = HELD.try_with(|held| {
        let net = held.get().net.wrapping_add(bytes);
        held.set(Held { net, peak: held.get().peak.max(net) });
    });
}

unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
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
