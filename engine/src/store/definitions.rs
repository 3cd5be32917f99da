//! Type definitions of one workspace.

use surrealdb::types::{RecordId, RecordIdKey, Value as Record};

use super::{Database, Error, Result, convert};
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;
use crate::model::value::Value;
use crate::model::violation::Violation;

/// A definition as it is stored.
pub struct StoredDefinition {
    pub definition: Definition,
    /// Parts that a client could not define today, left out of the definition where they cannot be used: the rules may have
    /// been others when the definition was accepted.
    pub left_out: Vec<Violation>,
}

/// Nobody has changed a definition since it was decided what to write.
const UNCHANGED: &str = "IF ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };";

/// That definitions changed stands where the head is: whoever decided an append by the definitions before decides again.
const WRITE: &str = "
UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE;
UPSERT head:log SET types = (types ?? 0) + 1 RETURN NONE;";

impl Database {
    /// The definitions that clients made, by name.
    pub async fn read_definitions(&self) -> Result<Vec<StoredDefinition>> {
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

/// Reads a definition as far as that is possible: a workspace whose one type cannot be read has others to serve.
fn read_definition(record: &Record) -> Result<StoredDefinition> {
    let Record::Object(object) = record else { return Err(Error::Corrupt("a definition is no object".into())) };
    let Some(Record::RecordId(RecordId { key: RecordIdKey::String(name), .. })) = object.get("id") else {
        return Err(Error::Corrupt("a definition's id is no text".into()));
    };
    let text = convert::text_field(record, "text").map_err(|error| error.to_string());
    let body = text.and_then(|text| json::parse_stored(text.as_bytes()).map_err(|error| error.to_string()));
    let (mut definition, left_out, revision) = match body {
        Ok(body) => {
            let (definition, left_out) = declaration::read(&body);
            (definition, left_out, convert::unsigned_field(record, "revision")?)
        }
        // No definition has the revision 0: what is folded meanwhile is folded again under the next one.
        Err(message) => {
            let wrong = Violation { pointer: String::new(), message };
            (declaration::read(&Value::Null).0, vec![wrong], 0)
        }
    };
    (definition.type_name, definition.revision) = (name.as_str().into(), revision);
    Ok(StoredDefinition { definition, left_out })
}
