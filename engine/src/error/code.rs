//! The codes of all errors, each with its meaning and with advice for clients.

use strum::{Display, EnumIter, EnumMessage, EnumProperty, IntoStaticStr};

use crate::model::value::Value;

/// Declares the codes, each with its meaning, the statuses of responses with the code, and advice for clients.
macro_rules! error_codes {
    ($($(#[$meaning:meta])+ $code:ident $statuses:tt: $advice:tt;)+) => {
        /// The code of an error, for programs. Codes are stable. The doc comment of a code is the meaning of the code,
        /// and the `message` attribute is advice for clients. `docs/errors.md` lists all codes with their meanings and
        /// advice.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumIter, EnumMessage, EnumProperty, IntoStaticStr)]
        #[strum(serialize_all = "snake_case")]
        pub enum ErrorCode {
            $($(#[$meaning])+ #[strum(message = $advice, props(statuses = $statuses))] $code,)+
        }
    };
}
error_codes! {
    /// The request has a value that is not allowed. `details` names each place.
    InvalidInput "400": "Correct the values that `details` and `error` name.";
    /// The body of the request is not JSON, or does not have the form that the operation expects.
    InvalidBody "400": "Correct the body at the place that `error` names.";
    /// The cursor was not issued for this list or these filters, or the meaning of the filters has changed.
    InvalidCursor "400": "Begin with the first page.";
    /// The position or version is beyond the end of the log or stream, for example after a restore of an older copy.
    PositionBeyondHead "400": "Begin again from the last event that exists.";
    /// The pipeline exceeded its time limit.
    QueryTimeout "400": "Select fewer rows in an earlier stage, or raise `[pipeline] timeout`.";
    /// The plugin has no hook that the request can replay.
    NoSuchHook "400": "Name one of the hooks that the message lists.";
    /// The plugin is compiled into the server and has no files.
    PluginWithoutFiles "400": "Choose a plugin that consists of scripts.";
    /// The source of the plugin cannot be used.
    PluginRefused "400 409": "Correct the source at the place that `error` names.";
    /// The script of the tool failed.
    ToolFailed "400": "Correct the arguments, or the script at the place that `error` names.";
    /// The output of the tool exceeds the maximum size of a response.
    ResponseTooLarge "400": "Request fewer rows or fewer fields.";
    /// The plan of the workspace allows no more agents.
    AgentLimitReached "400": "Delete an agent, or change the plan.";
    /// The plan of the workspace allows no more projects.
    ProjectLimitReached "400": "Delete a project, or change the plan.";
    /// The files of the workspace would exceed the storage of its plan.
    StorageQuotaExceeded "400": "Delete files, or change the plan.";
    /// The request has no bearer token, or its bearer token is unknown, expired or revoked.
    Unauthenticated "401": "Send a key or a token that is valid.";
    /// The scope of the operation requires an active subscription, which the user does not have.
    SubscriptionRequired "402": "Change the plan.";
    /// The key does not have the required scope. `required` lists the scopes.
    InsufficientScope "403": "Use a key with the scope that the message names.";
    /// The role of the caller in the workspace is too low.
    InsufficientRole "403": "Ask an owner of the workspace for a higher role.";
    /// The caller may listen to the agent, but may not act for the agent.
    InsufficientRight "403": "Use a key with the scope and the role that the message names.";
    /// Only an owner of the workspace may use the operation.
    OwnerRequired "403": "Ask an owner of the workspace to send the request.";
    /// The operation concerns the whole installation, and only owners of its first workspace may use it.
    OperatorRequired "403": "Ask the operator of the installation to send the request.";
    /// Only a person who has signed in through an identity provider may use the operation.
    SessionRequired "403": "Sign in.";
    /// The user is not a member of the workspace.
    NotAMember "403": "Ask an owner of the workspace for an invitation.";
    /// The key is valid only in its own workspace.
    OtherWorkspace "403": "Leave out the header that names a workspace, or use another key.";
    /// The key belongs to another user. Only that user may rotate the key.
    OtherUser "403": "Ask the user of the key to rotate the key, or revoke the key.";
    /// Only an owner with every scope can create a key for all workspaces, and only with a token or with another key
    /// for all workspaces.
    AllWorkspaces "403": "Sign in as an owner, or use a key for all workspaces.";
    /// The new key would expire after the key that creates it.
    OutlivesCaller "403": "Choose an earlier expiry time.";
    /// The new key would have more than 16 ancestors.
    DerivedTooOften "403": "Create the key with a key that has fewer ancestors.";
    /// The user has the maximum number of keys.
    TooManyKeys "403": "Revoke a key.";
    /// The workspace has the maximum number of invitations.
    TooManyInvitations "403": "Withdraw an invitation.";
    /// The key is bound to agents. Such a key can only read, work on the tasks of its agents, and revoke itself.
    AgentKey "403": "Use a key that is not bound to agents.";
    /// The key is bound to other agents.
    OtherAgent "403": "Use a key that is bound to this agent.";
    /// The caller has delivered the output, and another person must decide on the output.
    OwnDelivery "403": "Ask another person to decide, or set `[mailbox] own_deliveries`.";
    /// The key is bound to agents, and the task has output of another author.
    OthersOutput "403": "Claim another task, or use a key that is not bound to agents.";
    /// Another author delivered the artifact.
    NotAuthor "403": "Deliver an artifact with another name.";
    /// Only the creator of the task or an owner of the workspace may cancel the task.
    NotCreator "403": "Ask the creator of the task, or an owner.";
    /// The type is built in and cannot be defined.
    BuiltinType "403": "Define a type with another name.";
    /// Only the program appends events to aggregates of this type.
    ManagedType "403": "Use the operations for this kind of resource.";
    /// Only an import may append an event with the actor and the time that another log recorded.
    RecordedElsewhere "403": "Leave out the actor and the time, or import the event.";
    /// Only the server may send events with this name.
    ReservedEvent "403": "Choose another name.";
    /// The caller may not use the channel.
    UnauthorizedChannel "403": "Use the channel `agent:ID` of an agent that the caller may access.";
    /// The signed link is invalid or has expired.
    InvalidLink "403": "Ask for a new link.";
    /// A browser's preflight request names a method or a header that the server does not allow for requests from pages
    /// of other origins.
    CrossOriginRefused "403": "Use only the methods and headers of the OpenAPI document.";
    /// The client requested a version of the socket protocol that the server does not support.
    UnsupportedVersion "403": "Use a version that the message names.";
    /// The request to the MCP endpoint names a host that is not allowed.
    HostRefused "403": "Use the address of the server, or set `[mcp] allowed_hosts`.";
    /// The resource does not exist, or belongs to another workspace.
    NotFound "404": "Check the id and the path.";
    /// The path has no operation with this method.
    MethodNotAllowed "405": "Use a method that the OpenAPI document lists for the path.";
    /// The client does not accept the media types of the response.
    NotAcceptable "406": "Send the header `Accept` that the protocol requires.";
    /// The body did not arrive in time.
    RequestTimeout "408": "Send the request again over a faster connection.";
    /// The stream is not at the expected version. `current_version` is the version of the stream.
    VersionConflict "409": "Read the aggregate again, and repeat the change.";
    /// The aggregate that the event would create already exists.
    AggregateExists "409": "Use another verb or another id.";
    /// The aggregate is deleted.
    AggregateDeleted "409": "Restore the aggregate, or use another id.";
    /// The stream belongs to an aggregate of another type.
    AggregateTypeMismatch "409": "Use another id.";
    /// The aggregate or file does not belong to the given project.
    ProjectMismatch "409": "Use the project of the aggregate, or another id.";
    /// The log contains an event with this id and different content.
    EventIdConflict "409": "Choose a different id for each event.";
    /// The idempotency key was used for another request.
    IdempotencyMismatch "409": "Use a different idempotency key for each request.";
    /// The id derived from the idempotency key belongs to another aggregate.
    IdempotencyKeyTaken "409": "Use another idempotency key.";
    /// Another resource of the project has the slug. `aggregate_id` is the id of that resource.
    SlugTaken "409": "Choose another slug.";
    /// Another agent has the name.
    NameTaken "409": "Choose another name.";
    /// Existing aggregates do not fit the new definition.
    BreakingRedefinition "409": "Correct the definition, or repeat the request with `force=true`.";
    /// The number of resources differs from the expected number.
    CountMismatch "409": "Repeat the request with the `count` of the response as `expected`.";
    /// The status of the task does not allow the action.
    TaskStateConflict "409": "Read the task again; `allowed_actions` lists the allowed actions.";
    /// The caller does not hold the lease of the task, or the lease has expired.
    NotLeaseHolder "409": "Claim the task again.";
    /// The task is assigned to another agent or user.
    NotAssignee "409": "Leave the task to its assignee.";
    /// The review settings of the task do not allow the action.
    ActionNotAllowed "409": "Choose one of `allowed_actions`.";
    /// The output of the task has to be reviewed by a person.
    ReviewRequired "409": "Leave out `\"review\": false`.";
    /// The output was delivered before changes were requested.
    Superseded "409": "Wait for new output, or send `\"accept_superseded\": true`.";
    /// The aggregate of an effect has changed since the author of the effect read the aggregate. `difference` shows the
    /// changes.
    Stale "409": "Check `difference`, then send `\"accept_stale\": true`.";
    /// The effect of an artifact cannot be appended.
    EffectRefused "409": "Reject the output or request changes.";
    /// The edit changes the output but not the effect of the output.
    EffectUnchanged "409": "Edit the effect as well.";
    /// The output of the task has changed since the edit began.
    ArtifactsChanged "409": "Read the task again, and repeat the edit.";
    /// The question of the agent has changed since the answer began.
    QuestionChanged "409": "Read the task again, and answer its question.";
    /// The effects of an approval exceed the maximum size of a batch of events.
    ApprovalTooLarge "409": "Approve fewer artifacts, or request smaller ones.";
    /// The task has the maximum number or size of artifacts.
    TaskFull "409": "Deliver fewer or smaller artifacts.";
    /// The maximum number of keys and sessions have delivered output of the task.
    TooManyDeliverers "409": "Deliver with a key that has already delivered output of the task.";
    /// The agent gets no work, because the agent is disabled or its plugin is not enabled.
    AgentDisabled "409": "Enable the agent, or choose another one.";
    /// A plugin does the work of the agent.
    ScriptedAgent "409": "Choose an agent that no plugin runs.";
    /// A user with the address is a member of the workspace.
    AlreadyMember "409": "Change the role of the member.";
    /// The person has not accepted the invitation yet.
    NotJoined "409": "Wait until the person has accepted.";
    /// The owner of the workspace cannot be removed or given another role.
    WorkspaceOwner "409": "Make another member the owner of the workspace first.";
    /// The first workspace of an installation cannot be deleted.
    FirstWorkspace "409": "Choose another workspace.";
    /// The store has no workspace yet.
    NoWorkspace "409": "Start the server once, which creates the first workspace.";
    /// The key has expired. An expired key cannot be rotated.
    KeyExpired "409": "Create a new key.";
    /// Other keys are derived from the key. `derived_keys` lists the derived keys.
    DerivedKeys "409": "Repeat with `cascade=true` to revoke the derived keys, or `cascade=false` to keep them.";
    /// The file has changed since the upload link was created.
    FileChanged "409": "Ask for a new link.";
    /// The graph is already being rebuilt.
    RebuildRunning "409": "Wait until the rebuild has ended.";
    /// A plugin was reloaded during the rebuild of the graph, or another server has rebuilt the graph.
    RebuildOvertaken "409": "Rebuild the graph again if a plugin was reloaded.";
    /// The store has workspaces, but a whole installation can be restored only into an empty store.
    StoreNotEmpty "409": "Restore into an empty store, or restore one workspace.";
    /// An event of the workspace differs from the archived event at its position.
    OtherHistory "409": "Restore into an empty store.";
    /// The server makes no backups.
    BackupDisabled "409": "Set `[backup] url`.";
    /// The body is larger than the operation allows.
    PayloadTooLarge "413": "Send a smaller body.";
    /// The body has a media type that the operation does not read.
    UnsupportedMediaType "415": "Send one of the types that the message names.";
    /// The file has no bytes in the requested range.
    RangeNotSatisfiable "416": "Request a range within the file's size.";
    /// The path accepts only WebSocket connections.
    UpgradeRequired "426": "Connect with a WebSocket client.";
    /// The key, or the address, has sent too many requests in a minute.
    RateLimited "429": "Wait for the number of seconds in `Retry-After`.";
    /// Too many queries are running or waiting.
    TooManyQueries "429": "Wait for the number of seconds in `Retry-After`.";
    /// The workspace has the maximum number of open event streams.
    TooManyStreams "429": "Close a stream, or wait.";
    /// The address has too many open connections.
    TooManyConnections "429": "Close connections, or use one for several requests.";
    /// The server failed. Its log has the reason under `request_id`.
    Internal "500": "Report the failure with `request_id`.";
    /// The server has reached its limit on connections, or on the memory for request bodies.
    Busy "503": "Wait for the number of seconds in `Retry-After`.";
    /// The store does not respond, or other writers keep conflicting.
    Unavailable "503": "Wait for the number of seconds in `Retry-After`, and repeat the request.";
    /// The signing keys of the identity provider cannot be fetched.
    IssuerUnavailable "503": "Wait for the number of seconds in `Retry-After`.";
    /// The events are in the log, but not in the archive yet.
    NotArchived "503": "Repeat the request with the same `Idempotency-Key` or event ids to wait again.";
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

impl From<ErrorCode> for Value {
    fn from(code: ErrorCode) -> Value {
        Value::from(code.name())
    }
}
