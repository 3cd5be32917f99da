//! Reads the history of the workspace's type definitions, and writes definitions one by one.

use super::Offline;
use crate::error::{Error, Result};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::value::Value;
use crate::workspace::types::{DefinitionOutcome, DefinitionVersion, define, past_definitions};

/// The number of definitions that one query reads.
const PAGE: usize = 50;

impl Offline {
    /// Returns at most `limit` definitions of the workspace's history, oldest first. Skips the first `start`
    /// definitions.
    pub async fn definitions(&self, start: usize, limit: usize) -> Result<Vec<DefinitionVersion>> {
        past_definitions(&self.state, start, limit).await
    }

    /// Returns the `number`th definition in the history of a type, counted from 1, or `None` if the type has fewer
    /// definitions.
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

    /// Defines or redefines a type, even with breaking changes, because the exported workspace already has the
    /// definition.
    pub async fn define(&self, declaration: &Value) -> Result<DefinitionOutcome> {
        define(&self.state, &self.appender, self.parsed(declaration)?, true).await
    }

    /// Defines or redefines a type with a declaration from another log. Leaves out the parts of the declaration that
    /// the current rules reject, as the loading of a stored definition does.
    pub async fn define_recorded(&self, declaration: &Value) -> Result<DefinitionOutcome> {
        let definition = self.parsed(declaration).unwrap_or_else(|_| declaration::read(declaration).0);
        define(&self.state, &self.appender, definition, true).await
    }

    /// Returns whether the declaration is the current definition of its type.
    pub fn is_defined_as(&self, declaration: &Value) -> Result<bool> {
        let mut definition = self.parsed(declaration)?;
        let Some(current) = self.state.types.get(&definition.type_name) else { return Ok(false) };
        (definition.builtin, definition.managed) = (current.builtin, current.managed);
        definition.revision = current.revision;
        Ok(*current == definition)
    }

    fn parsed(&self, declaration: &Value) -> Result<Definition> {
        declaration::parse_exported(declaration, &self.state.patterns).map_err(Error::from)
    }
}
