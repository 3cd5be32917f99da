//! The standard process metrics of Prometheus, read from `/proc`.
//!
//! The process metrics are read whenever a client requests the metrics. Unlike the other metrics, the process metrics
//! are not recorded, because a recorded counter is a whole number and processor time has fractions of a second. On
//! systems without `/proc`, the process metrics are absent.

use std::fmt::Write;
use std::fs;

/// The number of clock ticks per second. Times in `/proc` are numbers of ticks. Linux uses 100 on all common
/// architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// The names, types and descriptions of the metrics, in the order in which they are written.
pub const PROCESS: [(&str, &str, &str); 7] = [
    ("process_cpu_seconds_total", "counter", "Processor time that the process has used, in seconds"),
    ("process_resident_memory_bytes", "gauge", "Resident memory of the process, in bytes"),
    ("process_virtual_memory_bytes", "gauge", "Virtual memory of the process, in bytes"),
    ("process_threads", "gauge", "Threads of the process"),
    ("process_open_fds", "gauge", "Open file descriptors of the process"),
    ("process_max_fds", "gauge", "File descriptors that the process may open"),
    ("process_start_time_seconds", "gauge", "Start time of the process, in seconds since the epoch"),
];

/// Returns the metrics in Prometheus' text format.
pub fn text() -> String {
    let Some(values) = values() else { return String::new() };
    let mut text = String::new();
    for ((name, kind, help), value) in PROCESS.into_iter().zip(values) {
        if let Some(value) = value {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    }
    text
}

/// Returns the values in the order of [`PROCESS`], or `None` on a system without `/proc`. A single value that cannot be
/// read is `None`.
fn values() -> Option<[Option<f64>; 7]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name of the program in parentheses, which may contain spaces.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = |name: &str| Some(number_after(&status, name)? * 1_024.0);
    let system = fs::read_to_string("/proc/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let started = || Some(number_after(&system, "btime ")? + field(22)? / TICKS_PER_SECOND);
    Some([
        field(14).zip(field(15)).map(|(user, kernel)| (user + kernel) / TICKS_PER_SECOND),
        kibibytes("VmRSS:"),
        kibibytes("VmSize:"),
        field(20),
        // Subtracts the descriptor of the folder itself, which is open while the folder is read.
        fs::read_dir("/proc/self/fd").ok().map(|open| open.count().saturating_sub(1) as f64),
        number_after(&limits, "Max open files"),
        started(),
    ])
}

/// Returns the number after a name at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_are_read_and_have_plausible_values() {
        let values = values().expect("/proc");
        let read = |index: usize| values[index].expect(PROCESS[index].0);
        for (index, (name, ..)) in PROCESS.iter().enumerate().skip(1) {
            assert!(read(index) > 0.0, "{name} is {}", read(index));
        }
        assert!(read(4) < read(5), "more files are open than allowed");
        let now = jiff::Timestamp::now().as_second() as f64;
        assert!((now - 86_400.0..=now + 1.0).contains(&read(6)), "the process started at {}", read(6));
    }

    #[test]
    fn a_number_is_read_after_its_name() {
        let text = "Max processes   unlimited\nMax open files            1024   524288   files\n";
        assert_eq!(number_after(text, "Max open files"), Some(1_024.0));
        assert_eq!(number_after(text, "Max processes"), None);
        assert_eq!(number_after(text, "Max locked memory"), None);
    }
}
