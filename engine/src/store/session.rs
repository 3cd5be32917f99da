//! Sessions on a store. A store is in a folder, in memory or on another machine. The memory that a store in a folder
//! uses is limited.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use surrealdb::Surreal;
use surrealdb::engine::any::{Any, connect};
use surrealdb::engine::local::Db;
use surrealdb::opt::auth::Root;
use surrealdb::types::Variables;
use surrealdb_cnf::ConfigMap;
use surrealdb_core::kvs::Datastore;

use super::availability::{Availability, COMMIT_MARGIN, TIMEOUT};
use super::connections::{Connections, SessionPlace};
use super::error::{Error, Result};
use super::retry;

/// The limits on the memory of a store in a folder.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// The size of a memtable, in bytes. A memtable gathers writes in memory. While a full memtable is written to a
    /// file, a second memtable gathers further writes.
    pub memtable_bytes: usize,
    /// The maximum total size of cached file blocks, in bytes. A small cache suffices, because responses come from the
    /// states in memory, and the store is read when a workspace opens.
    pub cache_bytes: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { memtable_bytes: 32 << 20, cache_bytes: 8 << 20 }
    }
}

/// A session on a store.
#[derive(Clone)]
pub enum StoreSession {
    Here(Surreal<Db>),
    /// A store in memory, or on another machine. Only a store on another machine has connections.
    Elsewhere(Surreal<Any>, Option<RemoteStore>),
}

/// The connections to a store on another machine, and the place of one session on its connection.
#[derive(Clone)]
pub struct RemoteStore {
    pub availability: Availability,
    connections: Arc<Connections>,
    /// Counts the session on its connection: the number of clones of this value is the number of sessions on the
    /// connection.
    _place: Arc<SessionPlace>,
}

impl RemoteStore {
    async fn session(&self) -> Result<StoreSession> {
        let (session, _place) = self.connections.session(self.availability.timeout).await?;
        let remote = RemoteStore { _place, ..self.clone() };
        Ok(StoreSession::Elsewhere(session, Some(remote)))
    }
}

/// Sends a request through a session, whose type depends on the place of the store. Applies the time limit if the store
/// is on another machine.
macro_rules! request {
    ($self:ident, |$session:ident| $request:expr) => {
        match $self {
            StoreSession::Here($session) => $self.within(async { Ok($request.await.map(drop)?) }).await,
            StoreSession::Elsewhere($session, _) => $self.within(async { Ok($request.await.map(drop)?) }).await,
        }
    };
}

impl StoreSession {
    /// Opens a store in a folder. The client of the database cannot set the sizes, and would use as much memory as the
    /// machine has. This function therefore builds the datastore in the same way as the client, but with the given
    /// sizes.
    pub async fn open(url: &str, sizes: &Sizes) -> Result<StoreSession> {
        private_folder(url).map_err(opening)?;
        let config = ConfigMap::empty()
            .with_key_value("surrealkv_max_memtable_size", sizes.memtable_bytes.to_string())
            .with_key_value("surrealkv_block_cache_capacity", sizes.cache_bytes.to_string())
            // The engine never removes outdated values from the value log, so overwritten values would stay on the
            // disk.
            .with_key_value("surrealkv_enable_vlog", "false")
            // The engine already syncs each commit and groups waiting commits. The coordinator above the engine would
            // only add a delay.
            .with_key_value("surrealkv_grouped_commit_timeout", "0");
        let builder = Datastore::builder().with_config(config);
        let datastore = builder.without_maintenance_tasks().build_with_path(url).await.map_err(opening)?;
        // A new store must record its version before any other write.
        datastore.check_version().await.map_err(opening)?;
        datastore.bootstrap().await.map_err(opening)?;
        datastore.start_maintenance_tasks();
        Ok(StoreSession::Here(Surreal::<Db>::unstable_from_datastore(datastore, None).await?))
    }

    /// Connects to a store in memory or on another machine.
    pub async fn connect(url: &str) -> Result<StoreSession> {
        if !url.starts_with("ws") {
            return Ok(StoreSession::Elsewhere(connect(url).await?, None));
        }
        StoreSession::remote(Connections::open(url, TIMEOUT).await?).await
    }

    /// Returns the first session on connections to another machine.
    pub async fn remote(connections: Connections) -> Result<StoreSession> {
        let (session, _place) = connections.session(TIMEOUT).await?;
        let remote =
            RemoteStore { availability: Availability::new(TIMEOUT), connections: Arc::new(connections), _place };
        Ok(StoreSession::Elsewhere(session, Some(remote)))
    }

    /// Returns a new session on the same store.
    pub async fn another(&self) -> Result<StoreSession> {
        match self {
            StoreSession::Elsewhere(_, Some(remote)) if remote.availability.is_unresponsive() => {
                Err(Error::Unresponsive)
            }
            StoreSession::Elsewhere(_, Some(remote)) => remote.session().await,
            StoreSession::Here(_) | StoreSession::Elsewhere(_, None) => Ok(self.clone()),
        }
    }

    /// Returns the session with another time limit for queries. Only a store on another machine has a time limit.
    pub fn with_timeout(self, timeout: Duration) -> StoreSession {
        match self {
            StoreSession::Elsewhere(session, Some(remote)) => {
                let remote = RemoteStore { availability: Availability::new(timeout), ..remote };
                StoreSession::Elsewhere(session, Some(remote))
            }
            here => here,
        }
    }

    pub async fn sign_in(&self, user: Root) -> Result<()> {
        if let StoreSession::Elsewhere(_, Some(remote)) = self {
            self.within(remote.connections.sign_in(user.clone())).await?;
        }
        request!(self, |session| session.signin(user))
    }

    pub async fn health(&self) -> Result<()> {
        match self {
            StoreSession::Here(session) => Ok(session.health().await?),
            StoreSession::Elsewhere(session, None) => Ok(session.health().await?),
            StoreSession::Elsewhere(session, Some(remote)) => {
                remote.availability.check(async { Ok(session.health().await?) }).await
            }
        }
    }

    pub async fn use_namespace(&self, namespace: &str) -> Result<()> {
        request!(self, |session| session.use_ns(namespace))
    }

    pub async fn use_database(&self, namespace: &str, database: &str) -> Result<()> {
        request!(self, |session| session.use_ns(namespace).use_db(database))
    }

    pub async fn query(&self, statements: &str, values: Variables) -> Result<surrealdb::IndexedResults> {
        match self {
            StoreSession::Here(session) => {
                on_stack(session.query(statements).bind(values).into_future()).await.map_err(retry::classify)
            }
            StoreSession::Elsewhere(session, remote) => {
                let (statements, values) = match remote {
                    Some(RemoteStore { availability, .. }) => {
                        availability.time.limit(availability.timeout, statements, values)
                    }
                    None => (statements.into(), values),
                };
                let query = on_stack(session.query(&*statements).bind(values).into_future());
                self.within(async { query.await.map_err(retry::classify) }).await
            }
        }
    }

    /// Records the time that a remote store has just reported, in milliseconds. While the time is known, transactions
    /// have a deadline.
    pub fn set_time(&self, now_ms: i64) {
        if let StoreSession::Elsewhere(_, Some(remote)) = self {
            remote.availability.time.set(now_ms);
        }
    }

    /// Discards the known time of a remote store. Called if the store rejects a transaction that began after its
    /// deadline, although the sender of the transaction still waits for the response. Such a rejection shows that the
    /// known time is wrong.
    pub fn forget_time(&self) {
        if let StoreSession::Elsewhere(_, Some(remote)) = self {
            remote.availability.time.forget();
        }
    }

    /// Returns the maximum time between the start of a query and its commit or final failure, even if the sender of the
    /// query gets no response. This maximum only applies to transactions that have a deadline.
    pub fn max_commit_delay(&self) -> Duration {
        let timeout = match self {
            StoreSession::Elsewhere(_, Some(remote)) => remote.availability.timeout,
            StoreSession::Here(_) | StoreSession::Elsewhere(_, None) => TIMEOUT,
        };
        timeout + COMMIT_MARGIN
    }

    /// Returns whether transactions can have a deadline.
    pub fn has_deadlines(&self) -> bool {
        matches!(self, StoreSession::Elsewhere(_, Some(_)))
    }

    /// Runs a query. Applies the time limit if the store is on another machine.
    async fn within<T>(&self, query: impl Future<Output = Result<T>>) -> Result<T> {
        let StoreSession::Elsewhere(session, Some(remote)) = self else { return query.await };
        let checking = || {
            let session = Arc::new(session.clone());
            move || {
                let session = session.clone();
                async move { session.health().await.map_err(Error::from) }
            }
        };
        remote.availability.within(query, checking).await
    }
}

/// Creates the folder of a store if needed. On Unix, makes the folder accessible only to its owner.
fn private_folder(url: &str) -> io::Result<()> {
    let path = url.strip_prefix("surrealkv://").unwrap_or(url);
    let path = Path::new(path.split_once('?').map_or(path, |(path, _)| path));
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let mut permissions = fs::metadata(path)?.permissions();
        if permissions.mode() & 0o777 != OWNER_ONLY {
            permissions.set_mode(OWNER_ONLY);
            fs::set_permissions(path, permissions)?;
        }
    }
    Ok(())
}

/// The permissions of a store's folder. Other users cannot enter the folder, so they cannot read the files inside.
#[cfg(unix)]
const OWNER_ONLY: u32 = 0o700;

/// The minimum free stack space for a query, in bytes. A debug build of the database needs more than a megabyte for a
/// transaction with a loop.
const MIN_STACK_BYTES: usize = if cfg!(debug_assertions) { 1_600 << 10 } else { 256 << 10 };
/// The size of a new stack, in bytes. A query gets a new stack if less than [`MIN_STACK_BYTES`] of the current stack is
/// free.
const STACK_BYTES: usize = 4 << 20;

/// Runs a query with enough stack, regardless of the depth of the caller's stack.
async fn on_stack<F: Future>(query: F) -> F::Output {
    let mut query = pin!(query);
    poll_fn(|context| stacker::maybe_grow(MIN_STACK_BYTES, STACK_BYTES, || query.as_mut().poll(context))).await
}

fn opening(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    if text.contains(LOCKED) { Error::Locked } else { Error::Opening(text) }
}

/// The text that the storage engine's error message contains if another process has the folder open.
const LOCKED: &str = "is already locked by another process";

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1 << 20;
    const VALUES: usize = 20;
    const WRITES: usize = 3_000;

    /// Returns the total size of the files in a folder and its subfolders.
    fn bytes_below(folder: &Path) -> u64 {
        let size = |entry: fs::DirEntry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            // The engine may have removed the file since the folder was listed.
            metadata => metadata.map_or(0, |metadata| metadata.len()),
        };
        fs::read_dir(folder).expect("a folder").flatten().map(size).sum()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn overwritten_large_values_are_removed_from_the_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        let sizes = Sizes { memtable_bytes: MEBIBYTE as usize, ..Sizes::default() };
        let session = StoreSession::open(&format!("surrealkv://{}", path.display()), &sizes).await.expect("a store");
        session.use_namespace("test").await.expect("a namespace");
        session.use_database("test", "test").await.expect("a database");
        let mut most = 0;
        for number in 0..WRITES {
            let text = format!("{number} ").repeat(20_000 / 5);
            let statement = format!("UPSERT large:{} SET text = '{text}'", number % VALUES);
            session
                .query(&statement, Variables::new())
                .await
                .and_then(|response| Ok(response.check()?))
                .expect("written");
            most = most.max(bytes_below(&path));
        }
        // The files are the log, the merged tables, and up to a dozen tables that wait to be merged. Each waiting table
        // has the size of a memtable.
        assert!(most < 20 * MEBIBYTE, "{WRITES} writes of 20 kB to {VALUES} values take {most} bytes");
    }
}
