//! HTTP/1.1 as little as the tests need, so that they decide what goes over the wire and when.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Who asks, and whom.
pub struct Client {
    pub address: SocketAddr,
    pub key: String,
}

/// A request under way.
pub struct Exchange {
    socket: TcpStream,
    /// Read, but not asked for yet.
    ahead: Vec<u8>,
}

impl Client {
    /// Whether the server takes connections.
    pub async fn connects(&self) -> bool {
        TcpStream::connect(self.address).await.is_ok()
    }

    /// Sends a request with a body and waits for its answer.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len().to_string();
        let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
        self.open(method, path, &headers, Some(body)).await.answer().await
    }

    /// Sends the head of a request, and the body where it is given.
    pub async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Exchange {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let key = &self.key;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n{headers}\r\n",
            self.address
        );
        self.raw(&(head + body.unwrap_or_default())).await
    }

    /// Opens a connection and sends a text as it is.
    pub async fn raw(&self, text: &str) -> Exchange {
        let socket = TcpStream::connect(self.address).await.expect("a connection");
        let mut exchange = Exchange { socket, ahead: Vec::new() };
        exchange.write(text).await.expect("the request is sent");
        exchange
    }
}

impl Exchange {
    pub async fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.socket.write_all(text.as_bytes()).await
    }

    /// Reads up to a text and answers all before it and itself.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut seen = 0;
        loop {
            let place = self.ahead[seen..].windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(place) = place {
                let rest = self.ahead.split_off(seen + place + end.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.ahead, rest)).into_owned();
            }
            seen = self.ahead.len().saturating_sub(end.len());
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.ahead)).await.expect("something comes");
            assert_ne!(read.expect("a connection"), 0, "ended after {}", String::from_utf8_lossy(&self.ahead));
        }
    }

    /// Reads so many bytes.
    pub async fn read_exact(&mut self, length: usize) -> Vec<u8> {
        while self.ahead.len() < length {
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.ahead)).await.expect("something comes");
            assert_ne!(read.expect("a connection"), 0, "ended too early");
        }
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    /// Status and body of an answer that tells its length.
    pub async fn answer(mut self) -> (u16, String) {
        let head = self.read_until("\r\n\r\n").await;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or_default();
        while self.ahead.len() < length {
            let read = timeout(TIMEOUT, self.socket.read_buf(&mut self.ahead)).await.expect("the body comes");
            assert_ne!(read.expect("a connection"), 0, "the body ends too early");
        }
        (status, String::from_utf8_lossy(&self.ahead).into_owned())
    }

    /// Breaks the connection off: what was sent and not read yet is lost, and the server is told of an error.
    pub fn reset(self) {
        self.socket.set_zero_linger().expect("a socket");
    }

    /// Everything until the server closes.
    pub async fn rest(mut self) -> String {
        while timeout(TIMEOUT, self.socket.read_buf(&mut self.ahead)).await.expect("an end").expect("a connection") > 0
        {
        }
        String::from_utf8_lossy(&self.ahead).into_owned()
    }
}
