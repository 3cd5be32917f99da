//! The WebSockets that deliver events to agents, in the protocol of Phoenix as Supabase clients use it.
//!
//! An agent listens on the channel `agent:ID`, or reads `GET /agents/ID/events`.
//!
//! 1. **Right.** `POST /agents/connect` returns a credential, signed with a key of the control database, so that any
//!    server can check the credential. A client with the credential gets a `Listener`, which reads feeds and updates
//!    presence. If the caller that created the credential may write, the listener also moves cursors. A message between
//!    clients names its sender, and cannot have the name of a server event. Like an event stream, a socket ends when
//!    its `Grant` ends.
//! 2. **Hub.** A workspace with open sockets has one follower of the log (`hub.rs`), which sends each delivery only to
//!    the members of the delivery's channel. The follower ends with the last socket.
//! 3. **Join.** A new member receives no live events at first: `replay.rs` reads from the agent's cursor, as fast as
//!    the client reads. The member goes live when the replay reaches the follower's position, so there is no gap.
//! 4. **Queue.** The messages that wait for a socket are limited by number and bytes. Beyond the limit, the server
//!    closes the socket with the code 1013, and the agent reconnects and continues from its cursor.
//!
//! Live and replayed deliveries come from the same function (`engine/src/workspace/feed.rs`), and
//! `server/src/wire/delivery.rs` writes the JSON of both.

mod allowance;
mod broadcast;
mod connection;
mod frame;
mod handshake;
mod http_broadcast;
mod hub;
mod line;
mod payload;
mod presence;
mod queue;
mod replay;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use connection::SocketConnection;
use foldwork_engine::{Engine, Listener};
use hub::Hubs;
use poem::http::header;
use poem::web::Data;
use poem::web::websocket::{WebSocket, WebSocketConfig};
use poem::{EndpointExt, FromRequest, IntoResponse, Request, Response, Route, get, handler, post};
use queue::{Queue, QueueBound};
use session::{AuthenticatedSocket, SocketSession};

use crate::config::{Config, SocketLimits};
use crate::http::bearer::{SenderIdentity, VerifiedIdentity};
use crate::http::error::ApiError;
use crate::http::shutdown::Shutdown;
use crate::http::streams::OpenStreams;
use crate::metric::SOCKETS_OPEN;

/// The paths below [`REALTIME`](crate::http::routes::REALTIME), each with its method.
pub const METHODS: [(&str, &str); 4] =
    [("", "GET"), ("/websocket", "GET"), ("/api/broadcast", "POST"), ("/api/broadcast/{topic}/events/{event}", "POST")];
/// The size of a socket's read and write buffers in bytes. Larger buffers would dominate the memory of an idle socket.
const BUFFER: usize = 4 << 10;

/// The state that all sockets share.
#[derive(Clone)]
pub struct Realtime {
    hubs: Hubs,
    limits: SocketLimits,
    /// The idle timeout. A socket is closed if no frame arrives from the client within this time.
    idle: Duration,
    /// The counts of open sockets per workspace, and their limit.
    sockets: OpenStreams,
    numbers: Arc<AtomicU64>,
}

impl Realtime {
    pub fn new(config: &Config) -> Realtime {
        let most = config.http.streams_per_workspace;
        Realtime {
            hubs: Hubs::default(),
            limits: config.constants.socket.clone(),
            idle: config.http.idle_timeout.0,
            sockets: OpenStreams::new(most, "sockets", &SOCKETS_OPEN),
            numbers: Arc::default(),
        }
    }

    /// Returns the routes below [`REALTIME`](crate::http::routes::REALTIME).
    pub fn routes(&self) -> impl poem::Endpoint + use<> {
        Route::new()
            .at("/", get(open))
            .at("/websocket", get(open))
            .at("/api/broadcast", post(http_broadcast::broadcast_several))
            .at("/api/broadcast/:topic/events/:event", post(http_broadcast::broadcast_one))
            .data(self.clone())
    }

    /// Authenticates a request by its credential, and returns the handle for listening.
    async fn listener(&self, request: &Request) -> Result<Listener, ApiError> {
        let credential = handshake::credential(request)?;
        self.listener_with(request, &credential).await
    }

    async fn listener_with(&self, request: &Request, credential: &str) -> Result<Listener, ApiError> {
        let engine = request.data::<Arc<Engine>>().expect("the application adds its engine to each request");
        let listener = engine.listen(credential).await?;
        if let Some(verified) = request.data::<VerifiedIdentity>() {
            verified.mark(SenderIdentity::from(listener.caller()));
        }
        Ok(listener)
    }
}

/// Upgrades the request to a socket, or returns an error.
#[handler]
async fn open(
    request: &Request,
    realtime: Data<&Realtime>,
    engine: Data<&Arc<Engine>>,
    shutdown: Data<&Shutdown>,
) -> poem::Result<Response> {
    let asks_for_socket =
        request.headers().get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !asks_for_socket {
        return Err(handshake::upgrade_required().into());
    }
    let version = handshake::version(request)?;
    let token = handshake::credential(request).map_err(ApiError::from)?;
    let listener = realtime.listener_with(request, &token).await?;
    let permit = realtime.sockets.enter(&listener.record().id)?;
    let socket = WebSocket::from_request_without_body(request).await.map_err(|_| handshake::upgrade_required())?;
    let hub = realtime.hubs.enter(&listener).await.map_err(ApiError::from)?;
    let (socket_limits, idle) = (&realtime.limits, realtime.idle);
    let bound = QueueBound { messages: socket_limits.queue_messages, bytes: socket_limits.queue_bytes };
    let queue = Arc::new(Queue::new(bound));
    let admitted = AuthenticatedSocket { engine: engine.clone(), listener, token, hub };
    let session = SocketSession::new(admitted, queue.clone(), version, socket_limits);
    let number = realtime.numbers.fetch_add(1, Ordering::Relaxed);
    let (shutdown, held) = (shutdown.clone(), shutdown.hold());
    let limits = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(socket_limits.frame_bytes))
        .max_frame_size(Some(socket_limits.frame_bytes));
    let upgraded = socket.config(limits).protocols([handshake::PROTOCOL]).on_upgrade(move |socket| async move {
        // The future is boxed, so that its rarely needed state does not enlarge the task of every socket.
        Box::pin(SocketConnection { socket, version, queue, session, shutdown, idle, number }.serve()).await;
        drop((permit, held));
    });
    Ok(upgraded.into_response())
}
