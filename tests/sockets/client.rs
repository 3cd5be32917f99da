//! A minimal HTTP/1.1 client. Tests control the bytes that the client sends, and the times at which it sends them.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The server's address and the key of the caller.
pub struct Client {
    pub address: SocketAddr,
    pub key: String,
}

/// A request in progress.
pub struct Exchange {
    socket: TcpStream,
    /// Bytes that were received but not returned to the caller yet.
    buffer: Vec<u8>,
}

impl Client {
    /// Returns whether the server accepts connections.
    pub async fn connects(&self) -> bool {
        TcpStream::connect(self.address).await.is_ok()
    }

    /// Sends a request with a body and waits for its response.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len().to_string();
        let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
        self.open(method, path, &headers, Some(body)).await.answer().await
    }

    /// Sends the head of a request, and the body if there is one.
    pub async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Exchange {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let key = &self.key;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n{headers}\r\n",
            self.address
        );
        self.raw(&(head + body.unwrap_or_default())).await
    }

    /// Opens a connection and sends a text unchanged.
    pub async fn raw(&self, text: &str) -> Exchange {
        let socket = TcpStream::connect(self.address).await.expect("a connection");
        let mut exchange = Exchange { socket, buffer: Vec::new() };
        exchange.write(text).await.expect("the request is sent");
        exchange
    }
}

impl Exchange {
    /// Sends a text on the connection.
    pub async fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.socket.write_all(text.as_bytes()).await
    }

    /// Reads until a text occurs, and returns all characters up to the end of the text.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut seen = 0;
        loop {
            let place = self.buffer[seen..].windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(place) = place {
                let rest = self.buffer.split_off(seen + place + end.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.buffer, rest)).into_owned();
            }
            seen = self.buffer.len().saturating_sub(end.len());
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.buffer)).await.expect("the server sends bytes");
            assert_ne!(read.expect("a connection"), 0, "socket ended after {}", String::from_utf8_lossy(&self.buffer));
        }
    }

    /// Reads exactly `length` bytes.
    pub async fn read_exact(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.buffer)).await.expect("the server sends bytes");
            assert_ne!(read.expect("a connection"), 0, "the connection ended too early");
        }
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Returns the status and the body of a response that has a `Content-Length`.
    pub async fn answer(mut self) -> (u16, String) {
        let head = self.read_until("\r\n\r\n").await;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or_default();
        while self.buffer.len() < length {
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.buffer)).await.expect("the server sends bytes");
            assert_ne!(read.expect("a connection"), 0, "the body ends too early");
        }
        (status, String::from_utf8_lossy(&self.buffer).into_owned())
    }

    /// Resets the connection. Bytes that the server has not read yet are lost, and the server gets an error.
    pub fn reset(self) {
        self.socket.set_zero_linger().expect("a socket");
    }

    /// Returns the text that the server sends before the server closes the connection.
    pub async fn rest(mut self) -> String {
        while timeout(TIMEOUT, self.socket.read_buf(&mut self.buffer)).await.expect("an end").expect("a connection") > 0
        {
        }
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}
