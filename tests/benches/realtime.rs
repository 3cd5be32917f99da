//! Measures the sockets of agents: memory of an idle socket, delivery time when every agent gets a task at the same
//! moment, delivery time of a broadcast to all sockets, and the rates of appends and pipelines with and without idle
//! sockets.
//!
//! `--program FILE` names the server. The other options are `--sockets N`, `--rounds N` and `--strict` (fails if a
//! threshold is missed).

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use foldwork_tests::program::{Program, Times, missed};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// The maximum memory of an idle socket, in bytes.
const IDLE_BYTES: u64 = 40_000;
/// The maximum p99 of the time from a request to the delivery of its event. The request creates a task or broadcasts a
/// message.
const P99: Duration = Duration::from_millis(250);
/// The number of sockets opened concurrently.
const CONNECT_CONCURRENCY: usize = 50;
/// The number of concurrent requests that create tasks, append events or run pipelines.
const REQUESTS: usize = 64;
/// The time without requests before the server's memory is measured.
const SETTLE_TIME: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(120);
/// The duration of one rate measurement.
const MEASURED_TIME: Duration = Duration::from_secs(3);
/// The minimum rate with idle sockets, as a fraction of the rate without sockets.
const MIN_IDLE_RATE_RATIO: f64 = 0.9;
/// The number of aggregates that get appends.
const ARTICLES: u64 = 1_000;

struct Arguments {
    program: String,
    sockets: usize,
    rounds: usize,
    strict: bool,
}

impl Arguments {
    /// Parses the arguments. Skips arguments that cargo adds.
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
        if read.program.is_empty() || read.sockets < 2 || read.rounds == 0 {
            bail!("expected --program FILE, --sockets of at least 2, and --rounds of at least 1");
        }
        Ok(read)
    }
}

/// A server, and the client that sends requests to the server.
struct Server {
    program: Program,
    http: reqwest::Client,
}

impl Server {
    fn start(arguments: &Arguments) -> anyhow::Result<Server> {
        let settings = [
            ("FOLDWORK_HTTP__STREAMS_PER_WORKSPACE", (2 * arguments.sockets).to_string()),
            // The idle timeout is long, because the sockets send no heartbeats.
            ("FOLDWORK_HTTP__IDLE_TIMEOUT", "1 h".to_owned()),
        ];
        Ok(Server { program: Program::start(&arguments.program, &settings)?, http: reqwest::Client::new() })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(format!("http://{}{path}", self.program.address));
        let answer = request.bearer_auth(&self.program.key).json(body).send().await?.error_for_status()?;
        let text = answer.text().await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// The socket of an agent.
struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    agent: String,
}

impl Socket {
    /// Opens a socket with rights to the agent's own channel and to `channel`, which may be the same channel. Joins the
    /// agent's own channel.
    async fn open(server: &Server, agent: &str, channel: &str) -> anyhow::Result<Socket> {
        let mut agents = vec![agent, channel];
        agents.dedup();
        let connected = server.post("/api/v1/agents/connect", &json!({"agent_ids": agents})).await?;
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
        let join = json!([agent, agent, format!("realtime:agent:{agent}"), "phx_join", {"config": {}}]);
        self.stream.send(Message::text(join.to_string())).await?;
        loop {
            let message = self.next().await?;
            match message[4]["status"].as_str() {
                Some("ok") if message[1] == agent => return Ok(()),
                Some(_) => bail!("a join is rejected: {message}"),
                None => {}
            }
        }
    }

    async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            let message = tokio::time::timeout(TIMEOUT, self.stream.next()).await?.context("a socket was closed")??;
            if let Message::Text(text) = message {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }
}

/// Waits until each socket has received an event of this type. Returns the agent and the time of each delivery.
async fn delivery_times(sockets: &mut [Socket], event: &str) -> anyhow::Result<Vec<(String, Instant)>> {
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

/// Gives every agent a task concurrently and measures the time from each request to the delivery of its task.
async fn one_each(server: &Server, sockets: &mut [Socket]) -> anyhow::Result<Vec<Duration>> {
    let agents: Vec<String> = sockets.iter().map(|socket| socket.agent.clone()).collect();
    let requests = futures_util::stream::iter(agents).map(|agent| async move {
        let body = json!({"title": "A task", "assignee_type": "agent", "assignee_id": agent});
        let began = Instant::now();
        server.post("/api/v1/mailbox", &body).await?;
        anyhow::Ok((agent, began))
    });
    let requests = requests.buffer_unordered(REQUESTS).try_collect::<std::collections::HashMap<_, _>>();
    let (sent_at, deliveries) = tokio::try_join!(requests, delivery_times(sockets, "task.created"))?;
    let taken =
        deliveries.into_iter().filter_map(|(agent, at)| Some(at.saturating_duration_since(*sent_at.get(&agent)?)));
    Ok(taken.collect())
}

/// Broadcasts on a channel that all sockets have joined, and measures the delivery times.
async fn to_all(server: &Server, channel: &str, sockets: &mut [Socket]) -> anyhow::Result<Vec<Duration>> {
    let body = json!({"messages": [{"topic": format!("agent:{channel}"), "event": "said", "payload": {"n": 1}}]});
    let began = Instant::now();
    let (_, deliveries) =
        tokio::try_join!(server.post("/realtime/v1/api/broadcast", &body), delivery_times(sockets, "said"))?;
    Ok(deliveries.into_iter().map(|(_, at)| at.saturating_duration_since(began)).collect())
}

/// The rate of responses at maximum load.
#[derive(Clone, Copy)]
struct Rate {
    a_second: f64,
    /// The number of responses, divided by the seconds of processor time that the server used. This rate excludes the
    /// cost of the client's sockets.
    a_processor_second: f64,
}

async fn rate<F: Future<Output = anyhow::Result<Value>>>(
    server: &Server,
    request: impl Fn(u64) -> F,
) -> anyhow::Result<Rate> {
    let (began, taken) = (Instant::now(), server.program.processor_seconds());
    let requests = futures_util::stream::iter(0..).map(&request).buffer_unordered(REQUESTS);
    let answered = requests
        .try_take_while(|_| future::ok(began.elapsed() < MEASURED_TIME))
        .try_fold(0_u32, |count, _| future::ok(count + 1));
    let answered = f64::from(answered.await?);
    let a_second = answered / began.elapsed().as_secs_f64();
    Ok(Rate { a_second, a_processor_second: answered / (server.program.processor_seconds() - taken) })
}

/// Measures the rates of appends and of pipelines.
async fn rates(server: &Server) -> anyhow::Result<[Rate; 2]> {
    let append = |number: u64| async move {
        let event = json!({"aggregate_type": "article", "event_type": "article.changed", "payload": {"title": "A title", "n": number}});
        server.post(&format!("/api/v1/aggregates/article-{}/events", number % ARTICLES), &event).await
    };
    let stages = json!([{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$group": {"_id": null, "n": {"$sum": "$n"}}}]);
    let pipeline = |_| async { server.post("/api/v1/aggregates/query", &json!({"pipeline": stages})).await };
    Ok([rate(server, append).await?, rate(server, pipeline).await?])
}

/// Returns the rates of appends and pipelines with idle sockets, as fractions of the rates without sockets. Each
/// fraction is the median of all rounds. A round divides the rate with idle sockets by the mean of the rates without
/// sockets before and after, because the performance of the machine and the length of the log change over time.
async fn beside_idle(server: &Server, agents: &[String], rounds: usize) -> anyhow::Result<[Rate; 2]> {
    let mut parts = [Vec::new(), Vec::new()];
    rates(server).await?;
    let mut before = rates(server).await?;
    for _ in 0..rounds {
        let opened = futures_util::stream::iter(agents).map(|agent| Socket::open(server, agent, agent));
        let opened: Vec<Socket> = opened.buffer_unordered(CONNECT_CONCURRENCY).try_collect().await?;
        tokio::time::sleep(SETTLE_TIME).await;
        let beside = rates(server).await?;
        drop(opened);
        tokio::time::sleep(SETTLE_TIME).await;
        let after = rates(server).await?;
        for (index, parts) in parts.iter_mut().enumerate() {
            parts.push((beside[index], [before[index], after[index]]));
        }
        before = after;
    }
    let median = |parts: &[(Rate, [Rate; 2])], of: fn(&Rate) -> f64| {
        let part = |(beside, alone): &(Rate, [Rate; 2])| 2.0 * of(beside) / alone.iter().map(of).sum::<f64>();
        let mut parts: Vec<f64> = parts.iter().map(part).collect();
        parts.sort_unstable_by(f64::total_cmp);
        parts[parts.len() / 2]
    };
    Ok(parts.map(|parts| Rate {
        a_second: median(&parts, |rate| rate.a_second),
        a_processor_second: median(&parts, |rate| rate.a_processor_second),
    }))
}

/// Registers agents without tasks.
async fn register(server: &Server, kind: &str, count: usize) -> anyhow::Result<Vec<String>> {
    let mut agents = Vec::new();
    for number in 0..count {
        let agent = server.post("/api/v1/agents", &json!({"name": format!("{kind} {number}")})).await?;
        agents.push(agent["id"].as_str().context("the response about the new agent has no id")?.to_owned());
    }
    Ok(agents)
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<usize> {
    let agents = register(server, "Agent", arguments.sockets).await?;
    let channel = agents[0].as_str();
    let (first, rest) = agents.split_at(arguments.sockets / 2);
    let open = |some: &'static str, agents| async move {
        let began = Instant::now();
        let opened = futures_util::stream::iter(agents).map(|agent: &String| Socket::open(server, agent, channel));
        let opened: Vec<Socket> = opened.buffer_unordered(CONNECT_CONCURRENCY).try_collect().await?;
        println!("{some} {} sockets opened in {:.1} s", opened.len(), began.elapsed().as_secs_f64());
        tokio::time::sleep(SETTLE_TIME).await;
        anyhow::Ok(opened)
    };
    // Does not measure the first half of the sockets, which also causes one-time allocations and allocations for
    // concurrent handshakes.
    let mut sockets = open("the first", first).await?;
    let before = server.program.resident_bytes();
    sockets.extend(open("another", rest).await?);
    let idle = server.program.resident_bytes().saturating_sub(before) / rest.len() as u64;
    println!("an idle socket takes {:.1} kB", idle as f64 / 1e3);

    let mut each: Vec<Duration> = Vec::new();
    for _ in 0..arguments.rounds {
        each.extend(one_each(server, &mut sockets).await?);
    }
    let each = Times::new(each);
    println!("one task each, {each}");
    for socket in sockets.iter_mut().filter(|socket| socket.agent != channel) {
        socket.join(channel).await?;
    }
    let mut all: Vec<Duration> = Vec::new();
    for _ in 0..arguments.rounds {
        all.extend(to_all(server, channel, &mut sockets).await?);
    }
    let all = Times::new(all);
    println!("one channel to all, {all}");
    drop(sockets);
    tokio::time::sleep(SETTLE_TIME).await;
    // Uses agents without tasks, because agents with tasks would get their events again at each join.
    let idle_agents = register(server, "Idle agent", arguments.sockets).await?;
    let [appends, pipelines] = beside_idle(server, &idle_agents, arguments.rounds).await?;
    println!(
        "beside {} idle sockets, the remaining fractions of the rates, and of the rates per second of the server's processor time:",
        agents.len()
    );
    for (name, Rate { a_second, a_processor_second }) in [("appends", appends), ("pipelines", pipelines)] {
        println!("{name}: {a_second:.2}, {a_processor_second:.2}");
    }
    Ok(missed(&[
        ("an idle socket takes less than 40 kB", idle < IDLE_BYTES),
        ("p99 of one task each under 250 ms", each.quantile(0.99) < P99),
        ("p99 of one channel to all under 250 ms", all.quantile(0.99) < P99),
        (
            "appends and pipelines keep 0.9 of their rates by the server's processor time",
            appends.a_processor_second.min(pipelines.a_processor_second) >= MIN_IDLE_RATE_RATIO,
        ),
    ]))
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let server = Server::start(&arguments)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let missed = runtime.block_on(measure(&server, &arguments))?;
    if arguments.strict && missed > 0 {
        bail!("{missed} thresholds missed");
    }
    Ok(())
}
