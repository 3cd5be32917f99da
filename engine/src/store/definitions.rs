//! Type definitions of a workspace.

use surrealdb::types::{RecordId, RecordIdKey, Value as Record};

use super::{Database, DatabaseReader, Error, Result, convert};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;
use crate::model::value::Value;
use crate::model::violation::Violation;

/// A stored definition.
pub struct StoredDefinition {
    pub definition: Definition,
    /// The violations in the stored definition. The invalid parts are left out of `definition`. The rules may have been
    /// different when the definition was accepted.
    pub left_out: Vec<Violation>,
}

/// Aborts the transaction if a definition has changed since the counter's value `$types` was read.
const UNCHANGED: &str = "IF ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };";

/// Writes a definition and increments the counter of changes at the head of the log. Appends that were checked against
/// the old definitions then fail and are checked again.
const WRITE: &str = "
UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE;
UPSERT head:log SET types = (types ?? 0) + 1 RETURN NONE;";

impl DatabaseReader {
    /// Returns the definitions that clients created, sorted by name.
    pub async fn read_definitions(&self) -> Result<Vec<StoredDefinition>> {
        let found = self.query("SELECT * FROM definition ORDER BY id", []).await?;
        convert::list(found.first())?.map(read_definition).collect()
    }
}

impl Database {
    /// Writes a definition. Replaces a definition with the same name. `types_changed` is the value of the change
    /// counter that the caller has read. Fails with [`Error::Conflict`] if another server has changed a definition
    /// since then.
    pub async fn replace_definition(&self, definition: &Definition, types_changed: u64) -> Result<()> {
        self.write(&["BEGIN;", UNCHANGED, WRITE, "COMMIT;"].concat(), definition, types_changed).await
    }

    /// Writes a definition, even if other definitions have changed in the meantime.
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

/// Reads as much of a definition as possible, because an unreadable definition must not make the whole workspace
/// unavailable.
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
        // No valid definition has revision 0. States that are folded under this definition are therefore folded again
        // under the next definition.
        Err(message) => {
            let violation = Violation { pointer: String::new(), message };
            (declaration::read(&Value::Null).0, vec![violation], 0)
        }
    };
    (definition.type_name, definition.revision) = (name.as_str().into(), revision);
    Ok(StoredDefinition { definition, left_out })
}
