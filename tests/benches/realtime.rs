//! Sockets over which agents listen: what an idle one takes of memory, how soon each is told of its task where all are
//! given one at once, and how soon a channel with all of them on it is told what one says.
//!
//! `--program FILE` is the server; `--sockets N`, `--rounds N`, `--strict` (fails where a threshold is missed).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// What an idle socket may take, and how long the slowest but one in a hundred may be told after its task was asked for.
const IDLE_BYTES: u64 = 40_000;
const P99: Duration = Duration::from_millis(250);
/// Sockets that are opened at a time.
const AT_A_TIME: usize = 50;
/// Requests for tasks under way at a time.
const REQUESTS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(120);

struct Arguments {
    program: String,
    sockets: usize,
    rounds: usize,
    strict: bool,
}

impl Arguments {
    /// Reads the arguments; what cargo adds of its own is passed over.
    fn read() -> anyhow::Result<Arguments> {
        let mut read = Arguments { program: String::new(), sockets: 1_000, rounds: 5, strict: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} takes a value"));
            match argument.as_str() {
                "--program" => read.program = value()?,
                "--sockets" => read.sockets = value()?.parse()?,
                "--rounds" => read.rounds = value()?.parse()?,
                "--strict" => read.strict = true,
                _ => {}
            }
        }
        if read.program.is_empty() || read.sockets == 0 || read.rounds == 0 {
            bail!("--program names the server; --sockets and --rounds are positive");
        }
        Ok(read)
    }
}

/// The server, a process of its own on a store of its own.
struct Server {
    process: Child,
    address: String,
    key: String,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &Arguments) -> anyhow::Result<Server> {
        let folder = tempfile::tempdir()?;
        let key = format!("sk_{}", "7".repeat(64));
        let database = format!("surrealkv://{}", folder.path().join("db").display());
        let mut process = Command::new(&arguments.program)
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database])
            .current_dir(folder.path())
            .env("FOLDWORK_BOOTSTRAP_KEY", &key)
            .env("FOLDWORK_LOG__FILTER", "warn")
            .env("FOLDWORK_REALTIME__SOCKETS_PER_WORKSPACE", (2 * arguments.sockets).to_string())
            // Nobody sends heartbeats here.
            .env("FOLDWORK_REALTIME__IDLE_TIMEOUT_S", "3600")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", arguments.program))?;
        let output = process.stdout.take().context("its output is not read")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        let address = address.context("the server ended in its start")?;
        Ok(Server { process, address, key, http: reqwest::Client::new(), _folder: folder })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(format!("http://{}{path}", self.address)).bearer_auth(&self.key).json(body);
        let answer = request.send().await?.error_for_status()?;
        let text = answer.text().await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An agent that listens.
struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    agent: String,
}

impl Socket {
    async fn open(server: &Server, agent: &str) -> anyhow::Result<Socket> {
        let connected = server.post("/api/v1/agents/connect", &json!({"agent_ids": [agent]})).await?;
        let url = format!(
            "{}/websocket?apikey={}&vsn=2.0.0",
            connected["url"].as_str().unwrap_or_default(),
            connected["anon_key"].as_str().unwrap_or_default()
        );
        let small = WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10);
        let (stream, _) = connect_async_with_config(url, Some(small), true).await?;
        let mut socket = Socket { stream, agent: agent.to_owned() };
        socket.join(agent).await?;
        Ok(socket)
    }

    async fn join(&mut self, agent: &str) -> anyhow::Result<()> {
        let join = json!(["1", "1", format!("realtime:agent:{agent}"), "phx_join", {"config": {}}]);
        self.stream.send(Message::text(join.to_string())).await?;
        let reply = self.next().await?;
        if reply[4]["status"] != "ok" {
            bail!("a join is refused: {reply}");
        }
        Ok(())
    }

    async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            let message =
                tokio::time::timeout(PATIENCE, self.stream.next()).await?.context("a socket was closed")??;
            if let Message::Text(text) = message {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }
}

/// When each socket was told, after a moment.
async fn told(sockets: &mut [Socket], event: &str) -> anyhow::Result<Vec<(String, Instant)>> {
    let each = sockets.iter_mut().map(|socket| async move {
        loop {
            let message = socket.next().await?;
            if message[4]["event"] == event {
                return anyhow::Ok((socket.agent.clone(), Instant::now()));
            }
        }
    });
    future::try_join_all(each).await
}

fn share(times: &[Duration], share: f64) -> Duration {
    let index = (times.len() as f64 * share) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Gives every agent a task, all at once, and measures how long after it was asked for each is told.
async fn one_each(server: &Server, sockets: &mut [Socket]) -> anyhow::Result<Vec<Duration>> {
    let agents: Vec<String> = sockets.iter().map(|socket| socket.agent.clone()).collect();
    let asked = futures_util::stream::iter(agents).map(|agent| async move {
        let body = json!({"title": "A task", "assignee_type": "agent", "assignee_id": agent});
        let began = Instant::now();
        server.post("/api/v1/mailbox", &body).await?;
        anyhow::Ok((agent, began))
    });
    let asked = asked.buffer_unordered(REQUESTS).try_collect::<std::collections::HashMap<_, _>>();
    let (asked, told) = tokio::try_join!(asked, told(sockets, "task.created"))?;
    let taken = told.into_iter().filter_map(|(agent, at)| Some(at.saturating_duration_since(*asked.get(&agent)?)));
    Ok(taken.collect())
}

/// Says something on a channel that all are on, and measures how long after that each is told.
async fn to_all(server: &Server, channel: &str, sockets: &mut [Socket]) -> anyhow::Result<Vec<Duration>> {
    let body = json!({"messages": [{"topic": format!("agent:{channel}"), "event": "said", "payload": {"n": 1}}]});
    let began = Instant::now();
    let (said, told) = tokio::join!(server.post("/realtime/v1/api/broadcast", &body), told(sockets, "said"));
    said?;
    Ok(told?.into_iter().map(|(_, at)| at.saturating_duration_since(began)).collect())
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<usize> {
    let mut agents = Vec::new();
    for number in 0..arguments.sockets {
        let agent = server.post("/api/v1/agents", &json!({"name": format!("Agent {number}")})).await?;
        agents.push(agent["id"].as_str().context("an agent has an id")?.to_owned());
    }
    // What the first socket needs is not what each needs.
    drop(Socket::open(server, &agents[0]).await?);
    let before = server.resident_bytes();
    let began = Instant::now();
    let opened = futures_util::stream::iter(&agents).map(|agent| Socket::open(server, agent));
    let opened = opened.buffer_unordered(AT_A_TIME).collect::<Vec<_>>().await;
    let mut sockets = opened.into_iter().collect::<anyhow::Result<Vec<Socket>>>()?;
    let opening = began.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = server.resident_bytes().saturating_sub(before) / arguments.sockets as u64;

    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{} sockets opened in {:.1} s; an idle one takes {:.1} kB",
        arguments.sockets,
        opening.as_secs_f64(),
        idle as f64 / 1e3
    );

    let mut each: Vec<Duration> = Vec::new();
    for _ in 0..arguments.rounds {
        each.extend(one_each(server, &mut sockets).await?);
    }
    each.sort_unstable();
    let channel = agents[0].clone();
    for socket in sockets.iter_mut().filter(|socket| socket.agent != channel) {
        let join = json!(["2", "2", format!("realtime:agent:{channel}"), "phx_join", {"config": {}}]);
        socket.stream.send(Message::text(join.to_string())).await?;
        while socket.next().await?[3] != "phx_reply" {}
    }
    let mut all: Vec<Duration> = Vec::new();
    for _ in 0..arguments.rounds {
        all.extend(to_all(server, &channel, &mut sockets).await?);
    }
    all.sort_unstable();
    println!(
        "one task each, ms: p50 {:.1}, p99 {:.1}, most {:.1}",
        ms(share(&each, 0.5)),
        ms(share(&each, 0.99)),
        ms(share(&each, 1.0))
    );
    println!(
        "one channel to all, ms: p50 {:.1}, p99 {:.1}, most {:.1}",
        ms(share(&all, 0.5)),
        ms(share(&all, 0.99)),
        ms(share(&all, 1.0))
    );
    let thresholds = [
        ("an idle socket takes less than 40 kB", idle < IDLE_BYTES),
        ("p99 of one task each under 250 ms", share(&each, 0.99) < P99),
        ("p99 of one channel to all under 250 ms", share(&all, 0.99) < P99),
    ];
    for (name, holds) in thresholds {
        println!("{name}: {}", if holds { "holds" } else { "missed" });
    }
    Ok(thresholds.iter().filter(|(_, holds)| !holds).count())
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let server = Server::start(&arguments)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let missed = runtime.block_on(measure(&server, &arguments))?;
    println!("{missed} thresholds missed");
    if arguments.strict && missed > 0 {
        bail!("{missed} thresholds missed");
    }
    Ok(())
}
