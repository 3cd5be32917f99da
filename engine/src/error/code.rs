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
    NoSuchHook "400": "Use one of the hooks `enrich`, `route` and `work` that the message lists.";
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
    InsufficientRight "403": "Use a key with the named scope, of a user with the named role and plan.";
    /// Only an owner of the workspace may use the operation.
    OwnerRequired "403": "Ask an owner of the workspace to send the request.";
    /// The operation concerns the whole installation, and only owners of its first workspace may use it.
    OperatorRequired "403": "Ask the operator of the installation to send the request.";
    /// Only a person who has signed in through an identity provider may use the operation.
    SessionRequired "403": "Sign in.";
    /// The user is not a member of the workspace, or of any workspace.
    NotAMember "403": "Ask an owner of the workspace for an invitation.";
    /// The key is valid only in its own workspace.
    OtherWorkspace "403": "Leave out the header `Foldwork-Workspace`, or use another key.";
    /// The key belongs to another user. Only that user may rotate the key.
    OtherUser "403": "Ask the user of the key to rotate the key, or revoke the key.";
    /// Only an owner with every scope can create, rotate or revoke a key for all workspaces, and only with a token or
    /// with another key for all workspaces.
    AllWorkspaces "403": "Sign in as an owner, or use a key for all workspaces.";
    /// A key cannot create, rotate or revoke a key that expires later or never.
    OutlivesCaller "403": "Choose an earlier expiry time, or use a key that does not expire before the other key.";
    /// The new key, or a key that is derived from a rotated key, would have more than 16 ancestors.
    DerivedTooOften "403": "Create or rotate the key with a key that has fewer ancestors.";
    /// The user has the maximum number of keys.
    TooManyKeys "403": "Revoke a key.";
    /// The workspace has the maximum number of invitations.
    TooManyInvitations "403": "Withdraw an invitation.";
    /// A key that is bound to agents can only read, work for its agents, report their presence, and revoke itself.
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
    /// The type is built in and cannot be redefined.
    BuiltinType "403": "Define a type with another name.";
    /// Only the program defines this type and appends events to aggregates of this type.
    ManagedType "403": "Use the operations for this kind of resource, or define a type with another name.";
    /// Only an import may append an event with the actor and the time that another log recorded.
    RecordedElsewhere "403": "Leave out the actor and the time, or import the event.";
    /// Only the server may send events with this name.
    ReservedEvent "403": "Choose another name.";
    /// The channel is not the channel of an agent, or the caller may not access the agent.
    UnauthorizedChannel "403": "Use the channel `agent:ID` of an agent that the caller may access.";
    /// The signed link is invalid or has expired.
    InvalidLink "403": "Request a new link.";
    /// A browser's preflight request names a method or a header that the server does not allow for requests from pages
    /// of other origins.
    CrossOriginRefused "403": "Use only the methods and headers of the OpenAPI document.";
    /// The client requested a version of the socket protocol that the server does not support.
    UnsupportedVersion "403": "Use a version that the message names.";
    /// The request to the MCP endpoint names a host or an origin that is not allowed.
    HostRefused "403": "Use the address of the server, or set `[mcp] allowed_hosts` or `[mcp] allowed_origins`.";
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
    /// The id derived from the idempotency key belongs to a deleted task, or to an aggregate that is not a task.
    IdempotencyKeyTaken "409": "Use another idempotency key.";
    /// Another project or article has the slug. For an article, `aggregate_id` is the id of the article with the slug.
    SlugTaken "409": "Choose another slug.";
    /// Another agent has the name.
    NameTaken "409": "Choose another name.";
    /// Existing aggregates do not fit the new definition.
    BreakingRedefinition "409": "Correct the definition, or repeat the request with `force=true`.";
    /// The number of resources differs from the expected number.
    CountMismatch "409": "Repeat the request with the `count` of the response as `expected`.";
    /// The status of the task does not allow the action.
    TaskStateConflict "409": "Read the task again; `allowed_actions` lists the actions that a person may take.";
    /// The caller does not hold the lease of the task, or the lease has expired.
    NotLeaseHolder "409": "Read the task again, and claim the task if no agent holds the task.";
    /// The task is held by another agent, or is not assigned to the agent.
    NotAssignee "409": "Leave the task to its assignee, or claim the task if the task has no assignee.";
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
    /// The question of the agent has changed since the request began.
    QuestionChanged "409": "Read the task again, and answer its question.";
    /// The effects of an approval exceed `max_effects` or `max_bytes`.
    ApprovalTooLarge "409": "Request smaller artifacts, or reject the task and create several smaller tasks.";
    /// The content of the task would exceed a limit. `limit` names the limit, and `maximum` is its value.
    TaskFull "409": "Send fewer or smaller messages or artifacts, or continue in another task.";
    /// The maximum number of keys and sessions have delivered output of the task.
    TooManyDeliverers "409": "Deliver with a key that has already delivered output of the task.";
    /// The agent gets no work, because the agent is disabled or its plugin is not enabled.
    AgentDisabled "409": "Enable the agent, or choose another one.";
    /// A plugin does the work of the agent. Only `status` and `reassign_to` of such an agent can be changed, and the
    /// agent cannot be deleted while the plugin is enabled.
    ScriptedAgent "409": "Change only `status` or `reassign_to`, or disable the agent.";
    /// A user with the email address is already a member of the workspace.
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
    FileChanged "409": "Request a new link.";
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
    /// The key or the client's network address has sent too many requests or too many wrong tokens in a minute.
    RateLimited "429": "Wait for the number of seconds in `Retry-After`.";
    /// Too many queries are running or waiting, or the running queries use too much memory.
    TooManyQueries "429": "Wait for the number of seconds in `Retry-After`.";
    /// The workspace has the maximum number of open event streams or sockets.
    TooManyStreams "429": "Close an event stream or a socket, or wait.";
    /// The address has too many open connections.
    TooManyConnections "429": "Close connections, or use one for several requests.";
    /// The server failed. Its log has the reason under `request_id`.
    Internal "500": "Report the failure with `request_id`.";
    /// The server has reached its limit on connections, or on the memory for request bodies.
    Busy "503": "Wait for the number of seconds in `Retry-After`.";
    /// The store does not respond, other writers keep conflicting, or the workspace is closing.
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
