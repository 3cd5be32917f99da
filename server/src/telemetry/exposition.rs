//! Serves the metrics in the format of Prometheus, on a separate address.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use foldwork_engine::metric::{ENGINE, Metric, MetricKind};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use poem::http::header::CONTENT_TYPE;
use poem::listener::{Acceptor, Listener, TcpListener};
use poem::web::{Data, LocalAddr};
use poem::{EndpointExt, IntoResponse, Response, Route, Server, get, handler};

use super::process;
use crate::config::Metrics;
use crate::metric::{BUILD_INFO, SERVER};

/// The media type of Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The interval at which recorded values are added to the buckets of their histograms. Without this upkeep, recorded
/// values would fill the memory as long as no client reads the metrics.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The recorded metrics of the process.
#[derive(Clone)]
pub struct Exposition(PrometheusHandle);

impl Exposition {
    /// Starts recording. Fails if the process already records its metrics.
    pub fn start() -> anyhow::Result<Exposition> {
        let mut builder = PrometheusBuilder::new();
        for metric in all() {
            if let MetricKind::Histogram(buckets) = metric.kind {
                builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
            }
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|error| anyhow::anyhow!("{error}"))?;
        all().for_each(Metric::describe);
        BUILD_INFO.set(&[env!("CARGO_PKG_VERSION")], 1.0);
        Ok(Exposition(handle))
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        [self.0.render(), process::text()].concat()
    }
}

/// Returns the descriptions of all recorded metrics.
fn all() -> impl Iterator<Item = &'static Metric> {
    ENGINE.iter().chain(SERVER)
}

/// Records the metrics and serves them at `/metrics` if the settings contain an address. Returns the bound address, or
/// `None` without an address in the settings.
pub async fn serve_metrics(settings: &Metrics) -> anyhow::Result<Option<SocketAddr>> {
    if settings.listen.is_empty() {
        return Ok(None);
    }
    let address = &settings.listen;
    let acceptor = TcpListener::bind(address.clone()).into_acceptor().await;
    let acceptor = acceptor.with_context(|| format!("[metrics] listen: cannot listen on {address}"))?;
    let bound = acceptor.local_addr().into_iter().find_map(|LocalAddr(address)| address.as_socket_addr().copied());
    let exposition = Exposition::start()?;
    tokio::spawn(keep_adding_up(exposition.clone()));
    let app = Route::new().at("/metrics", get(scrape)).data(exposition);
    tokio::spawn(Server::new_with_acceptor(acceptor).run(app));
    Ok(bound)
}

async fn keep_adding_up(exposition: Exposition) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        exposition.0.run_upkeep();
    }
}

#[handler]
async fn scrape(exposition: Data<&Exposition>) -> poem::Result<Response> {
    let exposition = exposition.clone();
    // Runs on another thread, because rendering thousands of series and counting open files takes milliseconds.
    let text = tokio::task::spawn_blocking(move || exposition.text()).await;
    let text = text.map_err(poem::error::InternalServerError)?;
    Ok(text.with_header(CONTENT_TYPE, TEXT).into_response())
}
