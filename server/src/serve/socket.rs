//! The socket of a connection. A write fails if the peer accepts no data within a time limit. The socket holds the
//! connection's permit until the socket is dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connections::ConnectionPermit;

/// The socket of a connection. After an upgrade to a WebSocket, the connection still uses this socket.
pub struct Socket {
    stream: TcpStream,
    /// The time limit for a write that waits for the peer.
    timeout: Duration,
    /// The timer of the write that waits for the peer, or `None` if no write waits.
    waiting: Option<Pin<Box<Sleep>>>,
    _permit: ConnectionPermit,
}

impl Socket {
    pub fn new(stream: TcpStream, timeout: Duration, permit: ConnectionPermit) -> Socket {
        Socket { stream, timeout, waiting: None, _permit: permit }
    }

    /// Returns the result of a write, or a timeout error if the write has waited longer than the time limit.
    fn with_timeout(&mut self, context: &mut Context<'_>, write: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if write.is_ready() {
            self.waiting = None;
            return write;
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(waiting.as_mut().poll(context));
        let message = format!("the peer did not read the data within {timeout:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.with_timeout(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.with_timeout(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
