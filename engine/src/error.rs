//! The errors of all operations, grouped by how the caller can react to them.

mod code;

pub use code::ErrorCode;

use crate::metric;
use crate::model::access::Scope;
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;
use crate::store;
use crate::store::retry::MayConflict;

/// The error of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request carries no valid credential, for example because the credential is missing, malformed, expired or
    /// revoked.
    #[error("{0}")]
    Unauthenticated(&'static str),

    /// The caller is authenticated but has none of these scopes.
    #[error("this operation needs the scope {}", names(.required, "or"))]
    InsufficientScope { required: Vec<Scope> },

    /// The caller is authenticated but lacks at least one of these scopes, all of which are required.
    #[error("this operation needs the scope{} {}", if .lacking.len() == 1 { "" } else { "s" }, names(.lacking, "and"))]
    ScopesLacking { lacking: Vec<Scope> },

    /// The caller has these scopes but has no active subscription, which each of these scopes requires.
    #[error("the scope {} requires an active subscription", names(.required, "or"))]
    SubscriptionRequired { required: Vec<Scope> },

    /// The operation is not allowed for this caller for a reason other than its scopes.
    #[error("{message}")]
    Forbidden { code: ErrorCode, message: String },

    /// The input is invalid. If the request contains a list of events, `index` is the index of the invalid event, and
    /// the pointers of the violations are relative to this event.
    #[error("{message}")]
    Invalid { code: ErrorCode, message: String, violations: Vec<Violation>, index: Option<usize> },

    /// Reading a body failed: the body of a request, or an object of the archive. The source may be an error from
    /// outside the engine.
    #[error("failed to read the body: {0}")]
    Body(#[source] std::io::Error),

    /// A pipeline was rejected, or failed while processing rows.
    #[error(transparent)]
    Pipeline(#[from] crate::pipeline::error::Error),

    /// The resource does not exist, belongs to another workspace, or is not visible to the caller. All cases get the
    /// same response.
    #[error("{what} not found")]
    NotFound { what: String },

    /// The resource is not in the state that the caller expects. If the request contains a list of events, `index` is
    /// the index of the event that caused the conflict.
    #[error("{message}")]
    Conflict { code: ErrorCode, message: String, details: Box<Object>, index: Option<usize> },

    /// A limit on concurrent queries is reached: the number of running or waiting queries, or the memory that the
    /// queries share. The same request may succeed later.
    #[error("{0}")]
    TooManyQueries(String),

    /// The store or the archive failed or does not respond, other writers keep causing conflicts, or the workspace is
    /// closing. The same request may succeed later.
    #[error("{}", unavailable(.0))]
    Unavailable(#[source] store::Error),

    /// The signing keys of the issuer with this name could not be fetched. The same request may succeed later.
    #[error("could not fetch the signing keys of the issuer {0}; repeat the request")]
    IssuerUnavailable(String),

    /// A bug in this program, or a failure of the store that a retry does not solve. Input from a client must never
    /// cause this error.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the error for an operation that is not allowed for the caller.
    pub fn forbidden(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Forbidden { code, message: message.into() }
    }

    /// Returns the error for an invalid input.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::invalid_with_code(ErrorCode::InvalidInput, message)
    }

    /// Returns the error with the given code for an invalid input.
    pub fn invalid_with_code(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Invalid { code, message: message.into(), violations: Vec::new(), index: None }
    }

    /// Returns the error for a cursor that is not valid for the request.
    pub fn invalid_cursor(message: impl Into<String>) -> Error {
        Error::invalid_with_code(ErrorCode::InvalidCursor, message)
    }

    /// Returns the error for one violation at `pointer`.
    pub fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Error {
        Error::from(vec![Violation { pointer: pointer.into(), message: message.into() }])
    }

    /// Returns the error for a resource that does not exist. `what` is the kind of the resource.
    pub fn not_found(what: &str, id: &str) -> Error {
        // Ids are client input: the message shows at most 64 characters.
        Error::NotFound { what: format!("{what} '{id:.64}'") }
    }

    /// Returns the error for a conflict.
    pub fn conflict(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::conflict_with(code, message, Object::new())
    }

    /// Returns the error for a conflict. The response contains the fields of `details` in addition to the code and the
    /// message.
    pub fn conflict_with(code: ErrorCode, message: impl Into<String>, details: Object) -> Error {
        Error::Conflict { code, message: message.into(), details: Box::new(details), index: None }
    }

    /// Returns the error for a stream that is not at the expected version. The error contains the current version.
    pub fn version_conflict(current_version: u64) -> Error {
        let message = format!("the expected version does not match: the stream is at version {current_version}");
        Error::conflict(ErrorCode::VersionConflict, message).with_detail("current_version", current_version as i64)
    }

    /// Returns the error for an event `<type>.created` on an aggregate that exists.
    pub fn aggregate_exists(id: &str, current_version: u64) -> Error {
        let message = format!(
            "the aggregate '{id:.64}' already exists; use a verb other than `created`, or \"expected_version\": \"any\""
        );
        Error::conflict(ErrorCode::AggregateExists, message).with_detail("current_version", current_version as i64)
    }

    /// Returns the error for an event on a deleted aggregate, if the event does not restore the aggregate.
    pub fn aggregate_deleted(current_version: u64) -> Error {
        let message = "the aggregate is deleted; only <type>.created or an event with \"restore\": true restores it";
        Error::conflict(ErrorCode::AggregateDeleted, message).with_detail("current_version", current_version as i64)
    }

    /// Adds a field to the details of a conflict. Returns any other error unchanged.
    pub fn with_detail(mut self, name: &str, value: impl Into<Value>) -> Error {
        if let Error::Conflict { details, .. } = &mut self {
            details.push(name, value);
        }
        self
    }

    /// Rewrites an error about a single event as an error about the event with this index in a list. Errors about the
    /// whole request stay unchanged.
    pub fn at_event(mut self, at: usize) -> Error {
        match &mut self {
            Error::Invalid { message, violations, index, .. } if !violations.is_empty() => {
                *message = summary(violations, &event_pointer(Some(at)));
                *index = Some(at);
            }
            // An idempotency key belongs to the whole request, not to one event.
            Error::Conflict { code, index, .. } if *code != ErrorCode::IdempotencyMismatch => *index = Some(at),
            _ => {}
        }
        self
    }

    /// Returns the error for a bug in this program, or for a failure that a retry does not solve.
    pub fn internal(source: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Internal(Box::new(source))
    }
}

impl MayConflict for Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Error::Unavailable(store::Error::Conflict))
    }
}

impl From<Vec<Violation>> for Error {
    fn from(violations: Vec<Violation>) -> Error {
        Error::Invalid { code: ErrorCode::InvalidInput, message: summary(&violations, ""), violations, index: None }
    }
}

/// Returns the JSON pointer to the event with this index in a request's body. `None` means that the body is not a list
/// of events, and results in an empty pointer.
pub fn event_pointer(index: Option<usize>) -> String {
    index.map(|index| format!("/events/{index}")).unwrap_or_default()
}

/// Returns the message for violations whose pointers are relative to the pointer `base`.
fn summary(violations: &[Violation], base: &str) -> String {
    let summary = violations.iter().map(|Violation { pointer, message }| match (base, pointer.as_str()) {
        ("", "") => message.clone(),
        _ => format!("{base}{pointer}: {message}"),
    });
    summary.collect::<Vec<_>>().join("; ")
}

impl From<store::Error> for Error {
    /// Converts an error of the store and counts the failure, unless `store::Error::kind` returns `None`, for example
    /// for a conflict. Each converted error is counted once. An error that is created as [`Error::Unavailable`] without
    /// this conversion is not counted, for example a failure of the archive.
    fn from(error: store::Error) -> Error {
        if let Some(kind) = error.kind() {
            metric::STORE_FAILURES.add(&[kind], 1);
        }
        match error {
            store::Error::Conflict
            | store::Error::Closing
            | store::Error::Unresponsive
            | store::Error::Disk(_)
            | store::Error::Unwritable(_)
            | store::Error::Blobs(_)
            | store::Error::Archive(_) => Error::Unavailable(error),
            store::Error::Batch(_) => Error::internal(error),
            store::Error::Database(ref inner) if inner.is_connection() => Error::Unavailable(error),
            store::Error::Database(_)
            | store::Error::Opening(_)
            | store::Error::Loading { .. }
            | store::Error::Locked
            | store::Error::Corrupt { .. } => Error::internal(error),
        }
    }
}

/// Returns the message for an operation that failed because of `cause` and may succeed later.
fn unavailable(cause: &store::Error) -> &'static str {
    match cause {
        store::Error::Conflict => "the request conflicts with other changes of the same data; repeat the request",
        store::Error::Closing => "the workspace is closing; repeat the request",
        _ => "the store is not available",
    }
}

/// Returns the names of the scopes as a list whose last two names are joined by `conjunction`.
fn names(scopes: &[Scope], conjunction: &str) -> String {
    let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} {conjunction} {last}", others.join(", ")),
        _ => names.concat(),
    }
}
