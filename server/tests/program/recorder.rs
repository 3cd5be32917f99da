//! A relay that passes requests from a client to a server and records the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request that went through a recorder.
#[derive(Clone, Debug)]
pub struct Sent {
    pub method: String,
    /// The path with the query.
    pub target: String,
    /// The body, or empty if the request has no `Content-Length` header.
    pub body: Vec<u8>,
}

/// A relay that listens on a free port. Its thread ends with the process.
pub struct Recorder {
    address: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Recorder {
    /// Starts a relay to the server at an address.
    pub fn start(server: &str) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sent, server) = (Arc::<Mutex<Vec<Sent>>>::default(), server.to_owned());
        let recorded = sent.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, sent) = (server.clone(), sent.clone());
                std::thread::spawn(move || relay(client, &server, &sent));
            }
        });
        Recorder { address, sent: recorded }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().expect("not poisoned").clone()
    }
}

/// Relays one request and its response, and records the request. The connection ends with the response.
fn relay(client: TcpStream, server: &str, sent: &Mutex<Vec<Sent>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        length = lower.strip_prefix("content-length:").and_then(|value| value.trim().parse().ok()).or(length);
        match line.trim_end() {
            "" => break,
            _ if lower.starts_with("connection:") => {}
            _ => head += &line,
        }
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    sent.lock().expect("not poisoned").push(Sent { method, target, body: body.clone() });
    let mut upstream = TcpStream::connect(server).ok()?;
    upstream
        .write_all(format!("{head}connection: close\r\n\r\n").as_bytes())
        .and_then(|()| upstream.write_all(&body))
        .ok()?;
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        let mut onwards = upstream.try_clone().ok()?;
        std::thread::spawn(move || std::io::copy(&mut reader, &mut onwards));
    }
    let mut client = client;
    std::io::copy(&mut upstream, &mut client).ok()?;
    client.shutdown(Shutdown::Both).ok()
}
