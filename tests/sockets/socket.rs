//! A WebSocket client for the channels of agents, with version two of the Phoenix serializer.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::TIMEOUT;
use crate::client::Client;

/// An open socket.
pub struct Socket {
    pub stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_ref: u64,
    /// Messages that arrived during a wait for another message.
    queued: Vec<Value>,
}

/// Returns the response of `POST /agents/connect`.
pub async fn connected(client: &Client, body: &Value) -> Value {
    let (status, text) = client.send("POST", "/api/v1/agents/connect", &body.to_string()).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Registers an agent and returns its id.
pub async fn agent(client: &Client, name: &str) -> String {
    let body = json!({"name": name, "subscribed_traits": ["content-bearing"]});
    let (status, text) = client.send("POST", "/api/v1/agents", &body.to_string()).await;
    assert_eq!(status, 201, "{text}");
    let agent: Value = serde_json::from_str(&text).expect("JSON");
    agent["id"].as_str().expect("an id").to_owned()
}

/// Gives an agent a task and returns the task's id.
pub async fn task(client: &Client, agent: &str, title: &str) -> String {
    let body = json!({"title": title, "assignee_type": "agent", "assignee_id": agent});
    let (status, text) = client.send("POST", "/api/v1/mailbox", &body.to_string()).await;
    assert_eq!(status, 201, "{text}");
    let task: Value = serde_json::from_str(&text).expect("JSON");
    task["id"].as_str().expect("an id").to_owned()
}

/// Returns the channel of an agent, with the prefix that clients use.
pub fn topic(agent: &str) -> String {
    format!("realtime:agent:{agent}")
}

impl Socket {
    /// Opens a socket with the URL and the credential in the response of `POST /agents/connect`.
    pub async fn open(client: &Client, body: &Value) -> Socket {
        let connected = connected(client, body).await;
        let (url, key) = (connected["url"].as_str().expect("a URL"), connected["anon_key"].as_str().expect("a key"));
        Socket::open_at(&format!("{url}/websocket?apikey={key}&vsn=2.0.0")).await.expect("a socket")
    }

    /// Opens a socket with a key and a version of the serializer.
    pub async fn open_with(client: &Client, key: &str, vsn: &str) -> Result<Socket, tungstenite::Error> {
        let address = client.address;
        Socket::open_at(&format!("ws://{address}/realtime/v1/websocket?apikey={key}&vsn={vsn}")).await
    }

    /// Opens a socket at a URL.
    pub async fn open_at(url: &str) -> Result<Socket, tungstenite::Error> {
        let (stream, _) = timeout(TIMEOUT, connect_async(url)).await.expect("an answer")?;
        Ok(Socket { stream, next_ref: 0, queued: Vec::new() })
    }

    /// Sends a text frame.
    pub async fn send_text(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.expect("the message is sent");
    }

    /// Sends a message on a channel and returns the reference of the message.
    pub async fn push(&mut self, join_ref: Option<&str>, topic: &str, event: &str, payload: Value) -> String {
        self.next_ref += 1;
        let reference = self.next_ref.to_string();
        self.send_text(&json!([join_ref, reference, topic, event, payload]).to_string()).await;
        reference
    }

    /// Returns the next frame that is not a ping or pong, or `None` if the connection has ended.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match timeout(TIMEOUT, self.stream.next()).await.expect("the server sends a frame") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// Returns the next message that satisfies `predicate`. Messages that do not satisfy `predicate` are queued for
    /// later calls.
    pub async fn message(&mut self, mut predicate: impl FnMut(&Value) -> bool) -> Value {
        if let Some(place) = self.queued.iter().position(&mut predicate) {
            return self.queued.remove(place);
        }
        loop {
            let next = self.next().await;
            let text = next.as_ref().and_then(|next| next.to_text().ok().filter(|_| next.is_text()));
            let message: Value = serde_json::from_str(text.expect("a text frame")).expect("JSON");
            if predicate(&message) {
                return message;
            }
            self.queued.push(message);
        }
    }

    /// Returns the reply to the message that was sent with this reference.
    pub async fn reply(&mut self, reference: &str) -> Value {
        self.message(|message| message[3] == "phx_reply" && message[1] == reference).await[4].take()
    }

    /// Joins a channel and returns the reference of the membership.
    pub async fn join(&mut self, topic: &str, config: Value) -> String {
        let (reference, reply) = self.try_join(topic, json!({"config": config})).await;
        assert_eq!(reply, json!({"status": "ok", "response": {"postgres_changes": []}}));
        reference
    }

    /// Sends a request to join a channel. Returns the reference of the request, and the server's reply.
    pub async fn try_join(&mut self, topic: &str, payload: Value) -> (String, Value) {
        let own = (self.next_ref + 1).to_string();
        let reference = self.push(Some(&own), topic, "phx_join", payload).await;
        let reply = self.reply(&reference).await;
        (reference, reply)
    }

    /// Returns the next broadcast on a channel, with its event, payload and meta.
    pub async fn next_broadcast(&mut self, topic: &str) -> Value {
        self.message(|message| message[3] == "broadcast" && message[2] == topic).await[4].take()
    }

    /// Acknowledges every event up to a position.
    pub async fn acknowledge(&mut self, join_ref: &str, topic: &str, position: &Value) {
        let payload = json!({"type": "broadcast", "event": "ack", "payload": {"position": position}});
        let reference = self.push(Some(join_ref), topic, "broadcast", payload).await;
        assert_eq!(self.reply(&reference).await["status"], "ok");
    }

    /// Skips messages until the server closes the socket, and returns the code of the close frame, if any.
    pub async fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.next().await {
                Some(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Some(_) => {}
                None => return None,
            }
        }
    }

    /// Breaks the connection without a close frame.
    pub fn cut(self) {
        if let MaybeTlsStream::Plain(stream) = self.stream.get_ref() {
            stream.set_zero_linger().expect("a socket");
        }
    }
}
