//! Limits how often a socket may do something per second.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket with its current level.
pub struct Allowance {
    per_second: f64,
    /// The maximum level.
    most: f64,
    left: f64,
    at: Instant,
}

impl Allowance {
    /// Allows `per_second` uses per second on average, and `at_once` in a burst.
    pub fn new(per_second: u32, at_once: usize) -> Allowance {
        let (per_second, most) = (f64::from(per_second.max(1)), at_once.max(1) as f64);
        Allowance { per_second, most, left: most, at: Instant::now() }
    }

    /// Takes one token, and returns whether there was one.
    pub fn take(&mut self) -> bool {
        self.take_at(Instant::now())
    }

    /// Takes one token, after waiting for it if necessary.
    pub async fn wait(&mut self) {
        while !self.take() {
            tokio::time::sleep(Duration::from_secs_f64((1.0 - self.left).max(0.0) / self.per_second)).await;
        }
    }

    fn take_at(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.most);
        self.at = now;
        let is_left = self.left >= 1.0;
        if is_left {
            self.left -= 1.0;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_refills_over_time_up_to_its_burst() {
        let mut allowance = Allowance::new(10, 5);
        let start = allowance.at;
        let mut taken =
            |after_ms: u64| (0..100).filter(|_| allowance.take_at(start + Duration::from_millis(after_ms))).count();
        assert_eq!([taken(0), taken(100), taken(300), taken(100_000)], [5, 1, 2, 5]);
    }
}
