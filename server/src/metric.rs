//! The metrics of the server outside the engine: requests, connections, sockets, the disk of the store, and the
//! program.

use foldwork_engine::metric::{LONG, Metric};

pub const BUILD_INFO: Metric =
    Metric::gauge("foldwork_build_info", &["version"], "The version of the program; the value is always 1");
pub const PANICS: Metric =
    Metric::counter("foldwork_panics_total", &[], "Panics of the program, which end a request or a task");

pub const HTTP_REQUESTS: Metric = Metric::counter(
    "foldwork_http_requests_total",
    &["method", "route", "status"],
    "Requests by response; 499 if the client disconnected before the response",
);
pub const HTTP_SECONDS: Metric = Metric::histogram(
    "foldwork_http_request_duration_seconds",
    &["method", "route"],
    LONG,
    "Time until the response began, in seconds, including the wait of long polls",
);
pub const HTTP_IN_FLIGHT: Metric =
    Metric::gauge("foldwork_http_requests_in_flight", &[], "Requests whose response is not complete");
pub const HTTP_RESPONSE_BYTES: Metric =
    Metric::counter("foldwork_http_response_bytes_total", &[], "Bytes of response bodies");
pub const REJECTIONS: Metric = Metric::counter(
    "foldwork_http_rejections_total",
    &["status", "reason"],
    "Requests and connections that got 429 or 503, by reason",
)
.starting_with(&[
    &["429", "rate_limited"],
    &["429", "too_many_queries"],
    &["429", "too_many_streams"],
    &["429", "too_many_connections"],
    &["429", "other"],
    &["503", "unavailable"],
    &["503", "issuer_unavailable"],
    &["503", "bodies"],
    &["503", "connections"],
    &["503", "not_ready"],
    &["503", "other"],
]);

pub const CONNECTIONS_OPEN: Metric = Metric::gauge("foldwork_connections_open", &[], "Open connections");
pub const CONNECTIONS_LIMIT: Metric =
    Metric::gauge("foldwork_connections_limit", &[], "Open connections that the server accepts");

pub const STREAMS_OPEN: Metric =
    Metric::gauge("foldwork_event_streams_open", &[], "Open streams of server-sent events");
pub const SOCKETS_OPEN: Metric = Metric::gauge("foldwork_sockets_open", &[], "Open WebSockets of agents");
pub const SOCKETS_CLOSED: Metric =
    Metric::counter("foldwork_sockets_closed_total", &["reason"], "Closed WebSockets by reason").starting_with(&[
        &["gone"],
        &["stopped"],
        &["revoked"],
        &["slow"],
        &["silent"],
        &["malformed"],
    ]);
pub const SOCKET_MESSAGES: Metric = Metric::counter(
    "foldwork_socket_messages_total",
    &["direction"],
    "Messages on WebSockets, received from clients and sent to them",
)
.starting_with(&[&["received"], &["sent"]]);
pub const CHANNELS_JOINED: Metric =
    Metric::gauge("foldwork_channels_joined", &[], "Channels of agents that open WebSockets have joined");
pub const FEED_DELIVERIES: Metric = Metric::counter(
    "foldwork_feed_deliveries_total",
    &[],
    "Deliveries of agents' feeds passed to WebSockets while they happened, without those that a client had missed",
);

pub const STORE_FOLDER_BYTES: Metric =
    Metric::gauge("foldwork_store_folder_bytes", &[], "Bytes of the store's folder, if the store is in a folder")
        .starting_with(&[]);
pub const DISK_FREE_BYTES: Metric = Metric::gauge(
    "foldwork_store_disk_free_bytes",
    &[],
    "Bytes that the program can still write to the disk of the store's folder",
)
.starting_with(&[]);
pub const DISK_SIZE_BYTES: Metric =
    Metric::gauge("foldwork_store_disk_size_bytes", &[], "Size of the disk of the store's folder, in bytes")
        .starting_with(&[]);

/// All recorded metrics of the server. The standard process metrics are not recorded, but read from `/proc`.
pub const SERVER: &[Metric] = &[
    BUILD_INFO,
    PANICS,
    HTTP_REQUESTS,
    HTTP_SECONDS,
    HTTP_IN_FLIGHT,
    HTTP_RESPONSE_BYTES,
    REJECTIONS,
    CONNECTIONS_OPEN,
    CONNECTIONS_LIMIT,
    STREAMS_OPEN,
    SOCKETS_OPEN,
    SOCKETS_CLOSED,
    SOCKET_MESSAGES,
    CHANNELS_JOINED,
    FEED_DELIVERIES,
    STORE_FOLDER_BYTES,
    DISK_FREE_BYTES,
    DISK_SIZE_BYTES,
];
