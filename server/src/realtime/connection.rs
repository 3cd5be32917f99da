//! Serves one upgraded socket: reads and writes frames until the socket is closed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use poem::web::websocket::{CloseCode, Message, WebSocketStream};
use strum::IntoStaticStr;
use tokio::time::{Instant, sleep_until, timeout};

use super::broadcast::Broadcast;
use super::frame::{self, ClientMessage, MessageHead, ProtocolVersion};
use super::queue::{OutgoingMessage, Queue};
use super::session::SocketSession;
use crate::http::shutdown::Shutdown;
use crate::metric::{SOCKET_MESSAGES, SOCKETS_CLOSED};

/// The time limit for each step of closing a socket: sending the last messages, and sending the close frame together
/// with the wait for the peer's reply.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of groups in which sockets are closed on shutdown. Closing in groups prevents all clients from
/// reconnecting at the same time.
const CLOSE_SLICES: u64 = 10;
const SLICE_DELAY: Duration = Duration::from_millis(100);

/// An upgraded socket and its state.
pub struct SocketConnection {
    pub socket: WebSocketStream,
    pub version: ProtocolVersion,
    pub queue: Arc<Queue>,
    pub session: SocketSession,
    pub shutdown: Shutdown,
    pub idle: Duration,
    /// The socket's number, which determines the group in which the socket is closed on shutdown.
    pub number: u64,
}

/// The reason why a socket is closed. The name of a reason is the value of a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum SocketEnd {
    /// The peer has closed the socket, or the connection has broken.
    Gone,
    /// The server is shutting down.
    Stopped,
    /// The client's right to listen has ended.
    Revoked,
    /// The socket's queue has overflowed, because the peer reads too slowly.
    Slow,
    /// No frame arrived within the idle timeout.
    Silent,
    /// A frame was invalid or too large.
    Malformed,
}

impl SocketConnection {
    /// Serves the socket until the connection ends or the server closes the socket.
    pub async fn serve(mut self) {
        let end = self.run().await;
        SOCKETS_CLOSED.add(&[end.into()], 1);
        tracing::debug!(?end, number = self.number, "a socket ends");
        if end == SocketEnd::Stopped {
            tokio::time::sleep(SLICE_DELAY * (self.number % CLOSE_SLICES) as u32).await;
        }
        if end == SocketEnd::Revoked {
            self.session.end_all("the permission to listen has expired or was revoked");
            let _ = timeout(CLOSE_TIMEOUT, write_waiting(&mut self.socket, self.version, &self.queue)).await;
        }
        // Drops the session, which leaves its channels, so that no more messages are queued while the socket closes.
        drop(self.session);
        if let Some((code, reason)) = end.close() {
            let closing = async {
                let _ = self.socket.send(Message::close_with(code, reason)).await;
                // Waits for the peer's reply to the close frame, or until the connection breaks.
                while let Some(Ok(_)) = self.socket.next().await {}
            };
            let _ = timeout(CLOSE_TIMEOUT, closing).await;
        }
    }

    async fn run(&mut self) -> SocketEnd {
        let mut last_frame = Instant::now();
        loop {
            if let Some(end) = self.write().await {
                return end;
            }
            let SocketConnection { socket, queue, session, shutdown, .. } = self;
            let frame = tokio::select! {
                frame = socket.next() => frame,
                () = queue.filled() => continue,
                () = session.grant.ended() => return SocketEnd::Revoked,
                () = shutdown.clone().begun() => return SocketEnd::Stopped,
                () = sleep_until(last_frame + self.idle) => return SocketEnd::Silent,
            };
            last_frame = Instant::now();
            let inbound = match frame {
                Some(Ok(Message::Text(text))) => frame::read_text(self.version, &text),
                Some(Ok(Message::Binary(bytes))) => frame::read_bytes(self.version, &bytes),
                // The WebSocket library replies to pings. After a close frame, the socket must be polled until its
                // stream ends.
                Some(Ok(_)) => continue,
                Some(Err(error)) if error.kind() == std::io::ErrorKind::Other => return SocketEnd::Malformed,
                Some(Err(_)) | None => return SocketEnd::Gone,
            };
            SOCKET_MESSAGES.add(&["received"], 1);
            if let Some(end) = self.take(inbound).await {
                return end;
            }
        }
    }

    /// Handles a message. `None` is an invalid message, which is dropped but counts towards the message limit. Returns
    /// the reason if the socket must be closed.
    async fn take(&mut self, inbound: Option<ClientMessage>) -> Option<SocketEnd> {
        let SocketConnection { session, shutdown, .. } = self;
        tokio::select! {
            () = session.handle(inbound) => None,
            // Handling a message may wait for the store or for the message limit, so a shutdown interrupts the wait.
            () = shutdown.clone().begun() => Some(SocketEnd::Stopped),
        }
    }

    /// Sends the queued messages. A slow peer delays only its own socket. Returns the reason if the socket must be
    /// closed.
    async fn write(&mut self) -> Option<SocketEnd> {
        let SocketConnection { socket, version, queue, session, shutdown, .. } = self;
        let waiting = queue.clone();
        tokio::select! {
            biased;
            result = write_waiting(socket, *version, queue) => match result {
                Ok(()) if queue.has_overflowed() => Some(SocketEnd::Slow),
                Ok(()) => None,
                Err(_) => Some(SocketEnd::Gone),
            },
            () = waiting.overflowed() => Some(SocketEnd::Slow),
            () = session.grant.ended() => Some(SocketEnd::Revoked),
            () = shutdown.clone().begun() => Some(SocketEnd::Stopped),
        }
    }
}

impl SocketEnd {
    fn close(self) -> Option<(CloseCode, &'static str)> {
        match self {
            SocketEnd::Gone => None,
            SocketEnd::Stopped => Some((CloseCode::Restart, "the server is shutting down")),
            SocketEnd::Revoked => Some((CloseCode::Policy, "the permission to listen has expired or was revoked")),
            SocketEnd::Slow => Some((CloseCode::Again, "the queue of messages to the client exceeds its limit")),
            SocketEnd::Silent => Some((CloseCode::Away, "no frame arrived within the idle timeout")),
            SocketEnd::Malformed => Some((CloseCode::Protocol, "the frame is invalid or too large")),
        }
    }
}

async fn write_waiting(socket: &mut WebSocketStream, version: ProtocolVersion, queue: &Queue) -> std::io::Result<()> {
    let mut written = 0;
    while let Some(outgoing) = queue.pop() {
        if let Some(message) = serialize(version, queue, outgoing) {
            socket.feed(message).await?;
            written += 1;
        }
    }
    if written == 0 {
        return Ok(());
    }
    SOCKET_MESSAGES.add(&["sent"], written);
    socket.flush().await
}

/// Serializes a message for this client, or returns `None` if the client cannot read the message.
fn serialize(version: ProtocolVersion, queue: &Queue, outgoing: OutgoingMessage) -> Option<Message> {
    let text = |topic: &str, event: &str, payload: &str| {
        frame::write_text(version, MessageHead { join_ref: None, reference: None, topic, event }, payload)
    };
    match outgoing {
        OutgoingMessage::Frame(text) => Some(Message::Text(text)),
        OutgoingMessage::Broadcast { topic, message } => match &*message {
            Broadcast::Json { event, payload } => Some(Message::Text(text(&topic, event, payload))),
            Broadcast::Bytes { event, meta, data } => {
                let understands = queue.takes_bytes.load(std::sync::atomic::Ordering::Relaxed);
                let frame = understands.then(|| frame::write_bytes(&topic, event, meta, data)).flatten()?;
                Some(Message::Binary(frame))
            }
        },
    }
}
