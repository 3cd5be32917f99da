//! The paths under which the parts of the application are mounted.

use std::collections::HashMap;

/// The base path of the API.
pub const API: &str = "/api/v1";
/// The base path of the operations that apps on devices call.
pub const FUNCTIONS: &str = "/functions/v1";
/// The path of downloads with signed links.
pub const DOWNLOADS: &str = "/files-dl";
/// The base path of the sockets of the Realtime protocol, and of the requests that send messages to channels over HTTP.
/// Clients append `/websocket` to open a socket.
pub const REALTIME: &str = "/realtime/v1";

/// The paths of the health checks.
pub const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// The routes: the segments of each path, and the methods that the path allows.
pub type Methods = Vec<(Vec<String>, Vec<String>)>;
/// Maps each route to its operations in the OpenAPI document: the method and the id of each operation.
pub type Operations = HashMap<String, Vec<(String, String)>>;

/// Returns the part of an upload URL before the value of the parameter `link`.
pub fn upload_url_prefix(public_url: &str) -> String {
    format!("{public_url}{API}/uploads?link=")
}
