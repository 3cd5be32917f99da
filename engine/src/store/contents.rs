//! A summary of a store's contents, read without changing the store.

use surrealdb::types::Variables;

use super::{CONTROL, CONTROL_MIGRATIONS, Database, DatabaseReader, NAMESPACE, Result, Store, convert, retry};

/// A summary of a store's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    pub workspaces: usize,
    /// The number of migrations of the control database that the next start applies. Older programs cannot open the
    /// store afterwards.
    pub pending_migrations: usize,
}

impl Store {
    /// Returns a summary of the store's contents, or `None` if the store is empty. Fails if a newer program has written
    /// the store.
    pub async fn contents(&self) -> Result<Option<Contents>> {
        let session = self.root.clone();
        let names = session.query("INFO FOR ROOT", Variables::new()).await?;
        let names = names.check().map_err(retry::classify)?.take::<surrealdb::types::Value>(0)?;
        if !is_listed(&names, "namespaces", NAMESPACE) {
            return Ok(None);
        }
        session.use_namespace(NAMESPACE).await?;
        let names = session.query("INFO FOR NS", Variables::new()).await?;
        let names = names.check().map_err(retry::classify)?.take::<surrealdb::types::Value>(0)?;
        if !is_listed(&names, "databases", CONTROL) {
            return Ok(None);
        }
        session.use_database(NAMESPACE, CONTROL).await?;
        let reader = DatabaseReader { session: session.into(), events_read: Default::default(), probe: None };
        let database = Database { reader, exclusive: self.exclusive, append_right: None };
        let names = database.query("INFO FOR DB", []).await?;
        if !names.first().is_some_and(|names| is_listed(names, "tables", "migration")) {
            return Ok(None);
        }
        let applied = database.query("SELECT VALUE number FROM migration", []).await?;
        let applied: Vec<i64> = convert::list(applied.last())?.filter_map(|record| convert::int(record).ok()).collect();
        super::check_schema(&applied, CONTROL_MIGRATIONS.len())?;
        let is_missing = |number: &i64| !applied.contains(number);
        let pending_migrations = (1..=CONTROL_MIGRATIONS.len() as i64).filter(is_missing).count();
        let workspaces = match names.first().is_some_and(|names| is_listed(names, "tables", "workspace")) {
            true => database.read_workspaces().await?.len(),
            false => 0,
        };
        Ok(Some(Contents { workspaces, pending_migrations }))
    }
}

/// Returns whether the list `list` in the database's description of the store contains the name.
fn is_listed(information: &surrealdb::types::Value, list: &str, name: &str) -> bool {
    let surrealdb::types::Value::Object(information) = information else { return false };
    matches!(information.get(list), Some(surrealdb::types::Value::Object(names)) if names.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_contents_of_a_store_are_read_without_creating_or_migrating_databases() {
        let store = Store::connect("mem://").await.expect("memory");
        for _ in 0..2 {
            assert_eq!(store.contents().await.expect("contents"), None);
        }
        let older = store.database(CONTROL, &CONTROL_MIGRATIONS[..3]).await.expect("an older store");
        let workspace = "CREATE workspace:w SET name = 'w', slug = 'w', owner_id = 'u', created_at = 7;";
        older.query(workspace, []).await.expect("written");
        let pending_migrations = CONTROL_MIGRATIONS.len() - 3;
        for _ in 0..2 {
            let contents = store.contents().await.expect("contents");
            assert_eq!(contents, Some(Contents { workspaces: 1, pending_migrations }));
        }
        older.query("CREATE migration:later SET number = 1000", []).await.expect("written");
        let refused = store.contents().await.expect_err("refused").to_string();
        assert!(refused.contains("newer program"), "{refused}");
    }
}
