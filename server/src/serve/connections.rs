//! Accepts connections up to a limit, serves their requests with limits on time and memory, and closes connections on
//! shutdown.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldwork_engine::error::ErrorCode;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use poem::endpoint::BoxEndpoint;
use poem::http::uri::Scheme;
use poem::web::{LocalAddr, RemoteAddr};
use poem::{Endpoint, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::socket::Socket;
use crate::config::{Config, Http};
use crate::http::client_address::TrustedProxies;
use crate::http::shutdown::Shutdown;
use crate::metric::{CONNECTIONS_LIMIT, CONNECTIONS_OPEN, REJECTIONS};

/// The pause after a failed accept. Without the pause, a process without free file descriptors would retry in a busy
/// loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The maximum size in bytes of the buffers of an HTTP/1.1 connection, and of the send buffer of each request on an
/// HTTP/2 connection.
const BUFFER_BYTES: usize = 64 << 10;
/// The maximum number of concurrent requests on an HTTP/2 connection.
const MAX_CONCURRENT_STREAMS: u32 = 200;
/// The maximum number of pending resets on an HTTP/2 connection. A reset is pending if the client has reset a request
/// that the server has not accepted yet.
const MAX_PENDING_RESETS: usize = 20;
/// The maximum size of the head of a request on an HTTP/2 connection, in bytes.
const MAX_HEAD_BYTES: u32 = 16 << 10;

/// Serves the application on connections, within the limits for connections.
pub struct ConnectionServer {
    application: BoxEndpoint<'static, Response>,
    address: LocalAddr,
    /// The time limit for receiving a request's head. The time starts with the connection or after the previous
    /// response. On an HTTP/2 connection, the limit applies only to the first request. The server also sends pings
    /// on such a connection at this interval, and closes the connection if the client does not respond.
    idle: Duration,
    stalled: Duration,
    permits: Arc<Permits>,
}

impl ConnectionServer {
    pub fn new(application: BoxEndpoint<'static, Response>, address: SocketAddr, config: &Config) -> ConnectionServer {
        let Http { max_connections, max_connections_per_address, idle_timeout, .. } = config.http;
        CONNECTIONS_LIMIT.set(&[], max_connections as f64);
        ConnectionServer {
            application,
            address: LocalAddr(address.into()),
            idle: idle_timeout.0,
            stalled: config.constants.stalled_reader,
            permits: Arc::new(Permits {
                max: max_connections,
                max_per_address: max_connections_per_address,
                unlimited: TrustedProxies::new(&config.http.trusted_proxies),
                taken: Mutex::default(),
            }),
        }
    }

    /// Accepts and serves connections until the shutdown begins. Returns the tasks of the connections that are still
    /// open.
    pub async fn run(self, listener: TcpListener, shutdown: &Shutdown) -> JoinSet<()> {
        let serving = Arc::new(self);
        let mut open = JoinSet::new();
        let mut end = pin!(shutdown.clone().begun());
        loop {
            tokio::select! {
                () = &mut end => return open,
                Some(ended) = open.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a connection's task failed");
                    }
                }
                (stream, from) = accept(&listener) => match serving.permits.take(from.ip()) {
                    Ok(permit) => {
                        let socket = Socket::new(stream, serving.stalled, permit);
                        open.spawn(serve(serving.clone(), socket, from, shutdown.clone()));
                    }
                    Err(refusal) => refuse(stream, from, refusal),
                },
            }
        }
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY cannot be set");
                }
                return (stream, from);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(serving: Arc<ConnectionServer>, socket: Socket, from: SocketAddr, shutdown: Shutdown) {
    let has_requested = Arc::new(AtomicBool::new(false));
    let (requested, served) = (has_requested.clone(), serving.clone());
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        requested.store(true, Ordering::Relaxed);
        let serving = served.clone();
        async move {
            let request = (request, serving.address.clone(), RemoteAddr(from.into()), Scheme::HTTP).into();
            Ok::<_, Infallible>(hyper::Response::from(serving.application.get_response(request).await))
        }
    });
    let protocols = protocols(serving.idle);
    let mut connection = pin!(protocols.serve_connection_with_upgrades(TokioIo::new(socket), service));
    let silence = async {
        tokio::time::sleep(serving.idle).await;
        if has_requested.load(Ordering::Relaxed) {
            // After the first request, the HTTP library applies its own time limits.
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.begun() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = silence => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %from, "a connection was broken");
    }
}

/// Returns the protocol settings for HTTP/1.1 and HTTP/2 with their limits.
fn protocols(idle: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(idle)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_send_buf_size(BUFFER_BYTES);
    builder
}

/// The permits for open connections.
pub struct Permits {
    max: usize,
    /// The maximum number of connections per address. 0 means no limit.
    max_per_address: usize,
    /// The trusted proxies, which have no limit per address, because each proxy connects for many clients.
    unlimited: TrustedProxies,
    taken: Mutex<ConnectionCounts>,
}

#[derive(Default)]
struct ConnectionCounts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The reason why a connection is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionRefusal {
    Full,
    AddressFull,
}

/// The permit of one open connection.
pub struct ConnectionPermit {
    permits: Arc<Permits>,
    address: IpAddr,
}

impl Permits {
    fn take(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, ConnectionRefusal> {
        let mut taken = self.taken.lock();
        if taken.all >= self.max {
            return Err(ConnectionRefusal::Full);
        }
        let of_address = taken.by_address.get(&address).copied().unwrap_or(0);
        if self.max_per_address > 0 && of_address >= self.max_per_address && !self.unlimited.contains(address) {
            return Err(ConnectionRefusal::AddressFull);
        }
        taken.all += 1;
        taken.by_address.insert(address, of_address + 1);
        CONNECTIONS_OPEN.set(&[], taken.all as f64);
        Ok(ConnectionPermit { permits: self.clone(), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock();
        taken.all -= 1;
        CONNECTIONS_OPEN.set(&[], taken.all as f64);
        if let Some(count) = taken.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

/// Sends an error response and closes the connection, without waiting for the peer.
fn refuse(stream: TcpStream, from: SocketAddr, refusal: ConnectionRefusal) {
    let (status, code, reason, message) = match refusal {
        ConnectionRefusal::Full => (
            "503 Service Unavailable",
            ErrorCode::Busy,
            ["503", "connections"],
            "the server has as many open connections as `http.max_connections` allows",
        ),
        ConnectionRefusal::AddressFull => (
            "429 Too Many Requests",
            ErrorCode::TooManyConnections,
            ["429", "too_many_connections"],
            "this address has as many connections as `http.max_connections_per_address` allows",
        ),
    };
    REJECTIONS.add(&reason, 1);
    tracing::debug!(status, %from, "a connection was rejected");
    let id = uuid::Uuid::now_v7();
    let body = format!(r#"{{"error":"{message}","code":"{code}","request_id":"{id}"}}"#);
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 1\r\n\
         x-request-id: {id}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // The socket is non-blocking and its send buffer is empty, so the write completes or fails immediately.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(response.as_bytes());
    }
}
