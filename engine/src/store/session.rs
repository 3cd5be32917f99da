//! Sessions on a store: in this process with limits on memory, or over a socket.

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

/// Limits on the memory of a store in a folder, in bytes.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Writes that are gathered in memory before they are written to a file. While that happens, a second memtable
    /// fills up.
    pub memtable_bytes: usize,
    /// Cached blocks of files.
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
    /// Opens a store in a folder. The database's own client has no parameters for the sizes and would use as much
    /// memory as the machine allows. The datastore is therefore built here in the same way as by that client.
    pub async fn open(url: &str, sizes: &Sizes) -> Result<Session> {
        private_folder(url).map_err(opening)?;
        let config = ConfigMap::empty()
            .with_key_value("surrealkv_max_memtable_size", sizes.memtable_bytes.to_string())
            .with_key_value("surrealkv_block_cache_capacity", sizes.cache_bytes.to_string())
            // The value log is never collected, so overwritten values would stay on the disk.
            .with_key_value("surrealkv_enable_vlog", "false")
            // The engine syncs each commit itself and groups waiting ones. The coordinator above the engine would only
            // add a delay.
            .with_key_value("surrealkv_grouped_commit_timeout", "0");
        let builder = Datastore::builder().with_config(config);
        let datastore = builder.without_maintenance_tasks().build_with_path(url).await.map_err(opening)?;
        // A new store must record its version before anything else is written.
        datastore.check_version().await.map_err(opening)?;
        datastore.bootstrap().await.map_err(opening)?;
        datastore.start_maintenance_tasks();
        Ok(Session::Here(Surreal::<Db>::unstable_from_datastore(datastore, None).await?))
    }

    /// Connects to a store in memory or on another machine.
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

/// Creates the folder of a store if needed, and makes it accessible only to its owner.
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

/// The mode of a store's folder. Other users cannot enter the folder, so they cannot read the files inside.
#[cfg(unix)]
const OWNER_ONLY: u32 = 0o700;

/// Minimum free stack of a query, in bytes. An unoptimized database takes more than a megabyte for a transaction with a
/// loop.
const MIN_STACK_BYTES: usize = if cfg!(debug_assertions) { 1_600 << 10 } else { 256 << 10 };
/// Size of a new stack if less is free, in bytes.
const STACK_BYTES: usize = 4 << 20;

/// Runs a query with enough stack, however deep the stack of the caller is.
async fn on_stack<F: Future>(query: F) -> F::Output {
    let mut query = pin!(query);
    poll_fn(|context| stacker::maybe_grow(MIN_STACK_BYTES, STACK_BYTES, || query.as_mut().poll(context))).await
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

    /// Returns the total size of the files in a folder and its subfolders.
    fn bytes_below(folder: &Path) -> u64 {
        let size = |entry: fs::DirEntry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            // The engine may have removed the file in the meantime.
            metadata => metadata.map_or(0, |metadata| metadata.len()),
        };
        fs::read_dir(folder).expect("a folder").flatten().map(size).sum()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn overwritten_large_values_are_removed_from_the_disk() {
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
            session
                .query(&statement, Variables::new())
                .await
                .and_then(|response| Ok(response.check()?))
                .expect("written");
            most = most.max(bytes_below(&path));
        }
        // Up to a dozen tables, each the size of a memtable, wait to be merged, in addition to the log and the merged
        // tables.
        assert!(most < 20 * MEBIBYTE, "{WRITES} writes of 20 kB to {VALUES} values take {most} bytes");
    }
}
