//! Every way in which a pipeline can be refused or can fail, with MongoDB's codes.

use std::fmt;

/// A refusal. The message is MongoDB's own text where MongoDB has one, so that clients that match it keep working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
    /// Index of the top-level stage, once known.
    pub stage: Option<usize>,
    /// What may have been meant; never part of the message.
    pub hint: Option<String>,
}

/// Bytes of a message. Values in it are cut to less than that already.
const LONGEST_BYTES: usize = 4_096;

/// What the answer's `code` carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// MongoDB's number.
    Number(i32),
    /// The query ran longer than the server allows.
    QueryTimeout,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error { code: Code::Number(code), message: bounded(message.into()), stage: None, hint: None }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Says in which stage it happened; the innermost answer stays.
    pub fn at_stage(mut self, index: usize) -> Error {
        self.stage.get_or_insert(index);
        self
    }

    /// MongoDB's name of the code.
    pub fn code_name(&self) -> String {
        match self.code {
            Code::Number(2) => "BadValue".into(),
            Code::Number(9) => "FailedToParse".into(),
            Code::Number(14) => "TypeMismatch".into(),
            Code::Number(15) => "Overflow".into(),
            Code::Number(51) => "NonConformantBSON".into(),
            Code::Number(73) => "InvalidNamespace".into(),
            Code::Number(146) => "ExceededMemoryLimit".into(),
            Code::Number(168) => "InvalidPipelineOperator".into(),
            Code::Number(241) => "ConversionFailure".into(),
            Code::Number(number) => format!("Location{number}"),
            Code::QueryTimeout => "MaxTimeMSExpired".into(),
        }
    }
}

/// Cuts what names of the client's own make too long to be read.
fn bounded(mut message: String) -> String {
    if message.len() > LONGEST_BYTES {
        message.truncate(message.floor_char_boundary(LONGEST_BYTES));
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
