//! The minimum rate at which the body of a streamed upload must arrive.

use std::time::Duration;

/// Checks that a client sends a body fast enough: a minimum number of bytes must arrive in each time window. Only time
/// spent waiting for the client counts, so a slow disk does not lower the measured rate.
pub struct UploadRate {
    window: Duration,
    /// The minimum number of bytes that must arrive in each time window.
    min_bytes: u64,
    remaining: Duration,
    received: u64,
}

impl UploadRate {
    pub fn new(window: Duration, bytes_per_s: u64) -> UploadRate {
        UploadRate {
            window,
            min_bytes: bytes_per_s.saturating_mul(window.as_secs()).max(1),
            remaining: window,
            received: 0,
        }
    }

    /// Returns the time to wait for the next bytes. If no bytes arrive in this time, the body is too slow.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Records that bytes arrived after a wait. If enough bytes have arrived in the window, a new window begins.
    /// Surplus bytes do not count for the new window.
    pub fn record(&mut self, bytes: usize, waited: Duration) {
        self.received = self.received.saturating_add(bytes as u64);
        if self.received >= self.min_bytes {
            (self.remaining, self.received) = (self.window, 0);
        } else {
            self.remaining = self.remaining.saturating_sub(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the number of seconds after which a client is too slow. The client sends `bytes` bytes in each second.
    /// Returns 1,000 if the client is not too slow within 1,000 seconds.
    fn lasts(rate: &mut UploadRate, bytes: usize) -> usize {
        let is_in_time = |_: &usize| {
            let is_in_time = rate.remaining() >= SECOND;
            rate.record(bytes, SECOND);
            is_in_time
        };
        (0..1_000).take_while(is_in_time).count()
    }

    #[test]
    fn a_body_slower_than_the_minimum_rate_times_out_after_one_window() {
        let rate = || UploadRate::new(30 * SECOND, 100);
        assert_eq!(lasts(&mut rate(), 100), 1_000);
        assert_eq!(lasts(&mut rate(), 99), 30);
        assert_eq!(lasts(&mut rate(), 0), 30);
        // Surplus bytes do not extend the next window.
        let mut fast = rate();
        fast.record(1 << 30, SECOND);
        assert_eq!(lasts(&mut fast, 1), 30);
        // Without a minimum rate, each part may take a whole window.
        assert_eq!(lasts(&mut UploadRate::new(30 * SECOND, 0), 1), 1_000);
        assert_eq!(UploadRate::new(Duration::ZERO, 100).remaining(), Duration::ZERO);
    }
}
