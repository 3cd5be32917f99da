//! The codes of all errors, each with its meaning and with advice for clients.

use strum::{EnumIter, EnumMessage, EnumProperty, IntoStaticStr};

use crate::model::value::Value;

/// The code of an error, for programs. Codes are stable. `docs/errors.md` lists the codes: the documentation of a code
/// is its meaning, and the message of a code is advice for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumIter, EnumMessage, EnumProperty, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCode {
    /// The request has a value that is not allowed. `details` names each place.
    #[strum(message = "Correct the values that `details` and `error` name.", props(statuses = "400"))]
    InvalidInput,
    /// The body of the request is not JSON, or not of the operation's form.
    #[strum(message = "Correct the body at the place that `error` names.", props(statuses = "400"))]
    InvalidBody,
    /// The cursor was not issued for this list or these filters, or what the filters mean has changed since.
    #[strum(message = "Begin with the first page.", props(statuses = "400"))]
    InvalidCursor,
    /// The position or version is beyond the end of the log or stream, as after a restore of an older copy.
    #[strum(message = "Begin again from the last event that exists.", props(statuses = "400"))]
    PositionBeyondHead,
    /// The pipeline exceeded its time limit.
    #[strum(message = "Select fewer rows in an earlier stage, or raise `[pipeline] timeout`.", props(statuses = "400"))]
    QueryTimeout,
    /// The plugin lacks the hook that is to run again.
    #[strum(message = "Name one of the hooks that the message lists.", props(statuses = "400"))]
    NoSuchHook,
    /// The plugin is compiled into the server and has no files.
    #[strum(message = "Choose a plugin that consists of scripts.", props(statuses = "400"))]
    PluginWithoutFiles,
    /// The source of the plugin cannot be used.
    #[strum(message = "Correct the source at the place that `error` names.", props(statuses = "400 409"))]
    PluginRefused,
    /// The script of the tool failed.
    #[strum(message = "Correct the arguments, or the script at the place that `error` names.", props(statuses = "400"))]
    ToolFailed,
    /// The output of the tool is larger than a response may be.
    #[strum(message = "Ask for fewer rows or fewer fields.", props(statuses = "400"))]
    ResponseTooLarge,
    /// The plan of the workspace allows no more agents.
    #[strum(message = "Delete an agent, or change the plan.", props(statuses = "400"))]
    AgentLimitReached,
    /// The plan of the workspace allows no more projects.
    #[strum(message = "Delete a project, or change the plan.", props(statuses = "400"))]
    ProjectLimitReached,
    /// The files of the workspace would exceed the storage of its plan.
    #[strum(message = "Delete files, or change the plan.", props(statuses = "400"))]
    StorageQuotaExceeded,
    /// The request has no bearer token, or one that is unknown, expired or revoked.
    #[strum(message = "Send a key or a token that is valid.", props(statuses = "401"))]
    Unauthenticated,
    /// The scope of the operation requires an active subscription, which the workspace lacks.
    #[strum(message = "Change the plan.", props(statuses = "402"))]
    SubscriptionRequired,
    /// The key lacks a scope. `required` names the scopes.
    #[strum(message = "Use a key that has one of the scopes.", props(statuses = "403"))]
    InsufficientScope,
    /// The role of the caller in the workspace is too low.
    #[strum(message = "Ask an owner of the workspace for a higher role.", props(statuses = "403"))]
    InsufficientRole,
    /// The caller listens to an agent but may not act for it.
    #[strum(message = "Use a key with the scope and the role that the message names.", props(statuses = "403"))]
    InsufficientRight,
    /// Only an owner of the workspace may do this.
    #[strum(message = "Ask an owner of the workspace.", props(statuses = "403"))]
    OwnerRequired,
    /// The operation concerns the whole installation, and only owners of its first workspace may use it.
    #[strum(message = "Ask the operator of the installation.", props(statuses = "403"))]
    OperatorRequired,
    /// Only a person who is signed in may do this, with a token of an identity provider.
    #[strum(message = "Sign in.", props(statuses = "403"))]
    SessionRequired,
    /// The user is not a member of the workspace.
    #[strum(message = "Ask an owner of the workspace for an invitation.", props(statuses = "403"))]
    NotAMember,
    /// The key is valid only in its own workspace.
    #[strum(message = "Leave out the header that names a workspace, or use another key.", props(statuses = "403"))]
    OtherWorkspace,
    /// The key belongs to another user. Only that user may rotate the key.
    #[strum(message = "Ask the user of the key to rotate the key, or revoke the key.", props(statuses = "403"))]
    OtherUser,
    /// Only an owner with every scope can create a key for all workspaces, and only with a token or such a key.
    #[strum(message = "Sign in as an owner, or use a key for all workspaces.", props(statuses = "403"))]
    AllWorkspaces,
    /// The new key would expire after the key that creates it.
    #[strum(message = "Choose an earlier expiry time.", props(statuses = "403"))]
    OutlivesCaller,
    /// The new key would have more than 16 ancestors.
    #[strum(message = "Create the key with a key that has fewer ancestors.", props(statuses = "403"))]
    DerivedTooOften,
    /// The user has the maximum number of keys.
    #[strum(message = "Revoke a key.", props(statuses = "403"))]
    TooManyKeys,
    /// The workspace has the maximum number of invitations.
    #[strum(message = "Withdraw an invitation.", props(statuses = "403"))]
    TooManyInvitations,
    /// The key is bound to agents. Such a key can only read, and work on the tasks of its agents.
    #[strum(message = "Use a key that is not bound to agents.", props(statuses = "403"))]
    AgentKey,
    /// The key is bound to other agents.
    #[strum(message = "Use a key of this agent.", props(statuses = "403"))]
    OtherAgent,
    /// The caller has delivered the output, and somebody else must decide on it.
    #[strum(message = "Ask another person to decide, or set `[mailbox] own_deliveries`.", props(statuses = "403"))]
    OwnDelivery,
    /// The key is bound to agents, and the task has output of somebody else.
    #[strum(message = "Claim another task, or use a key that is not bound to agents.", props(statuses = "403"))]
    OthersOutput,
    /// The artifact was delivered by somebody else.
    #[strum(message = "Deliver an artifact with another name.", props(statuses = "403"))]
    NotAuthor,
    /// Only the creator of the task or an owner of the workspace may cancel the task.
    #[strum(message = "Ask the creator of the task, or an owner.", props(statuses = "403"))]
    NotCreator,
    /// The type is built in and cannot be defined.
    #[strum(message = "Define a type with another name.", props(statuses = "403"))]
    BuiltinType,
    /// Only the program appends events to aggregates of this type.
    #[strum(message = "Use the operations for this kind of resource.", props(statuses = "403"))]
    ManagedType,
    /// Only an import may append an event with the actor and the time of another log.
    #[strum(message = "Leave out what the original log recorded, or import the event.", props(statuses = "403"))]
    RecordedElsewhere,
    /// Events with this name are sent by the server alone.
    #[strum(message = "Choose another name.", props(statuses = "403"))]
    ReservedEvent,
    /// The caller may not use the channel.
    #[strum(message = "Use a key with the scope that the message names.", props(statuses = "403"))]
    UnauthorizedChannel,
    /// The signed link is invalid or has expired.
    #[strum(message = "Ask for a new link.", props(statuses = "403"))]
    InvalidLink,
    /// A browser sent the request from a page of another origin.
    #[strum(message = "Send the request from a page of the server itself.", props(statuses = "403"))]
    CrossOriginRefused,
    /// The client speaks a version of the socket protocol that the server lacks.
    #[strum(message = "Use a version that the message names.", props(statuses = "403"))]
    UnsupportedVersion,
    /// The request names a host that the server does not serve to models.
    #[strum(message = "Use the address of the server, or set `[mcp] allowed_hosts`.", props(statuses = "403"))]
    HostRefused,
    /// The resource does not exist, or belongs to another workspace.
    #[strum(message = "Check the id and the path.", props(statuses = "404"))]
    NotFound,
    /// The path has no operation with this method.
    #[strum(message = "Use a method that the OpenAPI document lists for the path.", props(statuses = "405"))]
    MethodNotAllowed,
    /// The client does not accept the media types of the response.
    #[strum(message = "Send the header `Accept` that the protocol requires.", props(statuses = "406"))]
    NotAcceptable,
    /// The body did not arrive in time.
    #[strum(message = "Send the request again over a faster connection.", props(statuses = "408"))]
    RequestTimeout,
    /// The stream is not at the expected version. `current_version` is its version.
    #[strum(message = "Read the aggregate again, and repeat the change.", props(statuses = "409"))]
    VersionConflict,
    /// The aggregate to create exists.
    #[strum(message = "Use another verb or another id.", props(statuses = "409"))]
    AggregateExists,
    /// The aggregate is deleted.
    #[strum(message = "Restore the aggregate, or use another id.", props(statuses = "409"))]
    AggregateDeleted,
    /// The stream belongs to an aggregate of another type.
    #[strum(message = "Use another id.", props(statuses = "409"))]
    AggregateTypeMismatch,
    /// The stream or file belongs to another project.
    #[strum(message = "Use the project of the aggregate, or another id.", props(statuses = "409"))]
    ProjectMismatch,
    /// The log contains an event with this id and another content.
    #[strum(message = "Choose a different id for each event.", props(statuses = "409"))]
    EventIdConflict,
    /// The idempotency key was used for another request.
    #[strum(message = "Use a different idempotency key for each request.", props(statuses = "409"))]
    IdempotencyMismatch,
    /// The id derived from the idempotency key belongs to another aggregate.
    #[strum(message = "Use another idempotency key.", props(statuses = "409"))]
    IdempotencyKeyTaken,
    /// Another resource of the project has the slug. `aggregate_id` names it.
    #[strum(message = "Choose another slug.", props(statuses = "409"))]
    SlugTaken,
    /// Another agent has the name.
    #[strum(message = "Choose another name.", props(statuses = "409"))]
    NameTaken,
    /// Existing aggregates do not fit the new definition.
    #[strum(message = "Correct the definition, or repeat it with `force`.", props(statuses = "409"))]
    BreakingRedefinition,
    /// The number of resources differs from the expected number.
    #[strum(message = "Repeat the request with the number in the response.", props(statuses = "409"))]
    CountMismatch,
    /// The status of the task does not allow the action.
    #[strum(message = "Read the task again; `allowed_actions` lists the allowed actions.", props(statuses = "409"))]
    TaskStateConflict,
    /// The caller does not hold the lease of the task, or the lease has expired.
    #[strum(message = "Claim the task again.", props(statuses = "409"))]
    NotLeaseHolder,
    /// The task is assigned to somebody else.
    #[strum(message = "Leave the task to its assignee.", props(statuses = "409"))]
    NotAssignee,
    /// The review settings of the task do not allow the action.
    #[strum(message = "Choose one of `allowed_actions`.", props(statuses = "409"))]
    ActionNotAllowed,
    /// The output of the task has to be reviewed by a person.
    #[strum(message = "Leave out `\"review\": false`.", props(statuses = "409"))]
    ReviewRequired,
    /// The output was delivered before changes were requested.
    #[strum(message = "Wait for new output, or send `\"accept_superseded\": true`.", props(statuses = "409"))]
    Superseded,
    /// The aggregate of an effect has changed since its author read it. `difference` shows how.
    #[strum(message = "Look at the difference, then send `\"accept_stale\": true`.", props(statuses = "409"))]
    Stale,
    /// The effect of an artifact cannot be appended.
    #[strum(message = "Reject the output or request changes.", props(statuses = "409"))]
    EffectRefused,
    /// The edit changes the output but not the effect of the output.
    #[strum(message = "Edit the effect as well.", props(statuses = "409"))]
    EffectUnchanged,
    /// The output of the task has changed since the edit began.
    #[strum(message = "Read the task again, and repeat the edit.", props(statuses = "409"))]
    ArtifactsChanged,
    /// The question of the agent has changed since the answer began.
    #[strum(message = "Read the task again, and answer its question.", props(statuses = "409"))]
    QuestionChanged,
    /// The effects of an approval are more than one batch of events can have.
    #[strum(message = "Approve fewer artifacts, or request smaller ones.", props(statuses = "409"))]
    ApprovalTooLarge,
    /// The task has the maximum number or size of artifacts.
    #[strum(message = "Deliver fewer or smaller artifacts.", props(statuses = "409"))]
    TaskFull,
    /// Too many keys have delivered output for the task.
    #[strum(message = "Deliver with a key that has already delivered output of the task.", props(statuses = "409"))]
    TooManyDeliverers,
    /// The agent gets no work, because the agent is disabled or its plugin is not enabled.
    #[strum(message = "Enable the agent, or choose another one.", props(statuses = "409"))]
    AgentDisabled,
    /// A plugin does the work of the agent.
    #[strum(message = "Choose an agent that no plugin runs.", props(statuses = "409"))]
    ScriptedAgent,
    /// A user with the address is a member of the workspace.
    #[strum(message = "Change the role of the member.", props(statuses = "409"))]
    AlreadyMember,
    /// The person has not accepted the invitation yet.
    #[strum(message = "Wait until the person has accepted.", props(statuses = "409"))]
    NotJoined,
    /// The member owns the workspace and stays an owner.
    #[strum(message = "Make another member the owner of the workspace first.", props(statuses = "409"))]
    WorkspaceOwner,
    /// The first workspace of an installation cannot be deleted.
    #[strum(message = "Delete only other workspaces.", props(statuses = "409"))]
    FirstWorkspace,
    /// The store has no workspace yet.
    #[strum(message = "Start the server once, which creates the first workspace.", props(statuses = "409"))]
    NoWorkspace,
    /// The key has expired and has no successor.
    #[strum(message = "Create a new key.", props(statuses = "409"))]
    KeyExpired,
    /// Keys are derived from the key. `derived_keys` lists them.
    #[strum(
        message = "Repeat with `cascade=true` to revoke them, or with `cascade=false` to keep them.",
        props(statuses = "409")
    )]
    DerivedKeys,
    /// The file has changed since the upload link was created.
    #[strum(message = "Ask for a new link.", props(statuses = "409"))]
    FileChanged,
    /// The graph is already being rebuilt.
    #[strum(message = "Wait until the rebuild has ended.", props(statuses = "409"))]
    RebuildRunning,
    /// A plugin was reloaded during the rebuild of the graph, or another server has rebuilt it.
    #[strum(message = "Rebuild again if the graph is not the expected one.", props(statuses = "409"))]
    RebuildOvertaken,
    /// The store has workspaces, and a whole installation is restored only into an empty store.
    #[strum(message = "Restore into an empty store, or restore one workspace.", props(statuses = "409"))]
    StoreNotEmpty,
    /// An event of the workspace differs from the archived event at its position.
    #[strum(message = "Restore into an empty store.", props(statuses = "409"))]
    OtherHistory,
    /// The server makes no backups.
    #[strum(message = "Set `[backup] url`.", props(statuses = "409"))]
    BackupDisabled,
    /// The body is larger than the operation allows.
    #[strum(message = "Send a smaller body.", props(statuses = "413"))]
    PayloadTooLarge,
    /// The body has a media type that the operation does not read.
    #[strum(message = "Send one of the types that the message names.", props(statuses = "415"))]
    UnsupportedMediaType,
    /// The file has no bytes in the requested range.
    #[strum(message = "Ask for a range within the file's size.", props(statuses = "416"))]
    RangeNotSatisfiable,
    /// The path accepts only WebSocket connections.
    #[strum(message = "Connect with a WebSocket client.", props(statuses = "426"))]
    UpgradeRequired,
    /// The key, or the address, has sent too many requests in a minute.
    #[strum(message = "Wait for the seconds in `Retry-After`.", props(statuses = "429"))]
    RateLimited,
    /// Too many queries run or wait.
    #[strum(message = "Wait for the seconds in `Retry-After`.", props(statuses = "429"))]
    TooManyQueries,
    /// The workspace has the maximum number of open event streams.
    #[strum(message = "Close a stream, or wait.", props(statuses = "429"))]
    TooManyStreams,
    /// The address has too many open connections.
    #[strum(message = "Close connections, or use one for several requests.", props(statuses = "429"))]
    TooManyConnections,
    /// The server failed. Its log has the reason under `request_id`.
    #[strum(message = "Report the failure with `request_id`.", props(statuses = "500"))]
    Internal,
    /// The server holds as many connections, or bytes of bodies, as it may.
    #[strum(message = "Wait for the seconds in `Retry-After`.", props(statuses = "503"))]
    Busy,
    /// The store does not respond, or other writers keep conflicting.
    #[strum(message = "Wait for the seconds in `Retry-After`, and repeat the request.", props(statuses = "503"))]
    Unavailable,
    /// The signing keys of the identity provider cannot be fetched.
    #[strum(message = "Wait for the seconds in `Retry-After`.", props(statuses = "503"))]
    IssuerUnavailable,
    /// The events are in the log, and not in the archive yet.
    #[strum(
        message = "Repeat the request with the same `Idempotency-Key` or event ids to wait again.",
        props(statuses = "503")
    )]
    NotArchived,
}

impl ErrorCode {
    /// Returns the code as responses contain it, such as `version_conflict`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the meaning of the code.
    pub fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Returns the advice for clients that get the code.
    pub fn remedy(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }

    /// Returns the statuses of HTTP responses with the code, separated by spaces.
    pub fn statuses(self) -> &'static str {
        self.get_str("statuses").unwrap_or_default()
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ErrorCode> for Value {
    fn from(code: ErrorCode) -> Value {
        Value::from(code.name())
    }
}
