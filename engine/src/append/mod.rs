//! Appends: the single writer of a workspace's log, and the checks that each append passes.
//!
//! This module does not depend on callers or rights. The layers above it check permissions.
//!
//! # The way of an append
//!
//! 1. **Queue.** An operation puts an append into the queue of the workspace's one appender. An append carries a
//!    decision: a function from the log's end to the wanted events. "This slug is free" is decided here, against what
//!    holds at the commit, and not earlier in the handler. An idempotency key travels with its append (`idempotency.rs`): a
//!    small record in the events' transaction holds the user, key and fingerprint, and its uniqueness decides between
//!    concurrent requests. A repeat is answered from the log, so a response lost in a crash is the same when it is
//!    requested again.
//! 2. **Batch.** While a transaction runs, other appends wait. Then up to 512 appends, or 4 MiB, are committed
//!    together.
//! 3. **Staging** (`staging.rs`) processes the batch append by append. Known event ids return the first event. Types,
//!    projects and expected versions are checked, payloads validated, targets of references that must exist looked up,
//!    versions and positions assigned, and the state after each event folded. A refused append is rolled back as a
//!    whole, and the next append does not see it. A deleted aggregate accepts only an event that creates it again or
//!    that says `restore`. Only an append of the program itself, or of an operator offline, writes events of managed
//!    types and chosen times and actors.
//! 4. **Commit** (`store/workspace/append.rs`): one transaction with the events, the ids that clients chose, the agents
//!    concerned, and one commit record. With several servers it also checks that `head:log` is where the writer expects
//!    it. On a conflict another process was faster: the appender reads the log's end and decides again. After a failure
//!    with an unknown outcome, it reads the log before anything else.
//! 5. **Publish** (`state/folded_states.rs`): states, tail and head advance in memory, and then the callers get their responses, so
//!    every caller reads its own write. Published states only advance, and so do snapshots and their checkpoint in the
//!    store. A client that follows one aggregate or one agent's feed wakes only for its own events, and finds them in a
//!    short tail of its own (`state/streams.rs`, `state/feeds.rs`).

pub mod appender;
pub(crate) mod checks;
pub mod earlier_writes;
pub mod idempotency;
pub mod request;
mod slugs;
pub mod staging;
pub mod view;
