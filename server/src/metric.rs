//! The metrics of the server outside the engine: requests, connections, sockets, the disk of the store, and the
//! program.

use foldwork_engine::metric::LONG;
use foldwork_engine::metric_table;

metric_table! {
    /// All recorded metrics of the server. The standard process metrics are not recorded, but read from `/proc`.
    SERVER:
    BUILD_INFO = gauge "foldwork_build_info" ["version"]: "The version of the program; the value is always 1";
    PANICS = counter "foldwork_panics_total": "Panics of the program, which end a request or a task";
    HTTP_REQUESTS = counter "foldwork_http_requests_total" ["method", "route", "status"]:
        "Requests by response; 499 if the client disconnected before the response";
    HTTP_SECONDS = histogram "foldwork_http_request_duration_seconds" ["method", "route"] in LONG:
        "Time until the response began, in seconds, including the wait of long polls";
    HTTP_IN_FLIGHT = gauge "foldwork_http_requests_in_flight": "Requests whose response is not complete";
    HTTP_RESPONSE_BYTES = counter "foldwork_http_response_bytes_total": "Bytes of response bodies";
    REJECTIONS = counter "foldwork_http_rejections_total" ["status", "reason"]:
        "Requests and connections that got 429 or 503, by reason"
        from &[
            &["429", "rate_limited"], &["429", "too_many_queries"], &["429", "too_many_streams"],
            &["429", "too_many_connections"], &["429", "other"], &["503", "unavailable"],
            &["503", "issuer_unavailable"], &["503", "bodies"], &["503", "connections"], &["503", "not_ready"],
            &["503", "other"],
        ];
    CONNECTIONS_OPEN = gauge "foldwork_connections_open": "Open connections";
    CONNECTIONS_LIMIT = gauge "foldwork_connections_limit": "Maximum number of open connections";
    STREAMS_OPEN = gauge "foldwork_event_streams_open": "Open streams of server-sent events";
    SOCKETS_OPEN = gauge "foldwork_sockets_open": "Open WebSockets of agents";
    SOCKETS_CLOSED = counter "foldwork_sockets_closed_total" ["reason"]:
        "Closed WebSockets by reason"
        from &[&["gone"], &["stopped"], &["revoked"], &["slow"], &["silent"], &["malformed"]];
    SOCKET_MESSAGES = counter "foldwork_socket_messages_total" ["direction"]:
        "Messages on WebSockets, received from clients or sent to clients" from &[&["received"], &["sent"]];
    CHANNELS_JOINED = gauge "foldwork_channels_joined": "Channels of agents that open WebSockets have joined";
    FEED_DELIVERIES = counter "foldwork_feed_deliveries_total":
        "Live deliveries of agents' feeds that were passed to WebSockets, without replayed deliveries";
    STORE_FOLDER_BYTES = gauge "foldwork_store_folder_bytes":
        "Bytes of the store's folder, if the store is in a folder" from &[];
    DISK_FREE_BYTES = gauge "foldwork_store_disk_free_bytes":
        "Bytes that the program can still write to the disk of the store's folder" from &[];
    DISK_SIZE_BYTES = gauge "foldwork_store_disk_size_bytes":
        "Size of the disk of the store's folder, in bytes" from &[];
}
