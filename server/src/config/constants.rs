//! Limits that no setting changes, each with the reason for its value. Tests lower the limits.

use std::time::Duration;

/// The limits that are the same on every server.
#[derive(Debug, Clone, PartialEq)]
pub struct Constants {
    /// The limit on a page of a list, or of one batch of a stream, in bytes. A page has at least one item. A client
    /// that needs smaller pages requests fewer rows.
    pub page_bytes: usize,
    /// The minimum speed of a file upload as a raw body, in bytes per second, measured over `http.body_timeout`. Even a
    /// bad telephone line is faster, so a slower upload only occupies a connection.
    pub upload_bytes_per_s: u64,
    /// The time after which the server disconnects a client that reads nothing of a response.
    pub stalled_reader: Duration,
    /// The limit on a JSON body that contains a file, in bytes. Reading such a body needs about three times its size,
    /// so larger files are uploaded as a raw body.
    pub json_file_bytes: usize,
    /// The time for which a pipeline over a limit waits for other pipelines to end. After this time, the request gets
    /// 429.
    pub query_wait: Duration,
    /// The limit on a message of a model, in bytes. No tool has longer arguments.
    pub mcp_message_bytes: usize,
    /// The limit on the JSON of a response to a model, in bytes. A longer response would fill the context of the model.
    pub mcp_response_bytes: usize,
    /// The limits on each socket of an agent.
    pub socket: SocketLimits,
}

/// The limits on each socket of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketLimits {
    /// The limit on the channels that the socket has joined.
    pub channels: usize,
    /// The limit on the channels that the socket joins per second, after a burst of as many joins as `channels`. A
    /// further join is rejected.
    pub joins_per_second: u32,
    /// The limit on the messages that are read from the socket per second. Further messages are read later.
    pub messages_per_second: u32,
    /// The limit on a message, in bytes: twice the largest message of an agent. A larger message closes the socket.
    pub frame_bytes: usize,
    /// The limit on the messages that wait for the socket. Beyond this limit, the socket is closed (1013).
    pub queue_messages: usize,
    /// The limit on the bytes that wait for the socket. Beyond this limit, the socket is closed (1013).
    pub queue_bytes: usize,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            page_bytes: 4 << 20,
            upload_bytes_per_s: 8 << 10,
            stalled_reader: Duration::from_secs(60),
            json_file_bytes: 32 << 20,
            query_wait: Duration::from_secs(2),
            mcp_message_bytes: 512 << 10,
            mcp_response_bytes: 256 << 10,
            socket: SocketLimits {
                channels: 100,
                joins_per_second: 20,
                messages_per_second: 1_000,
                frame_bytes: 512 << 10,
                queue_messages: 1_000,
                queue_bytes: 4 << 20,
            },
        }
    }
}
