//! Aggregate types: defining them, changing them without breaking what relies on them, and telling their schema.

use std::sync::Arc;

use super::entered::Operation;
use super::rights::{Reader, Writer};
use crate::error::{Error, Result};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::value::{Object, Value};

/// A type with the shapes of its events.
pub struct Schema {
    pub definition: Arc<Definition>,
    /// Event types observed in the log: event type to field to the types of its values.
    pub observed: Vec<(String, Object)>,
}

/// What defining a type did.
pub enum Defined {
    Created(Arc<Definition>),
    Changed(Arc<Definition>),
    /// It was defined so before.
    Unchanged(Arc<Definition>),
}

impl Writer {
    /// Defines a type or redefines it. A breaking redefinition is refused unless it is forced.
    pub async fn define_type(&self, body: &Value, force: bool) -> Result<Defined> {
        let definition = declaration::parse(body)?;
        Operation::perform(self, move |operation| async move { operation.define(definition, force).await }).await
    }
}

impl Operation {
    async fn define(&self, mut definition: Definition, force: bool) -> Result<Defined> {
        let state = self.state();
        let _one = state.types.one_at_a_time().await;
        state.refresh().await?;
        let Some(before) = state.types.get(&definition.type_name) else {
            let definition = Arc::new(definition);
            self.appender().define(definition.clone(), false).await?;
            return Ok(Defined::Created(definition));
        };
        if before.managed {
            let message = format!("the type '{}' is managed by its own operations", before.type_name);
            return Err(Error::Forbidden { code: "managed_type", message });
        }
        definition.builtin = before.builtin;
        definition.revision = before.revision;
        if *before == definition {
            return Ok(Defined::Unchanged(before));
        }
        let breaks = before.breaking_changes(&definition);
        if !breaks.is_empty() && !force {
            return Err(breaking(&breaks));
        }
        let refold = !before.folds_like(&definition);
        if refold {
            definition.revision += 1;
        }
        let definition = Arc::new(definition);
        self.appender().define(definition.clone(), refold).await?;
        Ok(Defined::Changed(definition))
    }
}

impl Reader {
    /// All types, by name.
    pub fn list_types(&self) -> Vec<Arc<Definition>> {
        let mut definitions: Vec<_> = self.entered.state().types.all().values().cloned().collect();
        definitions.sort_by(|a, b| a.type_name.cmp(&b.type_name));
        definitions
    }

    /// A type, its fields and traits, and the events declared and seen.
    pub async fn schema(&self, type_name: &str) -> Result<Schema> {
        let state = self.entered.state();
        state.refresh().await?;
        let definition = state.types.get(type_name).ok_or_else(|| Error::not_found("aggregate type", type_name))?;
        Ok(Schema { observed: state.folded.observed().of_type(&definition.type_name), definition })
    }
}

fn breaking(breaks: &[String]) -> Error {
    let mut details = Object::new();
    details.push("differences", breaks.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>());
    Error::Conflict {
        code: "breaking_redefinition",
        message: format!("the redefinition would break: {}", breaks.join("; ")),
        details: Box::new(details),
    }
}
