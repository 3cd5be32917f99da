//! Runs the program as a separate process, and sends requests to the process over plain sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit for each wait, with a margin for a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The interval between checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server. The process ends when this value is dropped.
pub struct Program {
    process: Child,
    pub address: String,
    /// The lines of the log that were read so far.
    pub logged: Vec<String>,
    log: Receiver<String>,
}

/// Returns a key: `sk_` and 64 times the same digit.
pub fn key(digit: char) -> String {
    format!("sk_{}", digit.to_string().repeat(64))
}

/// Returns the command `foldwork` in a folder, with only `PATH` from the environment of the test.
pub fn foldwork(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foldwork"));
    command.args(arguments).current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Runs a command and returns its output.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "{what} does not happen within {} s", LIMIT.as_secs());
        std::thread::sleep(POLL_INTERVAL);
    }
}

impl Program {
    /// Starts a server that listens on a free port.
    pub fn start(command: &mut Command) -> Program {
        let mut process = command
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, log) = channel();
        let errors = process.stderr.take().expect("standard error");
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                eprintln!("{line}");
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut lines = BufReader::new(process.stdout.take().expect("standard output")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        let address = address.expect("an address");
        Program { process, address, logged: Vec::new(), log }
    }

    pub fn id(&self) -> String {
        self.process.id().to_string()
    }

    /// Sends a request without reading the response.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("a connection");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("a request");
        socket
    }

    /// Returns the response to a request, with its head.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut response = String::new();
        self.send(method, path, headers, body).read_to_string(&mut response).expect("a response");
        response
    }

    /// Returns the status of the response to a request.
    pub fn status(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let response = self.ask(method, path, headers, body);
        response.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// Waits until the log has a line with all of these texts, and returns the line.
    pub fn logs(&mut self, texts: &[&str]) -> String {
        let is_meant = |line: &&String| texts.iter().all(|text| line.contains(text));
        let began = Instant::now();
        loop {
            self.logged.extend(self.log.try_iter());
            if let Some(line) = self.logged.iter().find(is_meant) {
                return line.clone();
            }
            assert!(began.elapsed() < LIMIT, "the log has no line with {texts:?}: {:#?}", self.logged);
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the processor time in seconds that the process has used so far.
    pub fn processor_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("the process status");
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
    }

    pub fn terminate(&self) {
        assert!(Command::new("kill").args(["-TERM", &self.id()]).status().expect("kill").success());
    }

    /// Waits until the process has ended.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the program", || {
            status = self.process.try_wait().expect("the process status");
            status.is_some()
        });
        status.expect("a status")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
