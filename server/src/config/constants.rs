//! Limits that no setting changes, some with the reason for their values. Tests lower some of the limits.

use std::time::Duration;

/// The limits that are the same on every server.
#[derive(Debug, Clone, PartialEq)]
pub struct Constants {
    /// The limit on a page of a list, or on one batch of a stream, in bytes. A page contains at least one item. A
    /// client that needs smaller pages requests fewer rows.
    pub page_bytes: usize,
    /// The limit on the bodies of all current requests together, in bytes: 256 times the default limit on one body. The
    /// bodies and the data parsed from these bodies take a few times this amount of memory. A request beyond the limit
    /// gets 503.
    pub bodies_in_flight: usize,
    /// The time limit for receiving the body of a request, and the period over which the speed of an upload is
    /// measured. A request whose body does not arrive in time gets 408. At 35 kB per second, a body of the default
    /// maximum size arrives in time.
    pub body_timeout: Duration,
    /// The minimum speed of a file upload as a raw body, in bytes per second, measured over `body_timeout`. A slower
    /// upload gets 408. Even a slow DSL line is faster than this minimum.
    pub upload_bytes_per_s: u64,
    /// The time after which the server disconnects a client that does not read its response.
    pub stalled_reader: Duration,
    /// The limit on a JSON body that contains a file, in bytes. Larger files must be uploaded as a raw body, because
    /// reading a JSON body needs memory of about three times the size of the body.
    pub json_file_bytes: usize,
    /// The time for which a pipeline or search waits for others to end if a limit on concurrent pipelines is reached.
    /// After this time, the request gets 429. If too many requests wait already, a further request gets 429 at once.
    pub query_wait: Duration,
    /// The limit on the memory of all pipelines of a workspace together, as a multiple of `pipeline.memory`, the limit
    /// of one pipeline. Most pipelines need only a small part of their limit, so a multiple of four is enough for eight
    /// pipelines at the same time.
    pub workspace_memory: usize,
    /// The divisor for the limits of one key, or of one user who signed in. The limits on a workspace's pipelines and
    /// on the memory of these pipelines are divided by this number. With the number 2, one busy key leaves half of the
    /// limits for the other keys and users.
    pub key_share: usize,
    /// The limit on a message from a model, in bytes. The limit includes the arguments of a tool call.
    pub mcp_message_bytes: usize,
    /// The limit on the JSON of a response to a model, in bytes. A longer response would fill the context of the model.
    pub mcp_response_bytes: usize,
    /// The limits on each socket of an agent.
    pub socket: SocketLimits,
}

/// The limits on calls of a service that computes embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingCalls {
    /// The time limit of one call. A search waits for the embedding of its query, but at most 3 s. If the embedding
    /// takes longer or fails, the search returns only the results of the text search.
    pub timeout: Duration,
    /// The maximum number of texts per call. The default is 32, because even services with a small limit accept 32
    /// texts, and a call for 32 labels ends within `timeout`.
    pub batch: usize,
}

impl Default for EmbeddingCalls {
    fn default() -> EmbeddingCalls {
        EmbeddingCalls { timeout: Duration::from_secs(5), batch: 32 }
    }
}

/// The limits on each socket of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketLimits {
    /// The limit on the channels that the socket has joined.
    pub channels: usize,
    /// The limit on the socket's joins per second, on average. A burst may contain as many joins as `channels`. A join
    /// beyond the limit is rejected.
    pub joins_per_second: u32,
    /// The limit on the messages that are read from the socket per second. Further messages are read later.
    pub messages_per_second: u32,
    /// The limit on a message, in bytes: twice the largest message of an agent. A larger message closes the socket.
    pub frame_bytes: usize,
    /// The limit on the messages that wait to be sent on the socket. Beyond this limit, the socket is closed (1013).
    pub queue_messages: usize,
    /// The limit on the bytes that wait to be sent on the socket. Beyond this limit, the socket is closed (1013).
    pub queue_bytes: usize,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            page_bytes: 4 << 20,
            bodies_in_flight: 256 << 20,
            body_timeout: Duration::from_secs(30),
            upload_bytes_per_s: 8 << 10,
            stalled_reader: Duration::from_secs(60),
            json_file_bytes: 32 << 20,
            query_wait: Duration::from_secs(2),
            workspace_memory: 4,
            key_share: 2,
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
