//! Type definitions of a workspace.

use surrealdb::types::{RecordId, RecordIdKey, Value as Record};

use super::{Database, Error, Result, convert};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;
use crate::model::value::Value;
use crate::model::violation::Violation;

/// A stored definition.
pub struct StoredDefinition {
    pub definition: Definition,
    /// Parts of the stored definition that are invalid today and were left out. The rules may have been different when
    /// the definition was accepted.
    pub left_out: Vec<Violation>,
}

/// Fails if a definition has changed since the write was decided.
const UNCHANGED: &str = "IF ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };";

/// Increments a counter next to the head of the log, so that appends decided under the old definitions are decided
/// again.
const WRITE: &str = "
UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE;
UPSERT head:log SET types = (types ?? 0) + 1 RETURN NONE;";

impl Database {
    /// Returns the definitions that clients made, sorted by name.
    pub async fn read_definitions(&self) -> Result<Vec<StoredDefinition>> {
        let found = self.query("SELECT * FROM definition ORDER BY id", []).await?;
        convert::list(found.first())?.map(read_definition).collect()
    }

    /// Writes a definition, and replaces one with the same name. `types_changed` is the counter's value when the write
    /// was decided. Fails with [`Error::Conflict`] if another server has changed a definition since.
    pub async fn replace_definition(&self, definition: &Definition, types_changed: u64) -> Result<()> {
        self.write(&["BEGIN;", UNCHANGED, WRITE, "COMMIT;"].concat(), definition, types_changed).await
    }

    /// Writes a definition, even if others have changed in the meantime.
    pub async fn write_definition(&self, definition: &Definition) -> Result<()> {
        self.write(&["BEGIN;", WRITE, "COMMIT;"].concat(), definition, 0).await
    }

    async fn write(&self, statement: &str, definition: &Definition, types_changed: u64) -> Result<()> {
        let text = crate::model::json::text(&declaration::to_value(definition));
        let values = [
            ("id", convert::record_id("definition", definition.type_name.to_string())),
            ("text", Record::String(text)),
            ("revision", convert::integer(definition.revision)),
            ("types", convert::integer(types_changed)),
        ];
        self.query_again(statement, values).await.map(drop)
    }
}

/// Reads as much of a definition as possible. One unreadable type must not make the whole workspace unavailable.
fn read_definition(record: &Record) -> Result<StoredDefinition> {
    let Record::Object(object) = record else { return Err(Error::Corrupt("a definition is not an object".into())) };
    let Some(Record::RecordId(RecordId { key: RecordIdKey::String(name), .. })) = object.get("id") else {
        return Err(Error::Corrupt("the id of a definition is not a string".into()));
    };
    let text = convert::text_field(record, "text").map_err(|error| error.to_string());
    let body = text.and_then(|text| json::parse_stored(text.as_bytes()).map_err(|error| error.to_string()));
    let (mut definition, left_out, revision) = match body {
        Ok(body) => {
            let (definition, left_out) = declaration::read(&body);
            (definition, left_out, convert::unsigned_field(record, "revision")?)
        }
        // No valid definition has revision 0, so states folded under this one are folded again under the next one.
        Err(message) => {
            let violation = Violation { pointer: String::new(), message };
            (declaration::read(&Value::Null).0, vec![violation], 0)
        }
    };
    (definition.type_name, definition.revision) = (name.as_str().into(), revision);
    Ok(StoredDefinition { definition, left_out })
}
