//! The requests of agents about tasks.

use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::request_body::{SentField, SentText, sent_fields};

sent_fields! {
    /// Claims a task for an agent, or renews the claim.
    pub struct ClaimTask;

    pub agent_id: SentField<String>,
    /// The lease in seconds, 1 to 600; the default is 90. Each heartbeat of the worker that made the claim renews the
    /// lease for the duration in the request that began the claim.
    pub lease_seconds: SentField<Option<u64>>,
    /// The name of the worker, if several workers of the agent claim tasks. Another worker cannot renew the claim.
    pub instance: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// The number of the claim to renew. After the claim has ended, the request is rejected with 409
    /// `not_lease_holder`.
    pub claim: SentField<Option<u64>>,
}

sent_fields! {
    /// Claims the next task of an agent.
    pub struct ClaimNext;

    pub agent_id: SentField<String>,
    /// The lease in seconds, 1 to 600; the default is 90.
    pub lease_seconds: SentField<Option<u64>>,
    /// The name of the worker, if several workers of the agent claim tasks.
    pub instance: SentText,
}

sent_fields! {
    /// A message to add to a task. The author is the agent or, without `agent_id`, the caller. With a key that is bound
    /// to one agent, the default of `agent_id` is this agent.
    pub struct AddMessage;

    pub agent_id: SentText,
    /// The number of the claim to which the message belongs. After the claim has ended, the message is rejected with
    /// 409 `not_lease_holder`.
    pub claim: SentField<Option<u64>>,
    pub text: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `text`.
    pub message: SentText,
    /// Another name for `text`.
    pub content: SentText,
}

sent_fields! {
    /// An artifact to add to a task. The agent that holds the task is the author.
    pub struct AddArtifact;

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
    /// the version of the aggregate that the agent has read. For the aggregate in the field `aggregate_id` of the
    /// task's source, the default of `expected_version` is the version at the time of the claim. For other aggregates,
    /// the default is the current version.
    pub effect: SentField<Option<AnyObject>>,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `supersedes`.
    pub id: SentText,
    /// The content instead of `parts`: a string becomes a `{text}` part, and any other value becomes a `{data}` part.
    pub content: SentField<Option<AnyValue>>,
}

sent_fields! {
    /// Completes the agent's work on the task.
    pub struct CompleteTask;

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
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
}

sent_fields! {
    /// Asks a person for input that the agent needs to continue.
    pub struct RequestInput;

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
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
}

sent_fields! {
    /// Reports that the agent failed to complete the task.
    pub struct FailTask;

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

sent_fields! {
    /// Releases the agent's claim.
    pub struct ReleaseTask;

    pub agent_id: SentText,
    pub claim: SentField<Option<u64>>,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// Cancels the task. Only the task's creator and the workspace's owners may cancel a task.
    pub struct CancelTask;

    pub reason: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `reason`.
    pub message: SentText,
    /// Another name for `reason`.
    pub comment: SentText,
}
