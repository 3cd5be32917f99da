//! The requests of agents about tasks.

use poem_openapi::Object;

use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::request_body::{SentField, SentText, from_fields};

/// Claims a task for an agent, or renews the claim.
#[derive(Object)]
pub struct ClaimTask {
    pub agent_id: SentField<String>,
    /// The lease in seconds, 1 to 600; the default is 90. Each heartbeat renews the lease for the same time.
    pub lease_seconds: SentField<Option<u64>>,
    /// The name of the worker, if several workers of the agent claim tasks. Another worker cannot renew the claim.
    pub instance: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// The number of the claim to renew. After the claim has ended, the request is rejected with 409
    /// `not_lease_holder`.
    pub claim: SentField<Option<u64>>,
}

from_fields!(only ClaimTask { agent_id, lease_seconds, instance, expected_version, claim });

/// Claims the next task of an agent.
#[derive(Object)]
pub struct ClaimNext {
    pub agent_id: SentField<String>,
    /// The lease in seconds, 1 to 600; the default is 90.
    pub lease_seconds: SentField<Option<u64>>,
    /// The name of the worker, if several workers of the agent claim tasks.
    pub instance: SentText,
}

from_fields!(only ClaimNext { agent_id, lease_seconds, instance });

/// A message to add to a task. The author is the agent or, without `agent_id`, the caller.
#[derive(Object)]
pub struct AddMessage {
    pub agent_id: SentText,
    /// The number of the claim to which the message belongs. After the claim has ended, the message is rejected with
    /// 409 `not_lease_holder`.
    pub claim: SentField<Option<u64>>,
    pub text: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `text`.
    pub message: SentText,
    /// Another name for `text`.
    pub content: SentText,
}

from_fields!(only AddMessage { agent_id, claim, text, parts, in_reply_to, expected_version, message, content });

/// An artifact to add to a task. The agent that holds the task is the author.
#[derive(Object)]
pub struct AddArtifact {
    pub agent_id: SentText,
    /// The number of the claim under which the agent produced the output.
    pub claim: SentField<Option<u64>>,
    pub name: SentText,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`. A request may have
    /// `text`, `data` or `content` instead of `parts`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub text: SentText,
    pub data: SentField<Option<AnyValue>>,
    /// The id of the previous version of this artifact. The default is the artifact with the same name.
    pub supersedes: SentText,
    /// The event that approval appends: `{aggregate_id, event_type, payload, expected_version}`. `expected_version` is
    /// the version of the aggregate that the agent has read. If the field `aggregate_id` of the task's source names the
    /// aggregate, the default is the version at the time of the claim. Otherwise, the default is the current version.
    pub effect: SentField<Option<AnyObject>>,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `supersedes`.
    pub id: SentText,
    /// The content instead of `parts`: a string becomes a `{text}` part, and any other value becomes a `{data}` part.
    pub content: SentField<Option<AnyValue>>,
}

from_fields!(only AddArtifact {
    agent_id,
    claim,
    name,
    parts,
    text,
    data,
    supersedes,
    effect,
    expected_version,
    id,
    content,
});

/// Completes the agent's work on the task.
#[derive(Object)]
pub struct CompleteTask {
    pub agent_id: SentText,
    pub claim: SentField<Option<u64>>,
    /// An artifact to add together with the completion.
    pub artifact: SentField<Option<AnyObject>>,
    pub artifacts: SentField<Option<Vec<AnyObject>>>,
    pub message: SentText,
    /// `false` completes the task without a review by a person. If `metadata.review` contains a setting other than
    /// `escalate`, or if the task's output has an effect, `false` is rejected with 409 `review_required`.
    pub review: SentField<Option<bool>>,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `message`.
    pub text: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
}

from_fields!(only CompleteTask {
    agent_id,
    claim,
    artifact,
    artifacts,
    message,
    review,
    expected_version,
    text,
    parts,
    in_reply_to,
});

/// Asks a person for input that the agent needs to continue.
#[derive(Object)]
pub struct RequestInput {
    pub agent_id: SentText,
    pub claim: SentField<Option<u64>>,
    pub message: SentText,
    /// A JSON Schema that the reply must match.
    pub schema: SentField<Option<AnyObject>>,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `message`.
    pub question: SentText,
    /// Another name for `message`.
    pub text: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
}

from_fields!(only RequestInput { agent_id, claim, message, schema, expected_version, question, text, parts, in_reply_to });

/// Reports that the agent failed to complete the task.
#[derive(Object)]
pub struct FailTask {
    pub agent_id: SentText,
    pub claim: SentField<Option<u64>>,
    /// The reason for the failure. Exactly one of `error`, `message` and `reason` is required.
    pub error: SentText,
    /// Whether another attempt may succeed; the default is false.
    pub retryable: SentField<Option<bool>>,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `error`.
    pub message: SentText,
    /// Another name for `error`.
    pub reason: SentText,
}

from_fields!(only FailTask { agent_id, claim, error, retryable, expected_version, message, reason });

/// Releases the agent's claim.
#[derive(Object)]
pub struct ReleaseTask {
    pub agent_id: SentText,
    pub claim: SentField<Option<u64>>,
    pub expected_version: SentField<Option<u64>>,
}

from_fields!(only ReleaseTask { agent_id, claim, expected_version });

/// Cancels the task. Only the task's creator and the workspace's owners may cancel a task.
#[derive(Object)]
pub struct CancelTask {
    pub reason: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `reason`.
    pub message: SentText,
    /// Another name for `reason`.
    pub comment: SentText,
}

from_fields!(only CancelTask { reason, expected_version, message, comment });
