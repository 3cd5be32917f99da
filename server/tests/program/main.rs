//! Tests the program as a process: its start, its checks, its log, its metrics, its recovery and its end.

mod disk;
mod logged;
mod monitored;
mod process;
mod recovery;
mod server;
mod start;
mod stop;
