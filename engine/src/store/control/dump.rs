//! A dump of the control database, from which a lost installation is restored.

use surrealdb::types::{ToSql, Value as Record};

use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The tables in a dump. A restored installation does not need the other tables, such as the running servers and the
/// sign-in codes.
const TABLES: [&str; 14] = [
    "installation",
    "workspace",
    "user",
    "member",
    "key",
    "invitation",
    "revoked_key",
    "removed_member",
    "first_start",
    "signing_key",
    "license_key",
    "activation",
    "plugin_release",
    "deletion",
];
/// The field with the time of the last recorded use of a key. A change of this field alone does not cause a new dump.
const LAST_USED: &str = "last_used_at";
/// The number of records that one query reads or writes.
const PAGE: usize = 500;

/// A record of the control database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpRecord {
    pub table: &'static str,
    /// The record as a SurrealQL object, with its id.
    pub content: String,
    /// The text of `content` without the field `last_used_at`.
    pub lasting: String,
}

impl DatabaseReader {
    /// Returns all records of the control database that a restore needs.
    pub async fn dump(&self) -> Result<Vec<DumpRecord>> {
        let mut dumped = Vec::new();
        for table in TABLES {
            let statement = format!("SELECT * FROM {table} ORDER BY id LIMIT $limit START $start");
            let records = self.read_pages(&statement, PAGE, |record| Ok(dumped_record(table, record))).await?;
            dumped.extend(records);
        }
        Ok(dumped)
    }

    /// Returns whether the control database contains a workspace.
    pub async fn has_workspaces(&self) -> Result<bool> {
        convert::has_rows(&self.query("SELECT VALUE id FROM workspace LIMIT 1", []).await?)
    }
}

impl Database {
    /// Returns the id of the installation. The first call sets the id to `candidate`.
    pub async fn installation(&self, candidate: &str) -> Result<String> {
        let statements = "BEGIN;
            IF !record::exists(installation:current) { CREATE installation:current SET key = $candidate RETURN NONE };
            SELECT VALUE key FROM installation:current;
            COMMIT;";
        let found = self.query_again(statements, [("candidate", convert::text(candidate))]).await?;
        let id = found.iter().find_map(|result| convert::list(Some(result)).ok()?.find_map(convert::text_of));
        id.map(|id| id.to_string()).ok_or_else(|| Error::corrupt("the installation has no id"))
    }

    /// Writes the records of a dump. The caller must have checked the seal of the dump, because `contents` becomes a
    /// part of the statements. Replaces existing records, so a restore that ended early can be repeated.
    pub async fn write_dumped(&self, table: &str, contents: &[String]) -> Result<()> {
        if !TABLES.contains(&table) {
            return Err(Error::corrupt(format!("a dump contains a record of the unknown table '{table:.64}'")));
        }
        for page in contents.chunks(PAGE) {
            let statements: Vec<String> =
                page.iter().map(|content| format!("UPSERT ({content}).id CONTENT {content} RETURN NONE;")).collect();
            let statements = format!("BEGIN; {} COMMIT;", statements.concat());
            self.query_again(&statements, []).await.map_err(|error| match error {
                // The database responded, so the records are the cause.
                Error::Database(ref cause) if !cause.is_connection() => Error::Corrupt {
                    record: Some(format!("a record of the table '{table}' in the archive")),
                    reason: format!("the database rejected the record: {cause}"),
                },
                error => error,
            })?;
        }
        Ok(())
    }
}

fn dumped_record(table: &'static str, record: &Record) -> DumpRecord {
    let content = record.to_sql();
    let lasting = match record {
        Record::Object(object) if object.contains_key(LAST_USED) => {
            let mut object = object.clone();
            object.remove(LAST_USED);
            Record::Object(object).to_sql()
        }
        _ => content.clone(),
    };
    DumpRecord { table, content, lasting }
}

#[cfg(test)]
mod tests {
    use crate::store::Database;

    #[tokio::test]
    async fn a_restored_dump_contains_every_record_unchanged() {
        let control = Database::control_in_memory().await;
        let written =
            "CREATE workspace:⟨0192-a⟩ SET name = \"it's\\n \\\"x\\\"\", slug = 'w', owner_id = 'u', created_at = 7;
            CREATE user:u SET email = 'a@b.c', email_verified = true;
            CREATE member:['u', '0192-a'] SET user_id = 'u', workspace_id = '0192-a', role = 'owner', joined_at = 7;
            CREATE key:k SET workspace_id = '0192-a', user_id = 'u', name = 'k', scopes = ['api:read'], display = 'd',
                hash = 'h', created_at = 7, last_used_at = 9;";
        control.query(written, []).await.expect("written");
        assert_eq!(control.installation("one").await.expect("an id"), "one");
        assert_eq!(control.installation("two").await.expect("the same id"), "one");
        let dumped = control.dump().await.expect("dumped");
        assert_eq!(dumped.len(), 5);
        let key = dumped.iter().find(|record| record.table == "key").expect("the key");
        assert!(key.content.contains("last_used_at") && !key.lasting.contains("last_used_at"), "{key:?}");

        let other = Database::control_in_memory().await;
        assert!(!other.has_workspaces().await.expect("read"));
        for _ in 0..2 {
            for record in &dumped {
                other.write_dumped(record.table, std::slice::from_ref(&record.content)).await.expect("restored");
            }
        }
        assert!(other.has_workspaces().await.expect("read"));
        assert_eq!(other.dump().await.expect("dumped"), dumped);
        assert_eq!(other.find_key("h").await.expect("read").expect("the key").1.memberships.len(), 1);
        other.write_dumped("server", &["{}".to_owned()]).await.expect_err("an unknown table");
    }
}
