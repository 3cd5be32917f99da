//! Log messages and metrics of the process.

use std::net::SocketAddr;

use anyhow::Context as _;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use poem::EndpointExt;
use poem::listener::TcpListener;
use poem::web::Data;
use poem::{Route, Server, get, handler};
use tracing_subscriber::EnvFilter;

use crate::config::{Format, Log, Metrics};

/// Starts writing log messages to standard error.
pub fn start_log(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter).context("log.filter is invalid")?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Does not report failed writes of log messages. If the disk is full, the report to the same stream would fail as
    // well and end the request.
    let subscriber = subscriber.log_internal_errors(false);
    // If logging is already initialised in this process, the first subscriber stays.
    let _ = match log.format {
        Format::Text => subscriber.try_init(),
        Format::Json => subscriber.json().try_init(),
    };
    Ok(())
}

/// Serves `/metrics` on a separate address if the address is configured.
pub async fn start_metrics(metrics: &Metrics) -> anyhow::Result<()> {
    if metrics.listen.is_empty() {
        return Ok(());
    }
    let address: SocketAddr = metrics.listen.parse().context("metrics.listen is not an address")?;
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| anyhow::anyhow!("{error}"))?;
    let app = Route::new().at("/metrics", get(scrape)).data(handle);
    let acceptor = poem::listener::Listener::into_acceptor(TcpListener::bind(address)).await?;
    tokio::spawn(Server::new_with_acceptor(acceptor).run(app));
    Ok(())
}

#[handler]
fn scrape(handle: Data<&PrometheusHandle>) -> String {
    handle.render()
}
