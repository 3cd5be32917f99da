//! The errors of all operations, grouped by how the caller can react to them.

use crate::model::access::Scope;
use crate::model::value::Object;
use crate::model::violation::Violation;
use crate::store;

/// The error code of an event that does not restore its deleted aggregate.
pub const AGGREGATE_DELETED: &str = "aggregate_deleted";
/// The error code of a request that reuses the idempotency key of a different request.
pub const IDEMPOTENCY_MISMATCH: &str = "idempotency_mismatch";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request carries no credential or an unknown one.
    #[error("{0}")]
    Unauthenticated(&'static str),

    /// The caller is authenticated but holds none of these scopes.
    #[error("this operation needs the scope {}", names(.required, " or "))]
    InsufficientScope { required: Vec<Scope> },

    /// The caller is authenticated but does not hold all of these scopes.
    #[error("this operation needs the scope {}", names(.lacking, " and "))]
    ScopesLacking { lacking: Vec<Scope> },

    /// The caller holds one of these scopes but has no active subscription, which the scope requires.
    #[error("the scope {} requires an active subscription", names(.required, " or "))]
    SubscriptionRequired { required: Vec<Scope> },

    /// The operation is not allowed for this caller for a reason other than its scopes.
    #[error("{message}")]
    Forbidden { code: &'static str, message: String },

    /// The input is invalid.
    #[error("{message}")]
    Invalid { code: &'static str, message: String, violations: Vec<Violation> },

    /// A pipeline was rejected, or failed on its rows.
    #[error(transparent)]
    Pipeline(#[from] crate::pipeline::error::Error),

    /// The resource does not exist or belongs to another workspace. Both cases get the same response.
    #[error("{what} not found")]
    NotFound { what: String },

    /// The resource is not in the state that the caller expects.
    #[error("{message}")]
    Conflict { code: &'static str, message: String, details: Box<Object> },

    /// The limit of concurrent queries is reached. The same request may succeed later.
    #[error("{0}")]
    TooManyQueries(&'static str),

    /// The store does not respond, or other writers keep causing conflicts. The same request may succeed later.
    #[error("the store is not available")]
    Unavailable(#[source] store::Error),

    /// The signing keys of the token's issuer could not be fetched. The same request may succeed later.
    #[error("the signing keys of the token's issuer are not available")]
    IssuerSilent,

    /// A bug in this program. No input may cause it.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Error {
        Error::Forbidden { code, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid { code: "invalid_input", message: message.into(), violations: Vec::new() }
    }

    /// Returns the error for a request that would exceed a limit of the plan.
    pub fn over_limit(code: &'static str, message: impl Into<String>) -> Error {
        Error::Invalid { code, message: message.into(), violations: Vec::new() }
    }

    /// Returns the error for a cursor that was not issued for this request.
    pub fn invalid_cursor(message: impl Into<String>) -> Error {
        Error::Invalid { code: "invalid_cursor", message: message.into(), violations: Vec::new() }
    }

    /// Returns the error for one violation at `pointer`.
    pub fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Error {
        Error::from(vec![Violation { pointer: pointer.into(), message: message.into() }])
    }

    pub fn not_found(what: &str, id: &str) -> Error {
        // Ids are client input: the message shows at most 64 characters.
        let shown: String = id.chars().take(64).collect();
        Error::NotFound { what: format!("{what} '{shown}'") }
    }

    pub fn conflict(code: &'static str, message: impl Into<String>) -> Error {
        Error::Conflict { code, message: message.into(), details: Box::default() }
    }

    /// Returns the error for a stream that is not at the expected version.
    pub fn version_conflict(current_version: u64) -> Error {
        let mut details = Object::new();
        details.push("current_version", current_version as i64);
        Error::Conflict {
            code: "version_conflict",
            message: format!("the stream is at version {current_version}"),
            details: Box::new(details),
        }
    }

    /// Returns the error for an event that does not restore its deleted aggregate.
    pub fn aggregate_deleted(current_version: u64) -> Error {
        let mut details = Object::new();
        details.push("current_version", current_version as i64);
        let message = "the aggregate is deleted; an event <type>.created or one with \"restore\": true brings it back";
        Error::Conflict { code: AGGREGATE_DELETED, message: message.into(), details: Box::new(details) }
    }

    /// Rewrites an error about a single event as an error about the first event of a list.
    pub fn in_list(self) -> Error {
        let Error::Invalid { code, mut violations, message } = self else { return self.at_event(0) };
        if violations.is_empty() {
            return Error::Invalid { code, message, violations };
        }
        violations.iter_mut().for_each(|violation| violation.pointer.insert_str(0, "/events/0"));
        Error::Invalid { code, message: summary(&violations), violations }
    }

    /// Adds the index of the conflicting event to a conflict. Other errors stay unchanged.
    pub fn at_event(mut self, index: usize) -> Error {
        // An idempotency key belongs to the whole request, not to one event.
        if let Error::Conflict { code, details, .. } = &mut self
            && *code != IDEMPOTENCY_MISMATCH
        {
            details.push("index", index as i64);
        }
        self
    }

    pub fn internal(source: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Internal(Box::new(source))
    }
}

impl From<Vec<Violation>> for Error {
    fn from(violations: Vec<Violation>) -> Error {
        Error::Invalid { code: "invalid_input", message: summary(&violations), violations }
    }
}

fn summary(violations: &[Violation]) -> String {
    let summary = violations.iter().map(|violation| match violation.pointer.as_str() {
        "" => violation.message.clone(),
        pointer => format!("{pointer}: {}", violation.message),
    });
    summary.collect::<Vec<_>>().join("; ")
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        match error {
            store::Error::Conflict
            | store::Error::Closing
            | store::Error::Disk(_)
            | store::Error::Unwritable(_)
            | store::Error::Blobs(_) => Error::Unavailable(error),
            store::Error::Batch(_) => Error::internal(error),
            store::Error::Database(ref inner) if inner.is_connection() => Error::Unavailable(error),
            store::Error::Database(_) | store::Error::Opening(_) | store::Error::Corrupt(_) => Error::internal(error),
        }
    }
}

fn names(scopes: &[Scope], between: &str) -> String {
    scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(between)
}
