//! The program ends within its time limit after SIGTERM, even while pipelines occupy its threads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time limit of the test: longer than the program may take, with a margin for a busy machine, and much shorter
/// than the pipelines below.
const LIMIT: Duration = Duration::from_secs(40);
/// The maximum time of a pipeline in this test, in milliseconds.
const PIPELINE_MS: &str = "600000";

struct Program {
    process: Child,
    address: String,
    key: String,
}

impl Program {
    fn start() -> Program {
        let key = format!("sk_{}", "7".repeat(64));
        let mut process = Command::new(env!("CARGO_BIN_EXE_foldwork"))
            .args(["serve", "--listen", "127.0.0.1:0", "--database", "mem://", "--files", "mem://"])
            .env("FOLDWORK_BOOTSTRAP_KEY", &key)
            .env("FOLDWORK_PIPELINE__TIMEOUT_MS", PIPELINE_MS)
            .env("FOLDWORK_LOG__FILTER", "error")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = process.stdout.take().expect("its output");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        Program { process, address: address.expect("an address"), key }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("a request");
        socket
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut response = String::new();
        self.send(method, path, body).read_to_string(&mut response).expect("an answer");
        response
    }

    /// Returns the processor time in seconds that the process has used so far.
    fn processor_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("its status");
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
    }

    fn terminate(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    }

    fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("its status") {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "the program runs {} s after SIGTERM", LIMIT.as_secs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_program_ends_in_time_while_pipelines_occupy_its_threads() {
    let mut program = Program::start();
    let event = r#"{"aggregate_type": "article", "event_type": "article.created", "payload": {"title": "t"}}"#;
    let appended = program.ask("POST", "/aggregates/a/events", event);
    assert!(appended.starts_with("HTTP/1.1 201"), "{appended}");
    let add = |inner: &str| {
        format!(
            r#"{{"$reduce": {{"input": {{"$range": [0, 30000]}}, "initialValue": 0, "in": {{"$add": ["$$value", {inner}]}}}}}}"#
        )
    };
    let long = format!(r#"{{"pipeline": [{{"$limit": 1}}, {{"$project": {{"n": {}}}}}]}}"#, add(&add(&add("1"))));
    let before = program.processor_seconds();
    let waiting: Vec<TcpStream> = (0..4).map(|_| program.send("POST", "/aggregates/query", &long)).collect();
    let began = Instant::now();
    while program.processor_seconds() < before + 1.0 {
        assert!(began.elapsed() < LIMIT, "the pipelines do not run");
        std::thread::sleep(Duration::from_millis(20));
    }
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
    drop(waiting);
}
