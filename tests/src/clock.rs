//! A clock that stands still: time moves when a test says so, and ids come in sequence.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use foldwork_engine::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// 2026-01-01T00:00:00.000Z.
const START_MS: i64 = 1_767_225_600_000;

/// Time and randomness that are the same in every run.
pub struct FixedClock {
    /// Whoever waits for a time is woken when it has come.
    now_ms: watch::Sender<i64>,
    drawn: AtomicU64,
    stopwatch_us: AtomicU64,
    /// Microseconds that pass each time the stopwatch is looked at.
    haste_us: AtomicU64,
    is_broken: AtomicBool,
    /// How often the time was asked for.
    looks: AtomicU64,
    gate: Gate,
}

/// Holds up whoever looks at the stopwatch next.
#[derive(Default)]
struct Gate {
    stage: Mutex<Stage>,
    moved: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The next look is held up.
    Closed,
    /// Somebody is held up.
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
            looks: AtomicU64::new(0),
        }
    }
}

impl FixedClock {
    pub fn advance(&self, ms: i64) {
        self.now_ms.send_modify(|now| *now += ms);
    }

    /// Lets the stopwatch run: so far at each look at it. It stands still otherwise.
    pub fn hurry(&self, us: u64) {
        self.haste_us.store(us, Ordering::SeqCst);
    }

    /// Holds up the next one who looks at the stopwatch, until [`FixedClock::let_go`].
    pub fn hold_next(&self) {
        self.gate.set(Stage::Closed);
    }

    /// Returns when somebody is held up. Blocks its thread.
    pub fn until_held(&self) {
        self.gate.wait_while(|stage| stage != Stage::Occupied);
    }

    /// Lets go of whoever is held up.
    pub fn let_go(&self) {
        self.gate.set(Stage::Open);
    }

    /// Whoever asks for the time panics from now on: a bug of ours in the middle of a request.
    pub fn break_down(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }

    /// How often the time was asked for so far: what spins asks for it without end.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    pub fn repair(&self) {
        self.is_broken.store(false, Ordering::SeqCst);
    }
}

impl Gate {
    fn set(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.moved.notify_all();
    }

    fn wait_while(&self, is_waiting: impl Fn(Stage) -> bool) {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.moved.wait_while(stage, |stage| is_waiting(*stage)).unwrap_or_else(PoisonError::into_inner));
    }

    fn pass(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.looks.fetch_add(1, Ordering::SeqCst);
        *self.now_ms.borrow()
    }

    fn wait_until(&self, at_ms: i64) -> BoxFuture<'static, ()> {
        let mut now = self.now_ms.subscribe();
        // Where the clock is gone, so is whoever waits for it.
        async move { drop(now.wait_for(|now| *now >= at_ms).await) }.boxed()
    }

    fn monotonic_us(&self) -> u64 {
        self.gate.pass();
        self.stopwatch_us.fetch_add(self.haste_us.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    /// The number of the draw, where an id and what is shown of a key let it be seen.
    fn random(&self) -> [u8; 32] {
        let number = self.drawn.fetch_add(1, Ordering::SeqCst) + 1;
        let mut bytes = [0; 32];
        // Tells the ids of aggregates from those of events, which end in their positions.
        bytes[1] = 1;
        bytes[2..10].copy_from_slice(&number.to_be_bytes());
        bytes[31] = number as u8;
        bytes
    }
}
