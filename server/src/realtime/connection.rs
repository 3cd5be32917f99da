//! One socket, from the moment it is upgraded: frames in, frames out, and everything that ends it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use poem::web::websocket::{CloseCode, Message, WebSocketStream};
use tokio::time::{Instant, sleep_until, timeout};

use super::broadcast::Broadcast;
use super::frame::{self, Head, Inbound, Version};
use super::queue::{Outgoing, Queue};
use super::session::Session;
use crate::http::shutdown::Shutdown;

/// How long a peer may take to say that it has understood the end.
const FAREWELL: Duration = Duration::from_secs(2);
/// At the server's end sockets are closed a few at a time, so that not all clients come back at once.
const SLICES: u64 = 10;
const SLICE: Duration = Duration::from_millis(100);

/// An upgraded socket and all that belongs to it.
pub struct Connection {
    pub socket: WebSocketStream,
    pub version: Version,
    pub queue: Arc<Queue>,
    pub session: Session,
    pub shutdown: Shutdown,
    pub idle: Duration,
    /// Its number, by which it is in a slice.
    pub number: u64,
}

/// Why a socket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The peer has closed it, or is gone.
    Gone,
    /// The server stops.
    Stopped,
    /// The right to listen has ended.
    Revoked,
    /// Too much waits for the peer.
    Slow,
    /// Nothing came for too long.
    Silent,
    /// What came was no frame, or too large a one.
    Malformed,
}

impl Connection {
    /// Serves the socket until it ends.
    pub async fn serve(mut self) {
        let end = self.run().await;
        tracing::debug!(?end, number = self.number, "a socket ends");
        if end == End::Stopped {
            tokio::time::sleep(SLICE * (self.number % SLICES) as u32).await;
        }
        if end == End::Revoked {
            self.session.end_all("the right to listen has ended");
            let _ = timeout(FAREWELL, write_waiting(&mut self.socket, self.version, &self.queue)).await;
        }
        // What is on its way to this socket need not wait for it.
        drop(self.session);
        if let Some((code, reason)) = end.close() {
            let farewell = async {
                let _ = self.socket.send(Message::close_with(code, reason)).await;
                // The peer answers; whoever leaves before that breaks the connection off.
                while let Some(Ok(_)) = self.socket.next().await {}
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
    }

    async fn run(&mut self) -> End {
        let mut last_frame = Instant::now();
        loop {
            if let Some(end) = self.write().await {
                return end;
            }
            let Connection { socket, queue, session, shutdown, .. } = self;
            let frame = tokio::select! {
                frame = socket.next() => frame,
                () = queue.filled() => continue,
                () = session.standing.ended() => return End::Revoked,
                () = shutdown.clone().begun() => return End::Stopped,
                () = sleep_until(last_frame + self.idle) => return End::Silent,
            };
            last_frame = Instant::now();
            let inbound = match frame {
                Some(Ok(Message::Text(text))) => frame::read_text(self.version, &text),
                Some(Ok(Message::Binary(bytes))) => frame::read_bytes(self.version, &bytes),
                // Pings are answered by the library. After a close it must be polled until there is nothing more.
                Some(Ok(_)) => continue,
                Some(Err(error)) if error.kind() == std::io::ErrorKind::Other => return End::Malformed,
                Some(Err(_)) | None => return End::Gone,
            };
            if let Some(end) = self.take(inbound).await {
                return end;
            }
        }
    }

    /// Takes in what was read; what is no message is dropped, and counts all the same.
    async fn take(&mut self, inbound: Option<Inbound>) -> Option<End> {
        let Connection { session, shutdown, .. } = self;
        tokio::select! {
            () = session.handle(inbound) => None,
            // It may wait for the store, or for its allowance.
            () = shutdown.clone().begun() => Some(End::Stopped),
        }
    }

    /// Sends what waits. A peer that reads slowly holds nothing up but itself.
    async fn write(&mut self) -> Option<End> {
        let Connection { socket, version, queue, session, shutdown, .. } = self;
        let waiting = queue.clone();
        tokio::select! {
            biased;
            written = write_waiting(socket, *version, queue) => match written {
                Ok(()) if queue.has_overflowed() => Some(End::Slow),
                Ok(()) => None,
                Err(_) => Some(End::Gone),
            },
            () = waiting.overflowed() => Some(End::Slow),
            () = session.standing.ended() => Some(End::Revoked),
            () = shutdown.clone().begun() => Some(End::Stopped),
        }
    }
}

impl End {
    fn close(self) -> Option<(CloseCode, &'static str)> {
        match self {
            End::Gone => None,
            End::Stopped => Some((CloseCode::Restart, "the server stops")),
            End::Revoked => Some((CloseCode::Policy, "the right to listen has ended")),
            End::Slow => Some((CloseCode::Again, "too much waits to be read")),
            End::Silent => Some((CloseCode::Away, "nothing was heard for too long")),
            End::Malformed => Some((CloseCode::Protocol, "what came was no frame, or too large a one")),
        }
    }
}

async fn write_waiting(socket: &mut WebSocketStream, version: Version, queue: &Queue) -> std::io::Result<()> {
    let mut has_written = false;
    while let Some(outgoing) = queue.pop() {
        if let Some(message) = written(version, queue, outgoing) {
            socket.feed(message).await?;
            has_written = true;
        }
    }
    if has_written { socket.flush().await } else { Ok(()) }
}

/// A message as this client reads it; `None` where it cannot.
fn written(version: Version, queue: &Queue, outgoing: Outgoing) -> Option<Message> {
    let text = |topic: &str, event: &str, payload: &str| {
        frame::write_text(version, Head { join_ref: None, reference: None, topic, event }, payload)
    };
    match outgoing {
        Outgoing::Frame(text) => Some(Message::Text(text)),
        Outgoing::Broadcast { topic, told } => match &*told {
            Broadcast::Json { event, payload } => Some(Message::Text(text(&topic, event, payload))),
            Broadcast::Bytes { event, meta, data } => {
                let understands = queue.takes_bytes.load(std::sync::atomic::Ordering::Relaxed);
                let frame = understands.then(|| frame::write_bytes(&topic, event, meta, data)).flatten()?;
                Some(Message::Binary(frame))
            }
        },
    }
}
