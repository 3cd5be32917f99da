//! The only module that accesses SurrealDB. This module contains no business rules and no status codes.
//!
//! Each workspace has its own database. The database `control` contains the data that all workspaces share. All
//! databases are in one namespace. A [`Database`] is a session bound to one database, so its queries cannot reach the
//! records of another workspace. Its [`DatabaseReader`] can only read.
//!
//! The tables are defined in `schema`, with one file for each migration. Exceptions are the tables for embeddings, for
//! published revisions, for migrations and for the health check. A comment above each table describes the records of
//! the table. Opening a database applies the missing migrations. Two things protect several processes on one store from
//! each other: the uniqueness of an event's key (aggregate id and version), and the guard on `head:log`. With a store
//! on another machine (`ws://` or `wss://`), a server compares the head of the log with the store before each read of
//! the data in its memory, except for reads with eventual consistency.

mod availability;
pub mod blobs;
mod connections;
pub mod contents;
pub mod control;
pub mod convert;
mod deadline;
pub mod error;
mod health;
pub mod key_range;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod older_tests;
mod record;
pub mod retry;
mod session;
pub mod workspace;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::model::event::Event;
use blobs::Blobs;
pub use error::{Error, Result};
pub use session::Sizes;
use session::StoreSession;
use surrealdb::types::{Value as Record, Variables};
use workspace::append_right::{AppendRight, AppendRights};

const NAMESPACE: &str = "foldwork";
const CONTROL: &str = "control";
/// The prefix of the names of the workspaces' databases.
const WORKSPACE_PREFIX: &str = "ws_";
/// The migrations of the control database, in the order of their numbers. Opening a database applies the missing
/// migrations.
const CONTROL_MIGRATIONS: [&str; 11] = [
    include_str!("schema/control/0001_access.surql"),
    include_str!("schema/control/0002_first_start.surql"),
    include_str!("schema/control/0003_signing.surql"),
    include_str!("schema/control/0004_access.surql"),
    include_str!("schema/control/0005_licenses.surql"),
    include_str!("schema/control/0006_invitations.surql"),
    include_str!("schema/control/0007_plugins.surql"),
    include_str!("schema/control/0008_deletion.surql"),
    include_str!("schema/control/0009_servers.surql"),
    include_str!("schema/control/0010_restores.surql"),
    include_str!("schema/control/0011_departures.surql"),
];
/// The migrations of a workspace's database, in the order of their numbers.
const WORKSPACE_MIGRATIONS: [&str; 14] = [
    include_str!("schema/workspace/0001_log.surql"),
    include_str!("schema/workspace/0002_follow.surql"),
    include_str!("schema/workspace/0003_graph.surql"),
    include_str!("schema/workspace/0004_answers.surql"),
    include_str!("schema/workspace/0005_answered.surql"),
    include_str!("schema/workspace/0006_leases.surql"),
    include_str!("schema/workspace/0007_presence.surql"),
    include_str!("schema/workspace/0008_files.surql"),
    include_str!("schema/workspace/0009_feed.surql"),
    include_str!("schema/workspace/0010_snapshots.surql"),
    include_str!("schema/workspace/0011_defined.surql"),
    include_str!("schema/workspace/0012_leader.surql"),
    include_str!("schema/workspace/0013_presence.surql"),
    include_str!("schema/workspace/0014_plugin_calls.surql"),
];

/// The URL schemes that [`Store::connect`] accepts.
const SCHEMES: [&str; 4] = ["surrealkv://", "mem://", "ws://", "wss://"];

/// A connected store.
pub struct Store {
    root: StoreSession,
    exclusive: bool,
    /// The check that the disk accepts writes. `None` unless the store is in a folder.
    probe: Option<Arc<health::StoreProbe>>,
    /// The storage for the bytes of files.
    blobs: Arc<Blobs>,
    /// The append rights of all databases. Only used if no other process writes to the store.
    append_rights: Arc<AppendRights>,
}

impl Store {
    /// Connects to `surrealkv://PATH`, `mem://`, `ws://HOST:PORT` or `wss://HOST:PORT`.
    pub async fn connect(url: &str) -> Result<Store> {
        Store::connect_with(url, &Sizes::default()).await
    }

    /// Connects like [`Store::connect`]. `sizes` limits the memory of a store in a folder.
    pub async fn connect_with(url: &str, sizes: &Sizes) -> Result<Store> {
        if !SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Error::Opening(format!(
                "expected surrealkv://PATH, mem://, ws://HOST:PORT or wss://HOST:PORT, found '{url}'"
            )));
        }
        let here = url.starts_with("surrealkv://");
        let root = match here {
            true => StoreSession::open(url, sizes).await?,
            false => StoreSession::connect(url).await?,
        };
        let blobs = Arc::new(Blobs::memory());
        let (exclusive, probe) = (!url.starts_with("ws"), here.then(Arc::default));
        Ok(Store { root, exclusive, probe, blobs, append_rights: Arc::default() })
    }

    /// Returns the store with another storage for files. This storage keeps the bytes of files at `url` instead of in
    /// memory. See [`Blobs::open`].
    pub fn with_files(self, url: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Store> {
        Ok(Store { blobs: Arc::new(Blobs::open(url, options)?), ..self })
    }

    /// Returns the store with another time limit for queries. A query that exceeds the limit fails, and further queries
    /// fail immediately until the store responds again. Only a store on another machine has a time limit.
    pub fn with_timeout(self, timeout: Duration) -> Store {
        Store { root: self.root.with_timeout(timeout), ..self }
    }

    /// Returns the storage for the bytes of files.
    pub fn blobs(&self) -> Arc<Blobs> {
        self.blobs.clone()
    }

    /// Signs in to a remote store.
    pub async fn sign_in(&self, username: &str, password: &str) -> Result<()> {
        let root = surrealdb::opt::auth::Root { username: username.into(), password: password.into() };
        self.root.sign_in(root).await
    }

    /// Returns a second handle on the same store. This handle assumes that other processes write as well.
    pub fn share(&self) -> Store {
        Store {
            root: self.root.clone(),
            exclusive: false,
            probe: self.probe.clone(),
            blobs: self.blobs.clone(),
            append_rights: self.append_rights.clone(),
        }
    }

    /// Returns whether no other process writes to the store.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Checks that the store responds. If the store is in a folder, also checks that the disk accepts writes.
    pub async fn health(&self) -> Result<()> {
        self.root.health().await?;
        match &self.probe {
            Some(probe) => probe.check(self).await,
            None => Ok(()),
        }
    }

    pub async fn control(&self) -> Result<Database> {
        self.database(CONTROL, &CONTROL_MIGRATIONS).await
    }

    /// Opens the database of a workspace, and creates the database if needed. If this process is the only writer,
    /// handles that were opened earlier can no longer append. If other processes may write, moves the stored head of
    /// the log to the last event.
    pub async fn workspace(&self, workspace_id: &str) -> Result<Database> {
        let name = database_name(workspace_id)?;
        let database = self.database(&name, &WORKSPACE_MIGRATIONS).await?;
        if !self.exclusive {
            database.restore_head().await?;
            return Ok(database);
        }
        let append_right = Some(Arc::new(self.append_rights.claim(&name).await));
        Ok(Database { append_right, ..database })
    }

    /// Opens the database of a workspace for reading. The workspace may be open or closed. Creates the database if
    /// needed.
    pub async fn workspace_reader(&self, workspace_id: &str) -> Result<DatabaseReader> {
        let database = self.database(&database_name(workspace_id)?, &WORKSPACE_MIGRATIONS).await?;
        Ok(database.reader)
    }

    /// Opens the database with this name, and creates the database if needed. Retries if several servers create the
    /// database at the same time.
    async fn database(&self, name: &str, migrations: &[&str]) -> Result<Database> {
        retry::after_conflicts(|| self.try_database(name, migrations)).await
    }

    async fn try_database(&self, name: &str, migrations: &[&str]) -> Result<Database> {
        let session = self.root.another().await?;
        let define = async |statement: &str| {
            let response = session.query(statement, Variables::new()).await?;
            response.check().map(drop).map_err(retry::classify)
        };
        define("DEFINE NAMESPACE IF NOT EXISTS foldwork").await?;
        session.use_namespace(NAMESPACE).await?;
        // The name cannot inject statements, because it is "control", or "ws_" followed by ASCII letters and digits.
        define(&format!("DEFINE DATABASE IF NOT EXISTS {name}")).await?;
        session.use_database(NAMESPACE, name).await?;
        let probe = self.probe.clone();
        let reader = DatabaseReader { session: Arc::new(session), events_read: Arc::default(), probe };
        let database = Database { reader, exclusive: self.exclusive, append_right: None };
        database.migrate(migrations).await?;
        Ok(database)
    }
}

/// A session bound to one database, which reads and writes. Clones share the session.
#[derive(Clone)]
pub struct Database {
    reader: DatabaseReader,
    /// Whether no other process writes to the store.
    exclusive: bool,
    /// The right to append to the log. `None` if other processes may write, or if the database has no log.
    append_right: Option<Arc<AppendRight>>,
}

/// A handle on a [`Database`] that can only read. Clones share the session.
#[derive(Clone)]
pub struct DatabaseReader {
    session: Arc<StoreSession>,
    /// The number of events read through this handle and its clones.
    events_read: Arc<AtomicU64>,
    /// The health check to which failed disk operations are reported. `None` if the store is not in a folder. Also
    /// `None` for the handle of the health check itself, and for a database that was opened without migrations.
    probe: Option<Arc<health::StoreProbe>>,
}

impl Deref for Database {
    type Target = DatabaseReader;

    fn deref(&self) -> &DatabaseReader {
        &self.reader
    }
}

impl Database {
    /// Returns a handle on the same database that can only read.
    pub fn reader(&self) -> DatabaseReader {
        self.reader.clone()
    }

    /// Records the time that a remote store has just reported, in milliseconds since the epoch. The deadlines of
    /// transactions depend on this time.
    pub fn set_time(&self, now_ms: i64) {
        self.session.set_time(now_ms);
    }

    /// Returns a handle that does not report its failed commits to the health check.
    fn unprobed(self) -> Database {
        Database { reader: DatabaseReader { probe: None, ..self.reader }, ..self }
    }

    async fn migrate(&self, migrations: &[&str]) -> Result<()> {
        let statements = "DEFINE TABLE IF NOT EXISTS migration SCHEMALESS; SELECT VALUE number FROM migration";
        let applied = applied(&self.query(statements, []).await?, migrations.len())?;
        for (number, statements) in (1i64..).zip(migrations) {
            if !applied.contains(&number) {
                let script =
                    format!("BEGIN; {statements} CREATE type::record('migration', $n) SET number = $n; COMMIT;");
                self.query(&script, [("n", Record::from_t(number))]).await?;
            }
        }
        Ok(())
    }

    /// Runs statements, as [`DatabaseReader::query`] does. Retries if the statements conflict with other writers.
    async fn query_again<const N: usize>(&self, statements: &str, values: [(&str, Record); N]) -> Result<Vec<Record>> {
        let values = variables(values);
        retry::after_conflicts(|| self.write_bound(statements, values.clone())).await
    }

    /// Runs statements that write. If transactions may have a deadline, runs the statements as one transaction, so that
    /// no statement writes after its sender has stopped waiting. Returns the result of each statement.
    async fn write_bound(&self, statements: &str, values: Variables) -> Result<Vec<Record>> {
        let Some(transaction) = self.session.has_deadlines().then(|| deadline::in_transaction(statements)).flatten()
        else {
            return self.query_bound(statements, values).await;
        };
        let mut results = self.query_bound(&transaction, values).await?;
        // Removes the results of `BEGIN` and `COMMIT`.
        results.pop();
        Ok(results.into_iter().skip(1).collect())
    }
}

#[cfg(test)]
impl Database {
    /// Opens the control database of a new store in memory.
    pub async fn control_in_memory() -> Database {
        Store::connect("mem://").await.expect("memory").control().await.expect("a database")
    }

    /// Opens the database of a workspace in a new store in memory.
    pub async fn log_in_memory() -> Database {
        Store::connect("mem://").await.expect("memory").workspace("0-1").await.expect("a database")
    }

    /// Opens a database like [`Database::log_in_memory`], in a store that counts as shared with other processes.
    pub async fn shared_log_in_memory() -> Database {
        Store::connect("mem://").await.expect("memory").share().workspace("0-1").await.expect("a database")
    }
}

impl DatabaseReader {
    /// Returns the number of events read from the log through this handle and its clones.
    pub fn events_read(&self) -> u64 {
        self.events_read.load(Ordering::Relaxed)
    }

    fn count_read(&self, events: &[Event]) {
        self.events_read.fetch_add(events.len() as u64, Ordering::Relaxed);
    }

    /// Returns the maximum time between the start of a write and its commit or final failure, even if the sender of the
    /// write gets no response. This maximum only applies to transactions that have a deadline.
    pub fn max_commit_delay(&self) -> Duration {
        self.session.max_commit_delay()
    }

    /// Returns `time` less the longest delay of a commit, in milliseconds. A transaction can commit some time after it
    /// has read the clock. A read of the changes since `time` therefore begins at this earlier time, so that the read
    /// misses no transaction.
    fn with_overlap(&self, time: i64) -> i64 {
        time.saturating_sub(i64::try_from(self.max_commit_delay().as_millis()).unwrap_or(i64::MAX))
    }

    /// Runs statements with bound values. Returns the result of each statement.
    async fn query(&self, statements: &str, values: impl IntoIterator<Item = (&str, Record)>) -> Result<Vec<Record>> {
        self.query_bound(statements, variables(values)).await
    }

    async fn query_bound(&self, statements: &str, values: Variables) -> Result<Vec<Record>> {
        let result = self.try_query(statements, values).await;
        if let (Err(error @ Error::Disk(_)), Some(probe)) = (&result, &self.probe) {
            probe.refused(error);
        }
        result
    }

    async fn try_query(&self, statements: &str, values: Variables) -> Result<Vec<Record>> {
        let mut response = self.session.query(statements, values).await?;
        let errors = response.take_errors();
        if errors.values().any(|error| error.to_string().contains(deadline::LATE)) {
            self.session.forget_time();
        }
        if !errors.is_empty() {
            return Err(retry::classify_all(errors));
        }
        let mut results = Vec::with_capacity(response.num_statements());
        for index in 0..response.num_statements() {
            results.push(response.take::<Record>(index)?);
        }
        Ok(deadline::without_check(results))
    }
}

/// Converts pairs of a variable's name and its value to the type that the session accepts.
fn variables<'v>(values: impl IntoIterator<Item = (&'v str, Record)>) -> Variables {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the numbers of the applied migrations, which are in the last element of `results`. Fails if this program
/// does not know one of these migrations.
fn applied(results: &[Record], known: usize) -> Result<Vec<i64>> {
    let applied: Vec<i64> = convert::list(results.last())?.filter_map(|record| convert::int(record).ok()).collect();
    match applied.iter().max().filter(|number| **number > known as i64) {
        None => Ok(applied),
        Some(unknown) => Err(Error::Opening(format!(
            "a newer program has written the store with schema {unknown}; this program supports schemas up to {known}; \
             start the newer program, or restore a copy from before its first start"
        ))),
    }
}

/// Returns the name of a workspace's database.
fn database_name(workspace_id: &str) -> Result<String> {
    let digits = workspace_id.replace('-', "");
    match digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => Ok(format!("{WORKSPACE_PREFIX}{digits}")),
        false => Err(Error::corrupt(format!("the workspace id '{workspace_id}' is not a UUID"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owners_in_an_older_store_become_members() {
        let store = Store::connect("mem://").await.expect("memory");
        let older = store.database(CONTROL, &CONTROL_MIGRATIONS[..3]).await.expect("an older store");
        let written = "CREATE user:u; CREATE first_start:done SET key = 'k';
            CREATE workspace:later SET name = 'l', slug = 'l', owner_id = 'u', created_at = 8;
            CREATE workspace:w SET name = 'w', slug = 'w', owner_id = 'u', created_at = 7;
            CREATE key:k SET workspace_id = 'w', user_id = 'u', name = 'k', scopes = ['api:read'], display = 'd',
                hash = 'h', created_at = 7;";
        older.query(written, []).await.expect("written");
        let control = store.control().await.expect("the same store");
        let (_, found) = control.find_key("h").await.expect("a response").expect("the key");
        let joined: Vec<&str> = found.memberships.iter().map(|member| &*member.workspace_id).collect();
        assert_eq!(joined, ["w", "later"]);
        assert!(found.memberships.iter().all(|member| member.role == crate::model::access::Role::Owner));
        assert_eq!(control.first_workspace_id().await.expect("a response").as_deref(), Some("w"));
        let members = control.read_members("w").await.expect("members");
        assert_eq!(members.len(), 1);
    }

    #[tokio::test]
    async fn a_store_url_without_a_supported_scheme_is_rejected() {
        for url in ["", "data/db", "surrealkv:data/db", "http://127.0.0.1:8000", "postgres://localhost/db"] {
            let refused = Store::connect(url).await.err().expect("refused").to_string();
            assert!(refused.contains("expected surrealkv://PATH") && refused.contains(url), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_store_of_a_newer_program_is_rejected() {
        let store = Store::connect("mem://").await.expect("memory");
        let log = store.workspace("0-1").await.expect("a database");
        let newer = "CREATE migration:later SET number = 1000";
        log.query(newer, []).await.expect("written");
        let refused = store.workspace("0-1").await.err().expect("refused").to_string();
        assert!(refused.contains("newer program") && refused.contains("1000"), "{refused}");
    }
}
