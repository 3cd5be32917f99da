//! The errors that reject or end a pipeline, with MongoDB's error codes.

use std::fmt;
use std::sync::Arc;

use crate::model::hint::did_you_mean;

/// An error of a pipeline. If MongoDB has the same error, the message is MongoDB's message, because clients may compare
/// messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: PipelineErrorCode,
    pub message: String,
    /// The index of the top-level stage that caused the error, if the stage is known.
    pub stage: Option<usize>,
    /// The place of the error inside the pipeline: the names and indexes of the enclosing fields and items, the
    /// innermost first. The last entry is the index of the stage. Empty if the place is not known.
    pub(in crate::pipeline) path: Vec<Arc<str>>,
    /// A suggestion of the correct spelling or notation. The hint is not part of the message.
    pub hint: Option<String>,
    /// Whether the query failed because of the limit on shared memory. The concurrent queries of a caller share memory,
    /// and so do the concurrent queries of a workspace.
    pub is_of_shared_memory: bool,
}

/// The length in bytes at which a message is cut. The values inside a message are cut separately, to fewer bytes.
const MAX_MESSAGE_BYTES: usize = 4_096;

/// The approximate maximum length of the JSON pointer to the place of an error, in bytes.
const MAX_POINTER_BYTES: usize = 1_024;

/// MongoDB's error code for a pipeline that exceeds its memory limit.
pub const EXCEEDED_MEMORY: i32 = 146;

/// The content of `code` in the error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineErrorCode {
    /// MongoDB's error number.
    Number(i32),
    /// The code for a query that ran longer than the server allows.
    QueryTimeout,
}

/// Returns `Err` with an [`Error`]. The first argument is the code. `format!` builds the message from the remaining
/// arguments.
macro_rules! err {
    ($code:expr, $($message:tt)+) => {
        Err($crate::pipeline::value::error::Error::new($code, format!($($message)+)))
    };
}
pub(in crate::pipeline) use err;

/// The result of an operation of a pipeline.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code: PipelineErrorCode::Number(code),
            message: bounded(message.into()),
            stage: None,
            path: Vec::new(),
            hint: None,
            is_of_shared_memory: false,
        }
    }

    /// Returns the error for a query that has exceeded its time limit.
    pub fn timeout(message: String) -> Error {
        Error { code: PipelineErrorCode::QueryTimeout, ..Error::new(0, message) }
    }

    /// Returns whether a `$divide` or `$mod` by zero caused the error.
    pub fn is_division_by_zero(&self) -> bool {
        // MongoDB uses the number 2 for other errors as well.
        matches!(self.code, PipelineErrorCode::Number(2 | 16610)) && self.message.ends_with(" by zero")
    }

    /// Adds the enclosing field or index to the place of the error. Callers add the innermost name first.
    pub fn within(mut self, name: impl Into<Arc<str>>) -> Error {
        self.path.push(name.into());
        self
    }

    /// Returns the place of the error as a JSON pointer into the pipeline, such as `/1/$group/total/$smu`. The pointer
    /// contains only the known part of the place. The pointer ends before a name that would make the pointer longer
    /// than `MAX_POINTER_BYTES`, because names from the client can be very long. Returns `None` if the stage is not
    /// known.
    pub fn pointer(&self) -> Option<String> {
        let mut pointer = format!("/{}", self.stage?);
        // The outermost entry of the path is the index of the stage.
        for name in self.path.iter().rev().skip(1) {
            if pointer.len() + name.len() > MAX_POINTER_BYTES {
                break;
            }
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
        Some(pointer)
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint with the known name that is most similar to `name`, if any known name is similar enough.
    pub fn suggesting<'k>(self, name: &str, known: impl IntoIterator<Item = &'k str>) -> Error {
        match did_you_mean(name, known) {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// Sets the stage in which the error occurred, unless a stage is already set.
    pub fn at_stage(mut self, index: usize) -> Error {
        self.stage.get_or_insert(index);
        self
    }

    /// Returns MongoDB's name of the code.
    pub fn code_name(&self) -> String {
        match self.code {
            PipelineErrorCode::Number(2) => "BadValue".into(),
            PipelineErrorCode::Number(9) => "FailedToParse".into(),
            PipelineErrorCode::Number(14) => "TypeMismatch".into(),
            PipelineErrorCode::Number(15) => "Overflow".into(),
            PipelineErrorCode::Number(51) => "NonConformantBSON".into(),
            PipelineErrorCode::Number(73) => "InvalidNamespace".into(),
            PipelineErrorCode::Number(EXCEEDED_MEMORY) => "ExceededMemoryLimit".into(),
            PipelineErrorCode::Number(168) => "InvalidPipelineOperator".into(),
            PipelineErrorCode::Number(241) => "ConversionFailure".into(),
            PipelineErrorCode::Number(number) => format!("Location{number}"),
            PipelineErrorCode::QueryTimeout => "MaxTimeMSExpired".into(),
        }
    }
}

/// Cuts a message to [`MAX_MESSAGE_BYTES`], because names from the client can make a message unreadably long.
fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES - '…'.len_utf8()));
        message.push('…');
    }
    message
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
