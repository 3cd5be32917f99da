//! A summary of a store's contents, read without changing the store.

use surrealdb::types::{Value as Record, Variables};

use super::{
    CONTROL, CONTROL_MIGRATIONS, Database, DatabaseReader, NAMESPACE, Result, Store, WORKSPACE_MIGRATIONS,
    WORKSPACE_PREFIX, applied, convert, retry,
};

/// A summary of a store's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    pub workspaces: usize,
    /// The number of migrations that the control database and the databases of the workspaces lack. The next start
    /// applies these migrations, except to workspaces that the start does not open: their migrations are applied later,
    /// on first use. Older programs cannot open the store afterwards.
    pub pending_migrations: usize,
}

impl Store {
    /// Returns a summary of the store's contents, or `None` if the store is empty. Fails if a newer program has written
    /// the store.
    pub async fn contents(&self) -> Result<Option<Contents>> {
        let session = self.root.another().await?;
        let names = session.query("INFO FOR ROOT", Variables::new()).await?;
        let names = names.check().map_err(retry::classify)?.take::<Record>(0)?;
        if !is_listed(&names, "namespaces", NAMESPACE) {
            return Ok(None);
        }
        session.use_namespace(NAMESPACE).await?;
        let names = session.query("INFO FOR NS", Variables::new()).await?;
        let names = names.check().map_err(retry::classify)?.take::<Record>(0)?;
        if !is_listed(&names, "databases", CONTROL) {
            return Ok(None);
        }
        let control = self.existing_database(CONTROL).await?;
        let Some(mut pending_migrations) = control.pending_migrations(CONTROL_MIGRATIONS.len()).await? else {
            return Ok(None);
        };
        for name in listed(&names, "databases").filter(|name| name.starts_with(WORKSPACE_PREFIX)) {
            let (database, known) = (self.existing_database(name).await?, WORKSPACE_MIGRATIONS.len());
            pending_migrations += database.pending_migrations(known).await?.unwrap_or(known);
        }
        let workspaces = match control.has_table("workspace").await? {
            true => control.read_workspaces().await?.len(),
            false => 0,
        };
        Ok(Some(Contents { workspaces, pending_migrations }))
    }

    /// Opens a database that exists, without applying migrations.
    pub(super) async fn existing_database(&self, name: &str) -> Result<Database> {
        let session = self.root.another().await?;
        session.use_database(NAMESPACE, name).await?;
        let reader = DatabaseReader { session: session.into(), events_read: Default::default(), probe: None };
        Ok(Database { reader, exclusive: self.exclusive, append_right: None })
    }
}

impl Database {
    /// Returns how many of the first `known` migrations were not applied yet. Returns `None` if no migration was ever
    /// applied.
    async fn pending_migrations(&self, known: usize) -> Result<Option<usize>> {
        if !self.has_table("migration").await? {
            return Ok(None);
        }
        let applied = applied(&self.query("SELECT VALUE number FROM migration", []).await?, known)?;
        Ok(Some((1..=known as i64).filter(|number| !applied.contains(number)).count()))
    }

    async fn has_table(&self, name: &str) -> Result<bool> {
        let names = self.query("INFO FOR DB", []).await?;
        Ok(names.first().is_some_and(|names| is_listed(names, "tables", name)))
    }
}

/// Returns whether `list`, such as `tables`, contains the name. `information` is the result of an `INFO` statement.
fn is_listed(information: &Record, list: &str, name: &str) -> bool {
    listed(information, list).any(|listed| *listed == *name)
}

/// Returns the names in `list`, such as `tables`. `information` is the result of an `INFO` statement.
fn listed<'a>(information: &'a Record, list: &str) -> impl Iterator<Item = &'a String> {
    let names = match convert::field(information, list) {
        Ok(Record::Object(names)) => Some(names),
        _ => None,
    };
    names.into_iter().flat_map(|names| names.iter()).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn contents_are_read_without_changing_the_store() {
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
        store.database("ws_01", &WORKSPACE_MIGRATIONS[..2]).await.expect("an older workspace");
        let contents = store.contents().await.expect("contents");
        let pending_migrations = pending_migrations + WORKSPACE_MIGRATIONS.len() - 2;
        assert_eq!(contents, Some(Contents { workspaces: 1, pending_migrations }));
        older.query("CREATE migration:later SET number = 1000", []).await.expect("written");
        let refused = store.contents().await.expect_err("refused").to_string();
        assert!(refused.contains("newer program"), "{refused}");
    }
}
