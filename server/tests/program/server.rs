//! Starts the program on a temporary store, and sends requests to the program.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time limit for each wait, with a margin for a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until `look` returns a value, and returns the value.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "{what} takes longer than {} s", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder that is removed when the value is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("program-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.0.join("log")).expect("the log")
    }

    /// Returns a command that runs the program in this folder. The program's log goes to the file `log` in the folder.
    pub fn command(&self, settings: &[(&str, &str)]) -> Command {
        // Reads the variable at run time, because the tests may have been compiled in another checkout.
        let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
        let mut command = Command::new(env!("CARGO_BIN_EXE_foldwork"));
        command
            .arg("serve")
            .env("FOLDWORK_HTTP__LISTEN", "127.0.0.1:0")
            .current_dir(&self.0)
            .env("FOLDWORK_PLUGINS__FOLDER", Path::new(&crate_folder).join("../scripts"))
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .stderr(File::create(self.0.join("log")).expect("a log"));
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Ignores an error: a folder that cannot be removed only takes up disk space.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running program.
pub struct Program {
    process: Child,
    pub address: String,
    /// The address at which the program serves metrics. `None` if the program serves no metrics.
    pub metrics: Option<String>,
    pub key: String,
    pub folder: Folder,
}

impl Program {
    pub fn start(settings: &[(&str, &str)]) -> Program {
        let (folder, key) = (Folder::new(), format!("sk_{}", "7".repeat(64)));
        let mut process =
            folder.command(settings).env("FOLDWORK_BOOTSTRAP_KEY", &key).spawn().expect("the program starts");
        let output = process.stdout.take().expect("standard output");
        let mut metrics = None;
        let address = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| {
            let found = line.strip_prefix("metrics on http://").and_then(|rest| rest.strip_suffix("/metrics"));
            metrics = found.map(str::to_owned).or(metrics.take());
            line.strip_prefix("listening on http://").map(str::to_owned)
        });
        assert!(address.is_some(), "the program does not listen: {}", folder.log());
        let address = address.unwrap_or_default();
        Program { process, address, metrics, key, folder }
    }

    /// Sends a request with the owner's key, and returns the socket of its response.
    pub fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("a request");
        socket
    }

    /// Sends a request to the API, and returns the response with its head.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        received(self.send(method, &format!("/api/v1{path}"), body))
    }

    /// Returns the metrics with the head of their response.
    pub fn scrape(&self) -> String {
        let mut socket = TcpStream::connect(self.metrics.as_ref().expect("metrics")).expect("a connection");
        socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("a request");
        received(socket)
    }

    pub fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    }

    pub fn ended(&mut self) -> ExitStatus {
        wait_for("the end of the program", || self.process.try_wait().expect("the status of the process"))
    }
}

/// Reads a response to its end.
pub fn received(mut socket: TcpStream) -> String {
    let mut response = String::new();
    socket.read_to_string(&mut response).expect("a response");
    response
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
