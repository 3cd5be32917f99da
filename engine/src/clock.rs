//! The one source of time, ids and randomness.

use uuid::Uuid;

/// Where time and randomness come from: the system's, or in tests a fixed time and numbers in sequence.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Microseconds of a stopwatch that never goes back.
    fn monotonic_us(&self) -> u64;

    /// Bytes that nobody can guess (the system's clock) or that are the same in every run (a test's).
    fn random(&self) -> [u8; 32];

    /// A new id: UUIDv7.
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
