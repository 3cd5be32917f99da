//! Reads a task from its aggregate: the names of the state's fields, and typed access to their values.

use rustc_hash::{FxHashMap, FxHashSet};

use super::review::Review;
use super::status::Status;
use crate::model::aggregate::Aggregate;
use crate::model::facts::{Assignee, Priority};
use crate::model::value::{Object, Value};

/// The names of fields in a task's state.
pub mod field {
    pub const TITLE: &str = "title";
    pub const STATUS: &str = "status";
    pub const PRIORITY: &str = "priority";
    pub const ASSIGNEE_TYPE: &str = "assignee_type";
    pub const ASSIGNEE_ID: &str = "assignee_id";
    pub const SOURCE_TYPE: &str = "source_type";
    pub const SOURCE: &str = "source";
    pub const METADATA: &str = "metadata";
    pub const UNREAD: &str = "unread";
    pub const RESOLUTION: &str = "resolution";
    pub const DUE_AT: &str = "due_at";
    /// The due date that an event has recorded as passed.
    pub const OVERDUE_FOR: &str = "overdue_for";
    /// The number of escalation steps taken since the due date in [`OVERDUE_FOR`].
    pub const ESCALATED: &str = "escalated";
    pub const MESSAGES: &str = "messages";
    pub const ARTIFACTS: &str = "artifacts";
    /// The creator of the task: a user's id, `plugin:<name>`, or `system`.
    pub const CREATED_BY: &str = "created_by";
    /// The keys and sessions that have delivered output. A user as `user:ID` stands for a request that had neither a
    /// key nor a session.
    pub const DELIVERED_BY: &str = "delivered_by";
    /// The users who delivered output, and the keys and sessions from which the keys used for the deliveries were
    /// derived. Deliveries with keys that are bound to agents do not count.
    pub const DELIVERED_BELOW: &str = "delivered_below";
    /// The number of the current attempt, starting at 1.
    pub const ATTEMPT: &str = "attempt";
    /// The agent that holds the task.
    pub const CLAIMED_BY: &str = "claimed_by";
    /// The version of the event that claimed the task.
    pub const CLAIM: &str = "claim";
    /// The worker of the agent that holds the task, if the claim names a worker.
    pub const INSTANCE: &str = "instance";
    /// The key, session or user that claimed the task.
    pub const CLAIMED_WITH: &str = "claimed_with";
    /// The duration of the lease, in seconds.
    pub const LEASE_SECONDS: &str = "lease_seconds";
    /// The end of the lease as set by the claim, before any renewal.
    pub const LEASE_UNTIL: &str = "lease_until";
    /// The status that the task returns to when a lease or a deferral ends.
    pub const TAKEN_FROM: &str = "taken_from";
    /// The version that the task's subject had when the agent claimed the task. The subject is the aggregate that the
    /// task is about.
    pub const SOURCE_VERSION: &str = "source_version";
    pub const DEFERRED_UNTIL: &str = "deferred_until";
    /// The number of artifact versions that the task had when a person last requested changes.
    pub const SUPERSEDED: &str = "superseded";
    /// The agent's request for input: `{message, schema}`.
    pub const INPUT_REQUEST: &str = "input_request";
}

/// The approximate size of a task in a list, in bytes, without the fields whose size clients choose.
const LISTED_BYTES: usize = 1_024;

/// A lease, as recorded by the event that claimed the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease<'a> {
    pub agent_id: &'a str,
    /// The worker of the agent, if the claim names a worker.
    pub instance: Option<&'a str>,
    /// The key, session or user that claimed the task. `None` for claims that were made before this field existed.
    pub claimed_with: Option<&'a str>,
    /// The version of the event that claimed the task. The version identifies the claim.
    pub claim: u64,
    pub seconds: i64,
    /// The original end of the lease, in milliseconds since the epoch. Renewals are not events, so only the store
    /// contains the end of a renewed lease.
    pub until: i64,
}

/// Typed access to the aggregate of a task.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub aggregate: &'a Aggregate,
}

impl<'a> Task<'a> {
    pub fn new(aggregate: &'a Aggregate) -> Task<'a> {
        Task { aggregate }
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.aggregate.state.given(name)
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Returns the status. A task without a recorded status is pending.
    pub fn status(&self) -> Status {
        self.text(field::STATUS).and_then(Status::parse).unwrap_or(Status::Pending)
    }

    pub fn assigned_agent(&self) -> Option<&'a str> {
        self.text(field::ASSIGNEE_ID).filter(|_| self.text(field::ASSIGNEE_TYPE) == Some("agent"))
    }

    /// Returns the agent or user that the task is assigned to.
    pub fn assignee(&self) -> Option<Assignee> {
        let id = self.text(field::ASSIGNEE_ID)?.into();
        match self.text(field::ASSIGNEE_TYPE)? {
            "agent" => Some(Assignee::Agent(id)),
            "user" => Some(Assignee::User(id)),
            _ => None,
        }
    }

    pub fn is_unread(&self) -> bool {
        matches!(self.get(field::UNREAD), Some(Value::Bool(true)))
    }

    pub fn attempt(&self) -> i64 {
        self.get(field::ATTEMPT).and_then(Value::as_int).unwrap_or(1)
    }

    /// Returns the status that the task returns to when a lease or a deferral ends.
    pub fn taken_from(&self) -> Status {
        self.text(field::TAKEN_FROM).and_then(Status::parse).unwrap_or(Status::Pending)
    }

    pub fn lease(&self) -> Option<Lease<'a>> {
        if self.status() != Status::InProgress {
            return None;
        }
        Some(Lease {
            agent_id: self.text(field::CLAIMED_BY)?,
            instance: self.text(field::INSTANCE),
            claimed_with: self.text(field::CLAIMED_WITH),
            claim: u64::try_from(self.get(field::CLAIM)?.as_int()?).ok()?,
            seconds: self.get(field::LEASE_SECONDS).and_then(Value::as_int).unwrap_or(super::LEASE_S),
            until: self.date(field::LEASE_UNTIL)?,
        })
    }

    /// Returns the time at which a deferred task resumes, in milliseconds since the epoch. Returns `None` if the task
    /// is not deferred or the deferral has no end.
    pub fn wakes_at(&self) -> Option<i64> {
        self.date(field::DEFERRED_UNTIL).filter(|_| self.status() == Status::Deferred)
    }

    /// Returns whether the log records that the current due date has passed.
    pub fn is_overdue(&self) -> bool {
        self.date(field::DUE_AT).is_some_and(|due_at| self.date(field::OVERDUE_FOR) == Some(due_at))
    }

    /// Returns the number of escalation steps taken since the last due date that an event has recorded as passed. A new
    /// due date does not reset the number before it passes.
    pub fn escalated(&self) -> usize {
        let taken = self.get(field::ESCALATED).and_then(Value::as_int).unwrap_or(0);
        usize::try_from(taken).unwrap_or(0)
    }

    pub fn priority(&self) -> Priority {
        self.text(field::PRIORITY).and_then(Priority::parse).unwrap_or_default()
    }

    pub fn date(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_date()
    }

    pub fn messages(&self) -> &'a [Value] {
        self.get(field::MESSAGES).and_then(Value::as_array).unwrap_or_default()
    }

    /// Returns all versions of all artifacts, the oldest first.
    pub fn artifacts(&self) -> &'a [Value] {
        self.get(field::ARTIFACTS).and_then(Value::as_array).unwrap_or_default()
    }

    /// Returns the keys and sessions that have delivered output. A user as `user:ID` stands for a request that had
    /// neither a key nor a session.
    pub fn deliverers(&self) -> &'a [Value] {
        self.get(field::DELIVERED_BY).and_then(Value::as_array).unwrap_or_default()
    }

    /// Returns the keys and sessions from which the delivering keys were derived, and the users who delivered.
    /// Deliveries with keys that are bound to agents do not count.
    pub fn delivered_below(&self) -> &'a [Value] {
        self.get(field::DELIVERED_BELOW).and_then(Value::as_array).unwrap_or_default()
    }

    pub fn has_output(&self) -> bool {
        !self.artifacts().is_empty()
    }

    /// Returns the current version of each artifact: the version that no later version supersedes. The artifacts are in
    /// the order of their first versions, so an artifact keeps its position when it gets another version.
    pub fn current_artifacts(&self) -> Vec<&'a Object> {
        let all = self.artifacts().iter().filter_map(Value::as_object);
        let superseded: FxHashSet<&str> = all.clone().filter_map(|artifact| artifact.text("supersedes")).collect();
        let mut positions: FxHashMap<&str, usize> = FxHashMap::default();
        let mut current: Vec<(usize, &'a Object)> = Vec::new();
        for (number, artifact) in all.enumerate() {
            let first = artifact.text("supersedes").and_then(|id| positions.get(id).copied());
            let (id, position) = (artifact.text("id"), first.unwrap_or(number));
            positions.extend(id.map(|id| (id, position)));
            if id.is_none_or(|id| !superseded.contains(id)) {
                current.push((position, artifact));
            }
        }
        current.sort_by_key(|(position, _)| *position);
        current.into_iter().map(|(_, artifact)| artifact).collect()
    }

    /// Returns the newest artifact version.
    pub fn last_artifact(&self) -> Option<&'a Object> {
        self.artifacts().iter().rev().find_map(Value::as_object)
    }

    /// Returns the artifact versions from before the last request for changes.
    pub fn sent_back(&self) -> impl Iterator<Item = &'a Object> {
        let count = self.get(field::SUPERSEDED).and_then(Value::as_int).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(0);
        self.artifacts().iter().take(count).filter_map(Value::as_object)
    }

    /// Returns the approximate size of the task in a list, in bytes. Lists leave out messages and artifacts.
    pub fn listed_bytes(&self) -> usize {
        let shown = [field::TITLE, field::SOURCE, field::METADATA, field::RESOLUTION, field::INPUT_REQUEST];
        LISTED_BYTES + shown.iter().filter_map(|name| self.get(name)).map(Value::size_bytes).sum::<usize>()
    }

    /// Returns whether at least one of the current artifacts has an effect.
    pub fn has_effects(&self) -> bool {
        self.current_artifacts().iter().any(|artifact| artifact.given("effect").is_some())
    }

    /// Returns the id of the aggregate that the task is about.
    pub fn subject(&self) -> Option<&'a str> {
        self.get(field::SOURCE)?.get("aggregate_id").and_then(Value::as_str)
    }

    /// Returns the version of the subject at the time of the current claim, or 0 if the subject did not exist. Returns
    /// `None` if no agent holds the task, or if the task had no subject when it was claimed.
    pub fn subject_version(&self) -> Option<u64> {
        self.lease()?;
        u64::try_from(self.get(field::SOURCE_VERSION)?.as_int()?).ok()
    }

    pub fn review(&self) -> Review<'a> {
        Review::of(self.get(field::METADATA))
    }
}
