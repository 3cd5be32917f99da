//! Type definitions of a workspace.

use surrealdb::types::{RecordId, RecordIdKey, Value as Record};

use super::graph::id_parts;
use crate::model::declaration;
use crate::model::definition::Definition;
use crate::model::json;
use crate::model::value::Value;
use crate::model::violation::Violation;
use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// A stored definition.
pub struct StoredDefinition {
    pub definition: Definition,
    /// The violations in the stored definition. The invalid parts are left out of `definition`. A stored definition can
    /// have violations, because the rules may have been different when the definition was accepted.
    pub left_out: Vec<Violation>,
}

/// The statement that aborts the transaction if a definition has changed since the change counter had the value
/// `$types`.
const UNCHANGED: &str = "IF ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };";

/// The statements that write a definition, add it to the history, and increment the change counter at the head of the
/// log. If several processes write, appends that were checked against the old definitions then fail and are checked
/// again. The entry in the history has the position of the head if this position is after `$position`, because another
/// process may have appended events that this process has not read. The head has a position only if several processes
/// write.
const WRITE: &str = "
UPSERT $id CONTENT { text: $text, revision: $revision } RETURN NONE;
UPSERT head:log SET types = (types ?? 0) + 1 RETURN NONE;
LET $at = math::max([$position, (SELECT VALUE position FROM ONLY head:log) ?? 0]);
LET $number = (SELECT VALUE types FROM ONLY head:log) ?? 0;
CREATE type::record('defined', [$at, $number, record::id($id)])
    CONTENT { text: $text, revision: $revision } RETURN NONE;";

/// A definition in the history of its type.
#[derive(Debug, Clone, PartialEq)]
pub struct PastDefinition {
    /// The position of the log's last event before the definition.
    pub position: u64,
    pub type_name: String,
    /// The declaration, as JSON text.
    pub text: String,
    pub revision: u64,
}

impl DatabaseReader {
    /// Returns the definitions that clients created, sorted by name.
    pub async fn read_definitions(&self) -> Result<Vec<StoredDefinition>> {
        self.read_all("SELECT * FROM definition ORDER BY id", [], read_definition).await
    }

    /// Returns the number of definitions in the history.
    pub async fn count_defined(&self) -> Result<u64> {
        let count = |record: &Record| convert::unsigned_field(record, "count");
        Ok(self.read_first("SELECT count() AS count FROM defined GROUP ALL", [], count).await?.unwrap_or(0))
    }

    /// Returns at most `limit` definitions of the history, the oldest first. Skips the first `start` definitions.
    pub async fn read_defined(&self, start: usize, limit: usize) -> Result<Vec<PastDefinition>> {
        let statement = "SELECT id, text, revision FROM defined ORDER BY id LIMIT $limit START $start";
        let values = [("start", convert::integer(start)), ("limit", convert::integer(limit))];
        self.read_all(statement, values, read_defined).await
    }
}

impl Database {
    /// Writes a definition. Replaces a definition with the same name. `types_changed` is the value of the change
    /// counter that the caller has read. Fails with [`Error::Conflict`] if a definition has changed since the caller
    /// read the counter, or if another server writes to the head of the log at the same time. `position` is the
    /// position of the last event that the caller has read.
    pub async fn replace_definition(&self, definition: &Definition, types_changed: u64, position: u64) -> Result<()> {
        let values = values_of(definition, types_changed, position);
        // A conflict is not retried here. If the change counter has changed, no further attempt with `types_changed`
        // can succeed, because the counter never returns to an earlier value.
        self.query(&["BEGIN;", UNCHANGED, WRITE, "COMMIT;"].concat(), values).await.map(drop)
    }

    /// Writes a definition without a comparison of the change counter. Retries after conflicts with other writers.
    pub async fn write_definition(&self, definition: &Definition) -> Result<()> {
        let values = values_of(definition, 0, 0);
        self.query_again(&["BEGIN;", WRITE, "COMMIT;"].concat(), values).await.map(drop)
    }
}

fn values_of(definition: &Definition, types_changed: u64, position: u64) -> [(&'static str, Record); 5] {
    let text = json::text(&declaration::to_value(definition));
    [
        ("id", convert::record_id("definition", definition.type_name.to_string())),
        ("text", Record::String(text)),
        ("revision", convert::integer(definition.revision)),
        ("types", convert::integer(types_changed)),
        ("position", convert::integer(position)),
    ]
}

/// Reads as much of a definition as possible, because an unreadable definition must not make the whole workspace
/// unavailable.
fn read_definition(record: &Record) -> Result<StoredDefinition> {
    convert::named("type definition", record, || {
        let Record::Object(object) = record else { return Err(Error::corrupt("the record is not an object")) };
        let Some(Record::RecordId(RecordId { key: RecordIdKey::String(name), .. })) = object.get("id") else {
            return Err(Error::corrupt("the id of a definition is not a string"));
        };
        let text = convert::text_field(record, "text").map_err(|error| error.to_string());
        let body = text.and_then(|text| json::parse_stored(text.as_bytes()).map_err(|error| error.to_string()));
        let (mut definition, left_out, revision) = match body {
            Ok(body) => {
                let (definition, left_out) = declaration::read(&body);
                (definition, left_out, convert::unsigned_field(record, "revision")?)
            }
            // No valid definition has revision 0. States that are folded under this definition are therefore folded
            // again under the next definition.
            Err(message) => {
                let violation = Violation { pointer: String::new(), message };
                (declaration::read(&Value::Null).0, vec![violation], 0)
            }
        };
        (definition.type_name, definition.revision) = (name.as_str().into(), revision);
        Ok(StoredDefinition { definition, left_out })
    })
}

fn read_defined(record: &Record) -> Result<PastDefinition> {
    convert::named("past type definition", record, || {
        let [position, _, Record::String(type_name)] = id_parts(record).unwrap_or_default() else {
            return Err(Error::corrupt("the id of a past definition is not `[position, number, type]`"));
        };
        Ok(PastDefinition {
            position: convert::int(position)?.try_into().unwrap_or_default(),
            type_name: type_name.clone(),
            text: convert::text_field(record, "text")?.to_owned(),
            revision: convert::unsigned_field(record, "revision")?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::definition::{Field, FieldType};

    #[tokio::test]
    async fn replaced_definitions_stay_in_the_history() {
        let log = Database::log_in_memory().await;
        let named =
            |field: &str| Definition::new("trip", "Trip", Vec::new(), vec![Field::new(field, FieldType::Array)]);
        for (changed, position, field) in [(0, 0, "a"), (1, 7, "b"), (2, 7, "c")] {
            log.replace_definition(&named(field), changed, position).await.expect("written");
        }
        let history = log.read_defined(0, 10).await.expect("read");
        assert_eq!(log.count_defined().await.expect("counted"), 3);
        assert_eq!(history.iter().map(|past| past.position).collect::<Vec<_>>(), [0, 7, 7]);
        assert!(history[2].text.contains("\"c\""), "{}", history[2].text);
        assert_eq!(log.read_defined(1, 1).await.expect("read"), history[1..2]);
        assert!(log.replace_definition(&named("d"), 2, 9).await.is_err(), "the counter has changed");
        assert_eq!(log.read_defined(0, 10).await.expect("read").len(), 3);
    }
}
