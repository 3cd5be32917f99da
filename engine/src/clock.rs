//! The source of the current time, of new ids and of random numbers for requests and background tasks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

/// The longest sleep before a waiting task reads the clock again, in milliseconds.
const MAX_SLEEP_MS: i64 = 30_000;
/// The maximum difference between the store's time and a clock that follows the store, in milliseconds.
const MAX_DRIFT_MS: u64 = 250;

/// The source of time and randomness. A clock for tests can have a fixed time and sequential numbers.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time, in milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Waits until `at_ms`, but at most 30 seconds. Callers must read the clock again, since the wait may end early.
    fn wait_until(&self, at_ms: i64) -> BoxFuture<'static, ()> {
        // The system's time may be changed during the sleep.
        let remaining = at_ms.saturating_sub(self.now_ms()).clamp(0, MAX_SLEEP_MS);
        Box::pin(tokio::time::sleep(Duration::from_millis(remaining.unsigned_abs())))
    }

    /// Returns the time of a monotonic stopwatch, in microseconds.
    fn monotonic_us(&self) -> u64;

    /// Returns 32 random bytes. The system's clock returns unpredictable bytes. A test clock may return the same bytes
    /// in every run.
    fn random(&self) -> [u8; 32];

    /// Returns a new UUIDv7.
    fn new_id(&self) -> Uuid {
        let random = self.random();
        let mut tail = [0u8; 10];
        tail.copy_from_slice(&random[..10]);
        uuid::Builder::from_unix_timestamp_millis(self.now_ms().max(0) as u64, &tail).into_uuid()
    }

    /// Sets the current time, in milliseconds since the epoch. Only has an effect on a clock that follows the store.
    fn set_time(&self, _now_ms: i64) {}

    /// Returns whether the clock follows the clock of the store. If so, the store can decide with its own clock what
    /// has expired.
    fn follows_store(&self) -> bool {
        false
    }

    fn random_u64(&self) -> u64 {
        let random = self.random();
        let mut first = [0u8; 8];
        first.copy_from_slice(&random[..8]);
        u64::from_be_bytes(first)
    }
}

/// The system's clock, corrected to the time of the store. If several servers share a store, all servers use the time
/// of the store, even if the clock of a server is wrong.
#[derive(Default)]
pub struct StoreClock {
    /// The store's time minus the system's time, in milliseconds.
    offset_ms: AtomicI64,
}

impl Clock for StoreClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms().saturating_add(self.offset_ms.load(Ordering::Relaxed))
    }

    fn set_time(&self, now_ms: i64) {
        let offset_ms = now_ms.saturating_sub(SystemClock.now_ms());
        // The store's response takes a varying time. Small differences are not corrected, so that time does not jump.
        if offset_ms.abs_diff(self.offset_ms.load(Ordering::Relaxed)) > MAX_DRIFT_MS {
            self.offset_ms.store(offset_ms, Ordering::Relaxed);
        }
    }

    fn follows_store(&self) -> bool {
        true
    }

    fn monotonic_us(&self) -> u64 {
        SystemClock.monotonic_us()
    }

    fn random(&self) -> [u8; 32] {
        SystemClock.random()
    }
}

/// The system's clock and random numbers.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }

    fn monotonic_us(&self) -> u64 {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed().as_micros() as u64
    }

    fn random(&self) -> [u8; 32] {
        rand::random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_follows_the_store_and_ignores_small_differences() {
        const MINUTE_MS: i64 = 60_000;
        let clock = StoreClock::default();
        clock.set_time(SystemClock.now_ms() + 10 * MINUTE_MS);
        let ahead = clock.now_ms() - SystemClock.now_ms();
        assert!((9 * MINUTE_MS..11 * MINUTE_MS).contains(&ahead), "{ahead}");
        let offset = clock.offset_ms.load(Ordering::Relaxed);
        clock.set_time(clock.now_ms() + 100);
        assert_eq!(clock.offset_ms.load(Ordering::Relaxed), offset);
        clock.set_time(SystemClock.now_ms() - MINUTE_MS);
        assert!(clock.now_ms() < SystemClock.now_ms());
    }
}
