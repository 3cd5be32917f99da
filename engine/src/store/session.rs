//! How a store is reached: in this process with the memory that the settings give it, or over a socket.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::{fs, io};

use surrealdb::Surreal;
use surrealdb::engine::any::{Any, connect};
use surrealdb::engine::local::Db;
use surrealdb::types::Variables;
use surrealdb_cnf::ConfigMap;
use surrealdb_core::kvs::Datastore;

use super::error::{Error, Result};
use super::retry;

/// What a store in a folder may take of memory, in bytes.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Writes that are gathered before they go into a file of their own. A second one is filled while that happens.
    pub memtable_bytes: usize,
    /// Blocks of files that are kept after they were read.
    pub cache_bytes: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { memtable_bytes: 32 << 20, cache_bytes: 8 << 20 }
    }
}

/// A session on a store.
#[derive(Clone)]
pub enum Session {
    Here(Surreal<Db>),
    Elsewhere(Surreal<Any>),
}

impl Session {
    /// A store in a folder. The database's own client takes no sizes for what it opens, and would take as much memory
    /// as the machine lets it: so the datastore is built by its builder, as that client builds it.
    pub async fn open(url: &str, sizes: &Sizes) -> Result<Session> {
        private_folder(url).map_err(opening)?;
        let config = ConfigMap::empty()
            .with_key_value("surrealkv_max_memtable_size", sizes.memtable_bytes.to_string())
            .with_key_value("surrealkv_block_cache_capacity", sizes.cache_bytes.to_string())
            // A value log is never collected: overwritten values would stay on the disk.
            .with_key_value("surrealkv_enable_vlog", "false")
            // The engine syncs each commit itself, and groups those that wait. The coordinator above it would only
            // delay the answer.
            .with_key_value("surrealkv_grouped_commit_timeout", "0");
        let builder = Datastore::builder().with_config(config);
        let datastore = builder.without_maintenance_tasks().build_with_path(url).await.map_err(opening)?;
        // Before anything else is written: a new store has to say its version first.
        datastore.check_version().await.map_err(opening)?;
        datastore.bootstrap().await.map_err(opening)?;
        datastore.start_maintenance_tasks();
        Ok(Session::Here(Surreal::<Db>::unstable_from_datastore(datastore, None).await?))
    }

    /// A store in memory, or on another machine.
    pub async fn connect(url: &str) -> Result<Session> {
        Ok(Session::Elsewhere(connect(url).await?))
    }

    pub async fn sign_in(&self, root: surrealdb::opt::auth::Root) -> Result<()> {
        match self {
            Session::Here(session) => drop(session.signin(root).await?),
            Session::Elsewhere(session) => drop(session.signin(root).await?),
        }
        Ok(())
    }

    pub async fn health(&self) -> Result<()> {
        match self {
            Session::Here(session) => session.health().await?,
            Session::Elsewhere(session) => session.health().await?,
        }
        Ok(())
    }

    pub async fn use_namespace(&self, namespace: &str) -> Result<()> {
        match self {
            Session::Here(session) => drop(session.use_ns(namespace).await?),
            Session::Elsewhere(session) => drop(session.use_ns(namespace).await?),
        }
        Ok(())
    }

    pub async fn use_database(&self, namespace: &str, database: &str) -> Result<()> {
        match self {
            Session::Here(session) => drop(session.use_ns(namespace).use_db(database).await?),
            Session::Elsewhere(session) => drop(session.use_ns(namespace).use_db(database).await?),
        }
        Ok(())
    }

    pub async fn query(&self, statements: &str, values: Variables) -> Result<surrealdb::IndexedResults> {
        match self {
            Session::Here(session) => on_stack(session.query(statements).bind(values).into_future()).await,
            Session::Elsewhere(session) => on_stack(session.query(statements).bind(values).into_future()).await,
        }
        .map_err(retry::classify)
    }
}

/// Makes the folder of a store, or the one that is there, inaccessible to everybody but its owner.
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

/// The mode of a store's folder. Without the right to enter it, nobody else reads a file inside.
#[cfg(unix)]
const OWNER_ONLY: u32 = 0o700;

/// What a query has of stack at least: an unoptimised database takes more than a megabyte for a transaction with a loop.
const LEAST_STACK: usize = if cfg!(debug_assertions) { 1_600 << 10 } else { 256 << 10 };
/// What it gets where there is less.
const STACK: usize = 4 << 20;

/// Runs a query with stack enough, whatever called it and from how deep.
async fn on_stack<F: Future>(query: F) -> F::Output {
    let mut query = pin!(query);
    poll_fn(|context| stacker::maybe_grow(LEAST_STACK, STACK, || query.as_mut().poll(context))).await
}

fn opening(error: impl std::fmt::Display) -> Error {
    Error::Opening(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1 << 20;
    const VALUES: usize = 20;
    const WRITES: usize = 3_000;

    /// The size of a folder with all that is below it.
    fn bytes_below(folder: &Path) -> u64 {
        let size = |entry: fs::DirEntry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            // The engine may have removed the file since it was listed.
            metadata => metadata.map_or(0, |metadata| metadata.len()),
        };
        fs::read_dir(folder).expect("a folder").flatten().map(size).sum()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_values_that_are_overwritten_leave_the_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        let sizes = Sizes { memtable_bytes: MEBIBYTE as usize, ..Sizes::default() };
        let session = Session::open(&format!("surrealkv://{}", path.display()), &sizes).await.expect("a store");
        session.use_namespace("test").await.expect("a namespace");
        session.use_database("test", "test").await.expect("a database");
        let mut most = 0;
        for number in 0..WRITES {
            let text = format!("{number} ").repeat(20_000 / 5);
            let statement = format!("UPSERT large:{} SET text = '{text}'", number % VALUES);
            session.query(&statement, Variables::new()).await.and_then(|answer| Ok(answer.check()?)).expect("written");
            most = most.max(bytes_below(&path));
        }
        // Up to a dozen tables of a memtable each wait until they are merged, beside the log and what is merged.
        assert!(most < 20 * MEBIBYTE, "{WRITES} writes of 20 kB to {VALUES} values take {most} bytes");
    }
}
