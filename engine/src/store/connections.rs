//! The connections to a store on another machine. A SurrealDB server limits the number of sessions on one connection,
//! so further sessions use further connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use surrealdb::Surreal;
use surrealdb::engine::any::{Any, connect};
use surrealdb::opt::auth::Root;
use tokio::time::timeout;

use super::error::{Error, Result};

/// The maximum number of sessions on one connection. A SurrealDB server allows 256 sessions, unless
/// `SURREAL_WEBSOCKET_MAX_ATTACHED_SESSIONS` changes the limit. The maximum here is lower, because the server also
/// counts ended sessions that have not been removed yet.
const MAX_SESSIONS: usize = 200;

/// The connections to one store, each with its sessions.
pub struct Connections {
    url: String,
    /// The user of every connection. Unset until the user has signed in.
    user: OnceLock<Root>,
    open: Mutex<Vec<Connection>>,
    /// The lock that is held while a connection is opened, so that waiting sessions share one new connection.
    opening: tokio::sync::Mutex<()>,
}

struct Connection {
    /// The session from which the other sessions of the connection are cloned.
    first: Arc<Surreal<Any>>,
    place: Arc<SessionPlace>,
}

/// A place on a connection. Each session holds a clone, so the number of clones is the number of sessions.
pub struct SessionPlace;

/// A session and its place on a connection.
pub type PlacedSession = (Surreal<Any>, Arc<SessionPlace>);

impl Connections {
    /// Connects to the store at `url`. Fails if the store does not respond within `limit`.
    pub async fn open(url: &str, limit: Duration) -> Result<Connections> {
        let connection = timeout(limit, Connection::open(url)).await.map_err(|_| Error::Unresponsive)??;
        let (user, open, opening) = (OnceLock::new(), Mutex::new(vec![connection]), Default::default());
        Ok(Connections { url: url.to_owned(), user, open, opening })
    }

    /// Signs in on every connection. Later connections sign in as the same user.
    pub async fn sign_in(&self, user: Root) -> Result<()> {
        let first: Vec<Arc<Surreal<Any>>> =
            self.open.lock().iter().map(|connection| connection.first.clone()).collect();
        for session in first {
            session.signin(user.clone()).await?;
        }
        // Only the first sign-in sets the user.
        let _ = self.user.set(user);
        Ok(())
    }

    /// Returns a new session, on a new connection if all open connections are full. Fails if the store does not respond
    /// to a new connection within `limit`.
    pub async fn session(&self, limit: Duration) -> Result<PlacedSession> {
        match self.place() {
            Some(session) => Ok(session),
            None => timeout(limit, self.connect()).await.unwrap_or(Err(Error::Unresponsive)),
        }
    }

    /// Returns a new session on a connection that is not full, or `None` if all open connections are full.
    fn place(&self) -> Option<PlacedSession> {
        self.open.lock().iter().find(|connection| connection.has_room()).map(Connection::session)
    }

    async fn connect(&self) -> Result<PlacedSession> {
        let _opening = self.opening.lock().await;
        if let Some(session) = self.place() {
            return Ok(session);
        }
        let connection = Connection::open(&self.url).await?;
        if let Some(user) = self.user.get() {
            connection.first.signin(user.clone()).await?;
        }
        let session = connection.session();
        self.open.lock().push(connection);
        Ok(session)
    }
}

impl Connection {
    async fn open(url: &str) -> Result<Connection> {
        Ok(Connection { first: Arc::new(connect(url).await?), place: Arc::new(SessionPlace) })
    }

    fn has_room(&self) -> bool {
        Arc::strong_count(&self.place) < MAX_SESSIONS
    }

    fn session(&self) -> PlacedSession {
        (Surreal::clone(&self.first), self.place.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::availability::TIMEOUT;
    use super::*;

    #[tokio::test]
    async fn a_full_connection_gets_no_session_until_one_of_its_sessions_ends() {
        let connections = Connections::open("mem://", TIMEOUT).await.expect("a store");
        let mut sessions = Vec::new();
        let mut is_on_first = async || {
            sessions.push(connections.session(TIMEOUT).await.expect("a session"));
            Arc::ptr_eq(&sessions[0].1, &sessions[sessions.len() - 1].1)
        };
        // The session from which the others are cloned takes one place.
        for _ in 1..MAX_SESSIONS {
            assert!(is_on_first().await);
        }
        assert!(!is_on_first().await);
        assert!(!is_on_first().await);
        sessions.remove(1);
        let next = connections.session(TIMEOUT).await.expect("a session");
        assert!(Arc::ptr_eq(&sessions[0].1, &next.1));
    }
}
