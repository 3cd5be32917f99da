//! The requests of agents about tasks.

use poem_openapi::Object;

use crate::wire::json::{AnyObject, AnyValue};

/// Claims a task for an agent, or renews the claim.
#[derive(Object)]
pub struct ClaimTask {
    agent_id: String,
    /// The lease in seconds, 1 to 600; the default is 90. Each heartbeat renews the lease for the same time.
    #[oai(nullable)]
    lease_seconds: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// A message to add to a task. The author is the agent or, without `agent_id`, the caller.
#[derive(Object)]
pub struct AddMessage {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    text: Option<String>,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    in_reply_to: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// An artifact to add to a task. The agent that holds the task is the author.
#[derive(Object)]
pub struct AddArtifact {
    #[oai(nullable)]
    agent_id: Option<String>,
    /// The number of the claim under which the agent made the output.
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    name: Option<String>,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`. `text` or `data` may
    /// replace the parts.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    text: Option<String>,
    #[oai(nullable)]
    data: Option<AnyValue>,
    /// The id of the previous version of this artifact.
    #[oai(nullable)]
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    #[oai(nullable)]
    effect: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Completes the agent's work on the task.
#[derive(Object)]
pub struct CompleteTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    /// An artifact to add together with the completion.
    #[oai(nullable)]
    artifact: Option<AnyObject>,
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    message: Option<String>,
    /// `false` completes the task without a review by a person.
    #[oai(nullable)]
    review: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Asks a person for input that the agent needs to continue.
#[derive(Object)]
pub struct RequestInput {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    message: Option<String>,
    /// A JSON Schema that the reply must match.
    #[oai(nullable)]
    schema: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Reports that the agent failed to complete the task.
#[derive(Object)]
pub struct FailTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    error: String,
    /// Whether another attempt may succeed.
    #[oai(nullable)]
    retryable: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Releases the agent's claim.
#[derive(Object)]
pub struct ReleaseTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Cancels the task. Only the task's creator and the workspace's owners may cancel a task.
#[derive(Object)]
pub struct CancelTask {
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}
