//! Tests files over real sockets: streamed bodies that do not fit into the memory limit, and interrupted uploads.

use std::path::Path;
use std::time::Duration;

use foldwork_server::Config;
use foldwork_server::config::DataSize;
use serde_json::Value;
use tempfile::TempDir;

use super::client::{Client, Exchange};
use super::{Serving, TIMEOUT, serve_with};

const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 64;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Starts a server that stores files in a folder and has a low memory limit for bodies.
async fn serve(change: impl FnOnce(&mut Config)) -> (Serving, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = Config::default();
    config.files.url = format!("file://{}", folder.path().display());
    config.constants.bodies_in_flight = 8 * BLOCK;
    change(&mut config);
    (serve_with(config).await, folder)
}

async fn json(serving: &Serving, path: &str) -> Value {
    let (status, body) = serving.client.send("GET", path, "").await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

async fn path_of(serving: &Serving, filename: &str) -> String {
    let workspace = json(serving, "/api/v1/workspace").await;
    format!("/api/v1/files/{}/_/_/_/{filename}", workspace["id"].as_str().expect("an id"))
}

/// Returns the number of files in the subfolders of a folder.
fn on_disk(folder: &Path) -> usize {
    let workspaces = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    workspaces.map(|workspace| std::fs::read_dir(workspace.path()).expect("a folder").count()).sum()
}

/// Waits until the server reports zero stored bytes and the folder contains no files.
async fn emptied(serving: &Serving, folder: &Path) {
    let empty = async {
        while json(serving, "/api/v1/system/storage").await["used_bytes"] != 0 || on_disk(folder) > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, empty).await.expect("the folder is emptied");
}

/// Returns the text of the block with this number. The text repeats one letter, which depends on the number.
fn block(number: usize) -> String {
    char::from(b'a' + (number % 26) as u8).to_string().repeat(BLOCK)
}

async fn send_whole(request: &mut Exchange, is_chunked: bool) {
    for number in 0..BLOCKS {
        let block = block(number);
        let text = if is_chunked { format!("{BLOCK:x}\r\n{block}\r\n") } else { block };
        request.write(&text).await.expect("the server reads the body");
    }
    if is_chunked {
        request.write("0\r\n\r\n").await.expect("the server reads the body");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_is_streamed_in_both_directions() {
    let (serving, folder) = serve(|_| {}).await;
    let length = (BLOCK * BLOCKS).to_string();
    for (headers, filename) in
        [([("Content-Length", length.as_str())], "announced.txt"), ([("Transfer-Encoding", "chunked")], "chunked.txt")]
    {
        let path = path_of(&serving, filename).await;
        // The whole file is eight times larger than the memory for bodies, so a server that kept the whole body in
        // memory would return 503.
        let mut request = serving.client.open("PUT", &path, &headers, None).await;
        send_whole(&mut request, filename.starts_with("chunked")).await;
        let (status, body) = request.answer().await;
        assert_eq!(status, 201, "{body}");
        assert!(body.contains(&format!("\"size\":{length}")) && body.contains("text/plain"), "{body}");
        let link = json(&serving, &path).await;
        let url = link["url"].as_str().expect("a URL");
        let target = url.strip_prefix(&format!("http://{}", serving.client.address)).expect("this server");
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut download = serving.client.raw(&request).await;
        let head = download.read_until("\r\n\r\n").await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200") && head.contains(&format!("content-length: {length}")), "{head}");
        for number in 0..BLOCKS {
            assert!(download.read_exact(BLOCK).await == block(number).as_bytes(), "block {number}");
        }
    }
    assert_eq!(on_disk(folder.path()), 2);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upload_leaves_no_file_and_no_bytes() {
    let (serving, folder) = serve(|_| {}).await;
    let path = path_of(&serving, "cut.txt").await;
    for headers in [[("Content-Length", "10000000")], [("Transfer-Encoding", "chunked")]] {
        let mut request = serving.client.open("PUT", &path, &headers, None).await;
        for number in 0..4 {
            let block = block(number);
            let text = if headers[0].0 == "Content-Length" { block } else { format!("{BLOCK:x}\r\n{block}\r\n") };
            request.write(&text).await.expect("the server reads the body");
        }
        let upload_begins = async {
            while json(&serving, "/api/v1/system/storage").await["used_bytes"] == 0 || on_disk(folder.path()) == 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(TIMEOUT, upload_begins).await.expect("the upload has begun");
        request.reset();
        emptied(&serving, folder.path()).await;
    }
    assert_eq!(json(&serving, "/api/v1/files").await["data"], Value::Array(Vec::new()));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_fails_if_bytes_are_missing_or_exceed_the_limit() {
    let (serving, folder) = serve(|config| config.constants.body_timeout = Duration::ZERO).await;
    let path = path_of(&serving, "slow.txt").await;
    let mut request = serving.client.open("PUT", &path, &[("Content-Length", "20")], None).await;
    assert!(request.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 408"));
    emptied(&serving, folder.path()).await;
    serving.end().await;

    let (serving, folder) = serve(|config| config.files.upload_limit = DataSize(10)).await;
    let path = path_of(&serving, "large.txt").await;
    let mut request = serving.client.open("PUT", &path, &[("Transfer-Encoding", "chunked")], None).await;
    request.write("b\r\n12345678901\r\n0\r\n\r\n").await.expect("sent");
    let (status, body) = request.answer().await;
    assert_eq!(status, 413, "{body}");
    assert!(body.contains("larger than 10 bytes"), "{body}");
    emptied(&serving, folder.path()).await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_ends_when_its_key_is_revoked() {
    let (serving, folder) = serve(|_| {}).await;
    let path = path_of(&serving, "revoked.txt").await;
    let new = r#"{"name":"k","scopes":["api:read","api:write"]}"#;
    for headers in [[("Content-Length", "10000000")], [("Transfer-Encoding", "chunked")]] {
        let (_, key) = serving.client.send("POST", "/api/v1/keys", new).await;
        let key: Value = serde_json::from_str(&key).expect("JSON");
        let text = |name: &str| key[name].as_str().expect("a text").to_owned();
        let client = Client { address: serving.client.address, key: text("key") };
        let mut request = client.open("PUT", &path, &headers, None).await;
        let block = block(0);
        let part = if headers[0].0 == "Content-Length" { block } else { format!("{BLOCK:x}\r\n{block}\r\n") };
        request.write(&part).await.expect("the server reads the body");
        let revoked = serving.client.send("DELETE", &format!("/api/v1/keys/{}", text("id")), "").await;
        assert_eq!(revoked.0, 204);
        // The server responds although the client sends no more bytes.
        assert!(request.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 401"));
        emptied(&serving, folder.path()).await;
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_over_the_quota_is_rejected_before_its_body_is_sent() {
    let (serving, folder) = serve(|config| config.files.quota = DataSize(1_000)).await;
    let path = path_of(&serving, "large.txt").await;
    let headers = [("Content-Length", "1001"), ("Expect", "100-continue")];
    let mut request = serving.client.open("PUT", &path, &headers, None).await;
    let head = request.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert_eq!(on_disk(folder.path()), 0);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announced_length_cannot_reserve_all_storage() {
    let (serving, _folder) = serve(|config| config.files.upload_limit = DataSize(0)).await;
    let path = path_of(&serving, "endless.txt").await;
    let headers = [("Content-Length", "9223372036854775807"), ("Expect", "100-continue")];
    let mut request = serving.client.open("PUT", &path, &headers, None).await;
    let head = request.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert_eq!(serving.client.send("PUT", &path, "short").await.0, 201);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_request_returns_the_length_of_a_file() {
    let (serving, _folder) = serve(|_| {}).await;
    let path = path_of(&serving, "short.txt").await;
    assert_eq!(serving.client.send("PUT", &path, "short").await.0, 201);
    let link = json(&serving, &path).await;
    let url = link["url"].as_str().expect("a URL");
    let target = url.strip_prefix(&format!("http://{}", serving.client.address)).expect("this server");
    let request = format!("HEAD {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let response = serving.client.raw(&request).await.rest().await.to_ascii_lowercase();
    assert!(response.contains("content-length: 5\r\n") && response.ends_with("\r\n\r\n"), "{response}");
    serving.end().await;
}
