//! The history of the workspace's types: read whole, and written definition by definition.

use super::Offline;
use crate::error::{Error, Result};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;
use crate::model::value::Value;
use crate::store;
use crate::workspace::types::{Defined, define};

/// The number of definitions that are read at once.
const PAGE: usize = 50;

/// A definition that a type has or had.
#[derive(Debug, Clone)]
pub struct Past {
    /// The position of the log's last event before the definition.
    pub position: u64,
    pub type_name: String,
    /// The declaration, in the form that clients send.
    pub declaration: Value,
}

impl Offline {
    /// Returns at most `limit` definitions of the workspace's history, oldest first, after the first `start`.
    pub async fn definitions(&self, start: usize, limit: usize) -> Result<Vec<Past>> {
        let past = self.state.db.read_defined(start, limit).await?;
        let read = past.into_iter().map(|past| {
            let declaration = json::parse_stored(past.text.as_bytes());
            let declaration = declaration.map_err(|error| store::Error::Corrupt(error.to_string()))?;
            Ok(Past { position: past.position, type_name: past.type_name, declaration })
        });
        read.collect()
    }

    /// Returns the definition that a type had as its `number`th, counted from 1.
    pub async fn definition(&self, type_name: &str, number: usize) -> Result<Option<Value>> {
        let (mut start, mut left) = (0, number);
        loop {
            let past = self.definitions(start, PAGE).await?;
            start += past.len();
            if past.is_empty() {
                return Ok(None);
            }
            for past in past.into_iter().filter(|past| past.type_name == type_name) {
                left = left.saturating_sub(1);
                if left == 0 {
                    return Ok(Some(past.declaration));
                }
            }
        }
    }

    /// Returns the names of all types, sorted.
    pub fn type_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.state.types.all().keys().map(|name| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// Defines or redefines a type, whatever the redefinition breaks: the workspace that it comes from has it.
    pub async fn define(&self, declaration: &Value) -> Result<Defined> {
        define(&self.state, &self.appender, self.parsed(declaration)?, true).await
    }

    /// Returns whether a type has this definition now.
    pub fn is_defined_as(&self, declaration: &Value) -> Result<bool> {
        let mut definition = self.parsed(declaration)?;
        let Some(current) = self.state.types.get(&definition.type_name) else { return Ok(false) };
        (definition.builtin, definition.managed) = (current.builtin, current.managed);
        definition.revision = current.revision;
        Ok(*current == definition)
    }

    fn parsed(&self, declaration: &Value) -> Result<Definition> {
        declaration::parse(declaration, &self.state.patterns).map_err(Error::from)
    }
}
