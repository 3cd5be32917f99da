//! The one source of time, ids and randomness.

use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

/// The longest sleep before a waiting task reads the clock again.
const MAX_SLEEP_MS: i64 = 30_000;

/// The source of time and randomness. Tests use a fixed time and sequential numbers.
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

    /// Returns 32 random bytes. The system's clock returns unpredictable bytes, a test clock the same bytes in every
    /// run.
    fn random(&self) -> [u8; 32];

    /// Returns a new UUIDv7.
    fn new_id(&self) -> Uuid {
        let random = self.random();
        let mut tail = [0u8; 10];
        tail.copy_from_slice(&random[..10]);
        uuid::Builder::from_unix_timestamp_millis(self.now_ms().max(0) as u64, &tail).into_uuid()
    }

    fn random_u64(&self) -> u64 {
        let random = self.random();
        let mut first = [0u8; 8];
        first.copy_from_slice(&random[..8]);
        u64::from_be_bytes(first)
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
