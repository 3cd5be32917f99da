//! Runs the server as a separate process with its own store, and reports measurements of the process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

/// A server that runs until this value is dropped.
pub struct Program {
    process: Child,
    /// The host and the port.
    pub address: String,
    /// The owner's key.
    pub key: String,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Starts a program with additional environment variables.
    pub fn start(program: &str, settings: &[(&str, String)]) -> anyhow::Result<Program> {
        let folder = tempfile::tempdir()?;
        let key = format!("sk_{}", "7".repeat(64));
        let database = format!("surrealkv://{}", folder.path().join("db").display());
        let mut process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database])
            .current_dir(folder.path())
            .env("FOLDWORK_BOOTSTRAP_KEY", &key)
            .env("FOLDWORK_LOG__FILTER", "warn")
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let output = process.stdout.take().context("the server's output is not piped")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        let address = address.context("the server ended while starting")?;
        Ok(Program { process, address, key, _folder: folder })
    }

    /// Returns the processor time in seconds that the process has used so far.
    pub fn processor_seconds(&self) -> f64 {
        const TICKS_A_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        // The first field after the name in parentheses is field 3. User time is field 14, and system time is field 15.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
        ticks.sum::<f64>() / TICKS_A_SECOND
    }

    /// Returns the resident memory of the process in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) << 10
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The sorted durations of operations.
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts durations, which may be in any order.
    pub fn new(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        Times(times)
    }

    /// Returns the number of operations.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the time within which this fraction (0 to 1) of the operations finished.
    pub fn quantile(&self, part: f64) -> Duration {
        let index = (self.0.len() as f64 * part) as usize;
        self.0.get(index.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |part: f64| self.quantile(part).as_secs_f64() * 1e3;
        write!(formatter, "ms: p50 {:.1}, p99 {:.1}, most {:.1}", ms(0.5), ms(0.99), ms(1.0))
    }
}

/// Prints whether each threshold holds, and returns the number of missed thresholds.
pub fn missed(thresholds: &[(&str, bool)]) -> usize {
    for (name, holds) in thresholds {
        println!("{name}: {}", if *holds { "holds" } else { "missed" });
    }
    let missed = thresholds.iter().filter(|(_, holds)| !holds).count();
    println!("{missed} thresholds missed");
    missed
}
