//! Measures append latency and server memory at a steady append rate while many connections follow the log. Some of the
//! connections never read.
//!
//! `--program FILE` names the server. The other options are `--seconds N`, `--rate N` (appends per second), `--readers
//! N`, `--silent N` (the number of readers that never read), `--follow log|aggregate`, and `--strict` (fails if a
//! threshold is missed).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use foldwork_tests::program::{Program, Times, missed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 64;
/// The number of aggregates that get appends. With `--follow aggregate`, each reader follows one of these aggregates.
const STREAMS: u64 = 640;
/// The maximum p99 of the duration of an append.
const P99: Duration = Duration::from_millis(100);
/// The maximum growth of the server's memory under load, in bytes.
const GROWTH_BYTES: u64 = 512 << 20;

#[derive(Clone)]
struct Arguments {
    program: String,
    seconds: u64,
    rate: u64,
    readers: usize,
    silent: usize,
    of_aggregates: bool,
    strict: bool,
}

impl Arguments {
    /// Parses the arguments. Skips arguments that cargo adds.
    fn read() -> anyhow::Result<Arguments> {
        let (program, of_aggregates, strict) = (String::new(), false, false);
        let mut read = Arguments { program, seconds: 30, rate: 5_000, readers: 500, silent: 50, of_aggregates, strict };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} takes a value"));
            match argument.as_str() {
                "--program" => read.program = value()?,
                "--seconds" => read.seconds = value()?.parse()?,
                "--rate" => read.rate = value()?.parse()?,
                "--readers" => read.readers = value()?.parse()?,
                "--silent" => read.silent = value()?.parse()?,
                "--follow" => read.of_aggregates = value()? == "aggregate",
                "--strict" => read.strict = true,
                _ => {}
            }
        }
        if read.program.is_empty() || read.seconds == 0 || read.rate == 0 || read.silent > read.readers {
            bail!("expected --program FILE, --seconds and --rate of at least 1, and --silent of at most --readers");
        }
        Ok(read)
    }
}

/// The state shared by all tasks.
struct Load {
    address: String,
    key: String,
    arguments: Arguments,
    next: AtomicU64,
    /// The number of bytes that the readers have received.
    read_bytes: AtomicU64,
    ended: AtomicBool,
}

impl Load {
    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let Load { address, key, .. } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{more}\r\n")
    }

    fn append(&self, number: u64) -> String {
        let verb = if number < STREAMS { "created" } else { "updated" };
        let text = "x".repeat(250);
        let body = format!(
            r#"{{"aggregate_type":"article","event_type":"article.{verb}","payload":{{"title":"Title {number}","text":"{text}","n":{number}}}}}"#
        );
        let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        self.head("POST", &format!("/api/v1/aggregates/a-{}/events", number % STREAMS), &more) + body.as_str()
    }

    /// Sends each append at its scheduled time and returns the delays from the scheduled time to the response.
    async fn write(self: Arc<Load>, began: Instant, first: u64) -> anyhow::Result<Vec<Duration>> {
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let (mut taken, mut buffer) = (Vec::new(), Vec::new());
        let end = Duration::from_secs(self.arguments.seconds);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let due = Duration::from_secs_f64(number as f64 / self.arguments.rate as f64);
            if due >= end || began.elapsed() >= end {
                return Ok(taken);
            }
            tokio::time::sleep_until((began + due).into()).await;
            socket.write_all(self.append(first + number).as_bytes()).await?;
            let status = answer(&mut socket, &mut buffer).await?;
            if status != 201 {
                bail!("an append got the status {status}; expected 201");
            }
            taken.push(began.elapsed().saturating_sub(due));
        }
    }

    /// Opens a stream of the log or of an aggregate, and reads the head of the response.
    async fn follow(self: Arc<Load>, number: usize) -> anyhow::Result<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).await?;
        let path = match self.arguments.of_aggregates {
            true => format!("/api/v1/aggregates/a-{}/events", number as u64 % STREAMS),
            false => "/api/v1/events".to_owned(),
        };
        let more = format!("Accept: text/event-stream\r\nLast-Event-ID: {STREAMS}\r\n");
        socket.write_all(self.head("GET", &path, &more).as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
        }
        if !head.starts_with(b"HTTP/1.1 200") {
            bail!("a stream is rejected: {}", String::from_utf8_lossy(&head));
        }
        Ok(socket)
    }

    async fn read(self: Arc<Load>, mut socket: TcpStream) -> anyhow::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        while !self.ended.load(Ordering::Relaxed) {
            let read = tokio::time::timeout(Duration::from_millis(200), socket.read(&mut buffer)).await;
            match read {
                Ok(Ok(0)) => bail!("the server closed a stream that is being read"),
                Ok(read) => self.read_bytes.fetch_add(read? as u64, Ordering::Relaxed),
                // No bytes have arrived. The loop checks again whether the measurement has ended.
                Err(_) => 0,
            };
        }
        Ok(())
    }
}

/// Reads a whole response and returns its status.
async fn answer(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<u16> {
    buffer.clear();
    loop {
        if socket.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection before the end of a response");
        }
        let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if buffer.len() >= end + 4 + length.unwrap_or(0) {
            return head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a response has no status");
        }
    }
}

struct Measured {
    /// The durations of the appends.
    taken: Times,
    seconds: f64,
    before: u64,
    most: u64,
    read_bytes: u64,
}

async fn measure(server: &Program, arguments: &Arguments) -> anyhow::Result<Measured> {
    let (next, read_bytes, ended) = Default::default();
    let (address, key, arguments) = (server.address.clone(), server.key.clone(), arguments.clone());
    let load = Arc::new(Load { address, key, arguments, next, read_bytes, ended });
    let mut socket = TcpStream::connect(&load.address).await?;
    for number in 0..STREAMS {
        socket.write_all(load.append(number).as_bytes()).await?;
        answer(&mut socket, &mut Vec::new()).await?;
    }
    let (mut readers, mut silent) = (Vec::new(), Vec::new());
    for number in 0..load.arguments.readers {
        let socket = load.clone().follow(number).await?;
        match number < load.arguments.silent {
            true => silent.push(socket),
            false => readers.push(tokio::spawn(load.clone().read(socket))),
        }
    }
    let before = server.resident_bytes();
    let began = Instant::now();
    let writers: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(load.clone().write(began, STREAMS))).collect();
    let mut most = before;
    while writers.iter().any(|writer| !writer.is_finished()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(server.resident_bytes());
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut taken = Vec::new();
    for writer in writers {
        taken.extend(writer.await??);
    }
    load.ended.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await??;
    }
    drop(silent);
    let taken = Times::new(taken);
    Ok(Measured { taken, seconds, before, most, read_bytes: load.read_bytes.load(Ordering::Relaxed) })
}

/// Prints the measurements and returns the number of missed thresholds.
fn tell(arguments: &Arguments, measured: &Measured) -> usize {
    let Measured { taken, seconds, before, most, read_bytes } = measured;
    let Arguments { rate, readers, silent, of_aggregates, .. } = arguments;
    let grown = most.saturating_sub(*before);
    let followed = if *of_aggregates { "an aggregate each" } else { "the log" };
    let reached = taken.count() as f64 / seconds;
    println!("{readers} readers of {followed}, {silent} of which never read; {rate} appends/s asked for");
    println!("appends: {reached:.0}/s; {:.1} MB came to readers a second", *read_bytes as f64 / 1e6 / seconds);
    println!("append, {taken}");
    println!("memory, MiB: {} before, {} at most", before >> 20, most >> 20);
    missed(&[
        ("the rate is reached", reached >= 0.95 * *rate as f64),
        ("p99 of an append under 100 ms", taken.quantile(0.99) < P99),
        ("memory bounded: at most 512 MiB more", grown <= GROWTH_BYTES),
    ])
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let server = Program::start(&arguments.program, &[])?;
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(measure(&server, &arguments))?;
    let missed = tell(&arguments, &measured);
    if arguments.strict && missed > 0 {
        bail!("{missed} thresholds missed");
    }
    Ok(())
}
