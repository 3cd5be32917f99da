//! A clock for tests. The time changes only when a test advances the clock, and ids are sequential.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldwork_engine::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// The time at which the clock starts: 2026-01-01T00:00:00.000Z.
const START_MS: i64 = 1_767_225_600_000;

/// A source of time and randomness that gives the same values in every run.
pub struct FixedClock {
    /// The current time. Tasks that wait for a later time watch this value.
    now_ms: watch::Sender<i64>,
    drawn: AtomicU64,
    stopwatch_us: AtomicU64,
    /// The number of microseconds that pass at each reading of the stopwatch.
    haste_us: AtomicU64,
    is_broken: AtomicBool,
    /// The number of times that the clock has been read.
    read_count: AtomicU64,
    gate: Gate,
}

/// A gate that can block a caller that reads the stopwatch.
#[derive(Default)]
struct Gate {
    stage: Mutex<Stage>,
    moved: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The next reading blocks.
    Closed,
    /// A caller that reads the stopwatch is blocked.
    Occupied,
}

impl Default for FixedClock {
    fn default() -> FixedClock {
        FixedClock {
            now_ms: watch::Sender::new(START_MS),
            drawn: AtomicU64::new(0),
            stopwatch_us: AtomicU64::new(0),
            haste_us: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            gate: Gate::default(),
            read_count: AtomicU64::new(0),
        }
    }
}

impl FixedClock {
    /// Advances the time by this many milliseconds.
    pub fn advance(&self, ms: i64) {
        self.now_ms.send_modify(|now| *now += ms);
    }

    /// Makes the stopwatch advance by this many microseconds at each reading. Without this call, the stopwatch does not
    /// advance.
    pub fn advance_stopwatch_by(&self, us: u64) {
        self.haste_us.store(us, Ordering::SeqCst);
    }

    /// Blocks the next reading of the stopwatch until [`FixedClock::let_go`] is called.
    pub fn hold_next(&self) {
        self.gate.set(Stage::Closed);
    }

    /// Blocks the calling thread until a reading of the stopwatch is blocked.
    pub fn until_held(&self) {
        self.gate.wait_while(|stage| stage != Stage::Occupied);
    }

    /// Releases the blocked reading.
    pub fn let_go(&self) {
        self.gate.set(Stage::Open);
    }

    /// Makes every reading of the clock panic until [`FixedClock::repair`] is called. The stopwatch still works. This
    /// simulates a bug during a request.
    pub fn break_down(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }

    /// Returns the number of random values that were drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::SeqCst)
    }

    /// Sets the number of random values that count as drawn. The sequence of values continues after this number.
    pub fn set_drawn(&self, drawn: u64) {
        self.drawn.store(drawn, Ordering::SeqCst);
    }

    /// Returns the number of times that the clock has been read. A busy loop would read the clock very often.
    pub fn read_count(&self) -> u64 {
        self.read_count.load(Ordering::SeqCst)
    }

    /// Makes readings of the clock succeed again after [`FixedClock::break_down`].
    pub fn repair(&self) {
        self.is_broken.store(false, Ordering::SeqCst);
    }
}

impl Gate {
    fn set(&self, stage: Stage) {
        *self.stage.lock() = stage;
        self.moved.notify_all();
    }

    fn wait_while(&self, is_waiting: impl Fn(Stage) -> bool) {
        let mut stage = self.stage.lock();
        self.moved.wait_while(&mut stage, |stage| is_waiting(*stage));
    }

    fn pass(&self) {
        let mut stage = self.stage.lock();
        if *stage == Stage::Closed {
            *stage = Stage::Occupied;
            drop(stage);
            self.moved.notify_all();
            self.wait_while(|stage| stage == Stage::Occupied);
        }
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        assert!(!self.is_broken.load(Ordering::SeqCst), "the clock is broken");
        self.read_count.fetch_add(1, Ordering::SeqCst);
        *self.now_ms.borrow()
    }

    fn wait_until(&self, at_ms: i64) -> BoxFuture<'static, ()> {
        let mut now = self.now_ms.subscribe();
        // The wait also ends when the clock is dropped.
        async move { drop(now.wait_for(|now| *now >= at_ms).await) }.boxed()
    }

    fn monotonic_us(&self) -> u64 {
        self.gate.pass();
        self.stopwatch_us.fetch_add(self.haste_us.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    /// Returns bytes that contain the number of the call. Ids and the visible parts of keys contain the number as well.
    fn random(&self) -> [u8; 32] {
        let number = self.drawn.fetch_add(1, Ordering::SeqCst) + 1;
        let mut bytes = [0; 32];
        // This byte distinguishes ids of aggregates from ids of events, which end in the positions of the events.
        bytes[1] = 1;
        bytes[2..10].copy_from_slice(&number.to_be_bytes());
        bytes[31] = number as u8;
        bytes
    }

    /// Returns the same number for each call, so that a pipeline draws the same random numbers in every run. Counts as
    /// a call of `random`.
    fn random_u64(&self) -> u64 {
        self.random();
        1 << 48
    }
}
