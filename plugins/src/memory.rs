//! Counts what each thread allocates, so that a script that takes too much memory can be stopped.
#![expect(
    unsafe_code,
    reason = "an allocator cannot be written without it; every call goes to the inner allocator as it came"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// An allocator that counts for each thread what it hands out and takes back.
pub struct Counting<A>(pub A);

thread_local! {
    /// Bytes that this thread allocated, less those that it freed.
    static NET: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that the calling thread allocated so far, less those that it freed. It stays 0 where [`Counting`] is not the
/// allocator of the program.
pub fn allocated() -> i64 {
    NET.try_with(Cell::get).unwrap_or(0)
}

fn count(bytes: i64) {
    // A thread that is ending has no counter any more, and no script that runs on it.
    let _ = NET.try_with(|net| net.set(net.get().wrapping_add(bytes)));
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
