//! Type definitions of one workspace.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::{Database, Error, Result, convert};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;

/// Nobody has changed a definition since it was decided what to write.
const UNCHANGED: &str = "IF ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };";

/// That definitions changed stands where the head is: whoever decided an append by the definitions before decides again.
const WRITE: &str = "
UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE;
UPSERT head:log SET types = (types ?? 0) + 1 RETURN NONE;";

impl Database {
    /// The definitions that clients made, by name.
    pub async fn read_definitions(&self) -> Result<Vec<Definition>> {
        let found = self.query("SELECT * FROM definition ORDER BY id", []).await?;
        convert::list(found.first())?.map(read_definition).collect()
    }

    /// Writes a definition, in place of one of its name, if definitions had changed so often: [`Error::Conflict`] when
    /// another server changed one meanwhile.
    pub async fn replace_definition(&self, definition: &Definition, types_changed: u64) -> Result<()> {
        self.write(&["BEGIN;", UNCHANGED, WRITE, "COMMIT;"].concat(), definition, types_changed).await
    }

    /// Writes a definition, whatever others changed meanwhile.
    pub async fn write_definition(&self, definition: &Definition) -> Result<()> {
        self.write(&["BEGIN;", WRITE, "COMMIT;"].concat(), definition, 0).await
    }

    async fn write(&self, statement: &str, definition: &Definition, types_changed: u64) -> Result<()> {
        let text = crate::model::value::Value::from(declaration::to_value(definition)).to_string();
        let values = [
            ("id", convert::record_id("definition", definition.type_name.to_string())),
            ("text", Record::String(text)),
            ("revision", convert::integer(definition.revision)),
            ("types", convert::integer(types_changed)),
        ];
        self.query_again(statement, values).await.map(drop)
    }
}

fn read_definition(record: &Record) -> Result<Definition> {
    let text = convert::text_field(record, "text")?;
    let body = json::parse(text.as_bytes()).map_err(|error| Error::Corrupt(format!("a definition: {error}")))?;
    let mut definition =
        declaration::parse(&body).map_err(|wrong| Error::Corrupt(format!("a definition: {wrong:?}")))?;
    definition.revision = convert::unsigned_field(record, "revision")?;
    definition.events = match body.get("events") {
        Some(crate::model::value::Value::Object(events)) => events.clone(),
        _ => Arc::default(),
    };
    Ok(definition)
}
