//! The paths under which the parts of the application are mounted.

/// The operations of the API.
pub const API: &str = "/api/v1";
/// The operations that apps on devices call.
pub const FUNCTIONS: &str = "/functions/v1";
/// Downloads by signed links.
pub const DOWNLOADS: &str = "/files-dl";
/// The sockets of the Realtime protocol. Clients append `/websocket` themselves.
pub const REALTIME: &str = "/realtime/v1";

/// The segments of each path, and the methods that it allows.
pub type Methods = Vec<(Vec<String>, Vec<String>)>;

/// The part of an upload link's URL before the link itself.
pub fn upload_url_prefix(public_url: &str) -> String {
    format!("{public_url}{API}/uploads?link=")
}
