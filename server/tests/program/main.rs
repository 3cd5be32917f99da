//! Tests the program as a process: its commands, its start, its checks, its log, its metrics, its recovery and its end.

mod commands;
mod disk;
mod logged;
mod monitored;
mod process;
mod recorder;
mod recovery;
mod server;
mod start;
mod stop;
