//! Appends: the single writer of a workspace's log, and the checks that each append passes.
//!
//! This module does not depend on callers or rights. The layers above it check permissions.
//!
//! # Steps of an append
//!
//! 1. **Queue.** An operation puts an append into the queue of the workspace's one appender. An append contains a
//!    decision: a function that takes the state at the log's end and returns the new events. Conditions such as "this
//!    slug is free" are part of the decision, so they are true at the commit. An append may have an idempotency key
//!    (`idempotency.rs`): the transaction of the events also writes a record with the user, the key and the fingerprint
//!    of the request. The record is unique, so only one of several concurrent requests with the same key is executed. A
//!    repeated request gets its response from the log. The response is therefore the same after a crash.
//! 2. **Batch.** While a transaction runs, other appends wait. Then up to 512 appends are committed together. A batch
//!    takes no further appends when the size of its events reaches 4 MiB.
//! 3. **Staging** (`staging.rs`) processes the appends of the batch one after another. For an event with a known id,
//!    staging returns the event that already has this id, or rejects the append if the contents differ. Staging checks
//!    types, projects and expected versions, validates payloads, looks up the targets of references that must exist,
//!    assigns versions and positions, and folds the state after each event. A rejected append is rolled back as a
//!    whole, so the next append does not see its events. A deleted aggregate accepts only an event that creates the
//!    aggregate again, has `restore` or was recorded in another log. An event that a plugin derived cannot restore a
//!    deleted aggregate. Only appends of the program itself, or of an operator's offline command, may contain events of
//!    managed types, or set the actors and recording times of events.
//! 4. **Commit** (`store/workspace/append.rs`): one transaction writes the events, the ids that clients chose, the
//!    agents concerned, and one commit record. If several servers share the store, the transaction also checks that
//!    `head:log` has the position that the appender expects. If another process has written first, the appender reads
//!    the log's end and runs the decisions again. After a failure with an unknown outcome, the appender first reads the
//!    log.
//! 5. **Publish** (`state/folded_states.rs`): states, tail and head advance in memory. Then the callers get their
//!    responses, so every caller reads its own write. Published states, and the snapshots and their checkpoint in the
//!    store, never go back to an earlier version. A client that follows one aggregate or the feed of one agent is woken
//!    only by events of this aggregate or agent, and reads the events from a separate short tail (`state/streams.rs`,
//!    `state/feeds.rs`).

pub mod appender;
pub(crate) mod checks;
pub mod earlier_writes;
pub mod idempotency;
pub mod request;
mod slugs;
pub mod staging;
pub mod view;
