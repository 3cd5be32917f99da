//! Limits the rate of a socket's operations with a token bucket.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket and its current number of tokens.
pub struct Allowance {
    per_second: f64,
    /// The maximum number of tokens.
    burst: f64,
    tokens: f64,
    refilled_at: Instant,
}

impl Allowance {
    /// Creates a full bucket. Allows `per_second` operations per second on average, and a burst of `at_once`
    /// operations.
    pub fn new(per_second: u32, at_once: usize) -> Allowance {
        let (per_second, burst) = (f64::from(per_second.max(1)), at_once.max(1) as f64);
        Allowance { per_second, burst, tokens: burst, refilled_at: Instant::now() }
    }

    /// Returns the number of operations per second that the bucket allows on average.
    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Takes one token if the bucket has one. Returns whether a token was taken.
    pub fn take(&mut self) -> bool {
        self.take_at(Instant::now())
    }

    /// Takes one token. If the bucket is empty, waits until the next token is available.
    pub async fn wait(&mut self) {
        while !self.take() {
            tokio::time::sleep(Duration::from_secs_f64((1.0 - self.tokens).max(0.0) / self.per_second)).await;
        }
    }

    fn take_at(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.refilled_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        self.refilled_at = now;
        let has_token = self.tokens >= 1.0;
        if has_token {
            self.tokens -= 1.0;
        }
        has_token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_refills_over_time_up_to_its_burst() {
        let mut allowance = Allowance::new(10, 5);
        let start = allowance.refilled_at;
        let mut taken =
            |after_ms: u64| (0..100).filter(|_| allowance.take_at(start + Duration::from_millis(after_ms))).count();
        assert_eq!([taken(0), taken(100), taken(300), taken(100_000)], [5, 1, 2, 5]);
    }
}
