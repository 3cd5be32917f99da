//! Type definitions of one workspace.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::{Database, Error, Result, convert};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;

impl Database {
    /// The definitions that clients made, by name.
    pub async fn read_definitions(&self) -> Result<Vec<Definition>> {
        let found = self.query("SELECT * FROM definition ORDER BY id", []).await?;
        convert::list(found.first())?.map(read_definition).collect()
    }

    /// Writes a definition, in place of one of its name.
    pub async fn write_definition(&self, definition: &Definition) -> Result<()> {
        let text = crate::model::value::Value::from(declaration::to_value(definition)).to_string();
        let statement = "UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE";
        let values = [
            ("id", convert::record_id("definition", definition.type_name.to_string())),
            ("text", Record::String(text)),
            ("revision", convert::integer(definition.revision)),
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
