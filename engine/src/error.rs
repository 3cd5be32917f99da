//! Every way in which an operation can fail, arranged by what the caller can do about it.

use crate::model::access::Scope;
use crate::model::value::Object;
use crate::model::violation::Violation;
use crate::store;

/// The code of a conflict with a deletion.
pub const AGGREGATE_DELETED: &str = "aggregate_deleted";
/// The code of a conflict of two requests under one idempotency key.
pub const IDEMPOTENCY_MISMATCH: &str = "idempotency_mismatch";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody, or nobody known.
    #[error("{0}")]
    Unauthenticated(&'static str),

    /// Known, but not allowed.
    #[error("this operation needs the scope {}", names(.required, " or "))]
    InsufficientScope { required: Vec<Scope> },

    /// Known, but without each of these scopes.
    #[error("this operation needs the scope {}", names(.lacking, " and "))]
    ScopesLacking { lacking: Vec<Scope> },

    /// Known, and with the scope, but nobody pays for it.
    #[error("the scope {} takes an active subscription", names(.required, " or "))]
    SubscriptionRequired { required: Vec<Scope> },

    /// Not allowed to anybody by this way.
    #[error("{message}")]
    Forbidden { code: &'static str, message: String },

    /// Something about the input is wrong.
    #[error("{message}")]
    Invalid { code: &'static str, message: String, violations: Vec<Violation> },

    /// A pipeline was refused, or failed on its rows.
    #[error(transparent)]
    Pipeline(#[from] crate::pipeline::error::Error),

    /// It is not there, or it is not the caller's: the same answer.
    #[error("{what} not found")]
    NotFound { what: String },

    /// It is not in the state that the caller expects.
    #[error("{message}")]
    Conflict { code: &'static str, message: String, details: Box<Object> },

    /// As many queries run as may run together; the same request may succeed later.
    #[error("{0}")]
    TooManyQueries(&'static str),

    /// The store does not answer or other writers stay in the way; the same request may succeed later.
    #[error("the store is not available")]
    Unavailable(#[source] store::Error),

    /// The keys of a token's issuer are not known, as it does not tell them; the same request may succeed later.
    #[error("the issuer of the token does not tell its keys at present")]
    IssuerSilent,

    /// A bug of ours; no input may cause it.
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

    /// The plan has no room for what is to be made.
    pub fn over_limit(code: &'static str, message: impl Into<String>) -> Error {
        Error::Invalid { code, message: message.into(), violations: Vec::new() }
    }

    /// The cursor is not one that was given out for what is asked.
    pub fn invalid_cursor(message: impl Into<String>) -> Error {
        Error::Invalid { code: "invalid_cursor", message: message.into(), violations: Vec::new() }
    }

    /// One thing is wrong, at one place.
    pub fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Error {
        Error::from(vec![Violation { pointer: pointer.into(), message: message.into() }])
    }

    pub fn not_found(what: &str, id: &str) -> Error {
        // Ids come from outside: a long one is not repeated.
        let shown: String = id.chars().take(64).collect();
        Error::NotFound { what: format!("{what} '{shown}'") }
    }

    pub fn conflict(code: &'static str, message: impl Into<String>) -> Error {
        Error::Conflict { code, message: message.into(), details: Box::default() }
    }

    /// The stream is not at the version that the caller expects.
    pub fn version_conflict(current_version: u64) -> Error {
        let mut details = Object::new();
        details.push("current_version", current_version as i64);
        Error::Conflict {
            code: "version_conflict",
            message: format!("the stream is at version {current_version}"),
            details: Box::new(details),
        }
    }

    /// The aggregate is deleted, and the event does not bring it back.
    pub fn aggregate_deleted(current_version: u64) -> Error {
        let mut details = Object::new();
        details.push("current_version", current_version as i64);
        let message = "the aggregate is deleted; an event <type>.created or one with \"restore\": true brings it back";
        Error::Conflict { code: AGGREGATE_DELETED, message: message.into(), details: Box::new(details) }
    }

    /// Speaks of the one event of a list, where it spoke of an event alone.
    pub fn in_list(self) -> Error {
        let Error::Invalid { code, mut violations, message } = self else { return self.at_event(0) };
        if violations.is_empty() {
            return Error::Invalid { code, message, violations };
        }
        violations.iter_mut().for_each(|violation| violation.pointer.insert_str(0, "/events/0"));
        Error::Invalid { code, message: shown(&violations), violations }
    }

    /// Says which of several events is in conflict.
    pub fn at_event(mut self, index: usize) -> Error {
        // What is said of the key is said of the whole request.
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
        Error::Invalid { code: "invalid_input", message: shown(&violations), violations }
    }
}

fn shown(violations: &[Violation]) -> String {
    let shown = violations.iter().map(|violation| match violation.pointer.as_str() {
        "" => violation.message.clone(),
        pointer => format!("{pointer}: {}", violation.message),
    });
    shown.collect::<Vec<_>>().join("; ")
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
