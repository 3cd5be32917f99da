//! The error for a plugin that cannot be loaded, with the place of the error in the plugin's files or in the settings.

use std::fmt;

/// The reason why a plugin was rejected, and the place of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The path of the file, or the name of the setting, that contains the error.
    pub location: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl LoadError {
    pub(crate) fn new(location: impl Into<String>, message: impl Into<String>) -> LoadError {
        LoadError { location: location.into(), line: None, column: None, message: message.into(), hint: None }
    }

    /// Returns the error with a hint about its cause.
    pub(crate) fn with_hint(self, hint: impl Into<Option<String>>) -> LoadError {
        LoadError { hint: hint.into(), ..self }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.location)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for LoadError {}
