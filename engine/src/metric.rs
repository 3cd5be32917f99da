//! The metrics of the program: their names, labels and descriptions, and how their values are recorded.
//!
//! The values of a label come from a closed set: names that the program defines, or names from its configuration.
//! Clients must not be able to create series. For this reason, no label names a workspace, a user or a type: sign-ups
//! create workspaces and users, and clients define types.

use metrics::Label;

/// Declares metrics and the list of these metrics. A declaration consists of the name of the constant, the kind, the
/// name of the metric, the labels in brackets, the keyword `in` with the buckets of a histogram, the description, and
/// the keyword `from` with the initial series. The labels and `from` are optional. Only a histogram has `in`.
#[macro_export]
macro_rules! metric_table {
    ($(#[$doc:meta])* $list:ident:
        $($metric:ident = $kind:ident $name:literal $([$($label:literal),+])? $(in $buckets:ident)?:
            $help:literal $(from $initial:expr)?;)+) => {
        $(
            pub const $metric: $crate::metric::Metric =
                $crate::metric::Metric::$kind($name, &[$($($label),+)?], $($buckets,)? $help)
                    $(.starting_with($initial))?;
        )+

        $(#[$doc])*
        pub const $list: &[$crate::metric::Metric] = &[$($metric),+];
    };
}

mod list;

pub use list::*;

/// The type of a metric.
#[derive(Debug, Clone, Copy)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// A histogram with the upper bounds of its buckets, in ascending order.
    Histogram(&'static [f64]),
}

/// A metric. Each series of a metric is identified by one value for each label.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    /// The description that Prometheus shows, without a full stop.
    pub help: &'static str,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// The label values of the series that exist from the start. A series that begins with its first increase would
    /// hide that increase from Prometheus.
    pub initial: &'static [&'static [&'static str]],
}

impl Metric {
    /// Creates a metric. Without labels, the metric has one series, which exists from the start unless the metric is a
    /// histogram. With labels, each series is created when its first value is recorded.
    const fn new(kind: MetricKind, name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
        let initial: &[&[&str]] = if labels.is_empty() { &[&[]] } else { &[] };
        Metric { name, kind, help, labels, initial }
    }

    /// Creates a counter.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
        Metric::new(MetricKind::Counter, name, labels, help)
    }

    /// Creates a gauge.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
        Metric::new(MetricKind::Gauge, name, labels, help)
    }

    /// Creates a histogram. `buckets` contains the upper bounds of the buckets, in ascending order.
    pub const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        buckets: &'static [f64],
        help: &'static str,
    ) -> Metric {
        Metric::new(MetricKind::Histogram(buckets), name, labels, help)
    }

    /// Returns the metric with the given series, which exist from the start.
    pub const fn starting_with(self, initial: &'static [&'static [&'static str]]) -> Metric {
        Metric { initial, ..self }
    }

    /// Adds `by` to the counter with these label values.
    pub fn add(&self, values: &[&str], by: u64) {
        metrics::counter!(self.name, self.labelled(values)).increment(by);
    }

    /// Sets the gauge with these label values.
    pub fn set(&self, values: &[&str], to: f64) {
        metrics::gauge!(self.name, self.labelled(values)).set(to);
    }

    /// Adds `by` to the gauge with these label values. A negative number decreases the gauge.
    pub fn change(&self, values: &[&str], by: f64) {
        metrics::gauge!(self.name, self.labelled(values)).increment(by);
    }

    /// Adds a value to the histogram with these label values.
    pub fn record(&self, values: &[&str], value: f64) {
        metrics::histogram!(self.name, self.labelled(values)).record(value);
    }

    /// Describes the metric to the recorder, and creates the initial series of a counter or gauge.
    pub fn describe(&self) {
        match self.kind {
            MetricKind::Counter => metrics::describe_counter!(self.name, self.help),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, self.help),
            MetricKind::Histogram(_) => metrics::describe_histogram!(self.name, self.help),
        }
        for values in self.initial {
            match self.kind {
                MetricKind::Counter => self.add(values, 0),
                MetricKind::Gauge => self.change(values, 0.0),
                // A histogram has no series before its first value.
                MetricKind::Histogram(_) => {}
            }
        }
    }

    fn labelled(&self, values: &[&str]) -> Vec<Label> {
        debug_assert_eq!(self.labels.len(), values.len(), "{} has the labels {:?}", self.name, self.labels);
        self.labels.iter().zip(values).map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
    }
}

/// Keeps a gauge increased by 1 until the guard is dropped.
pub struct GaugeGuard(&'static Metric);

impl GaugeGuard {
    /// Increases a gauge without labels by 1 until the returned guard is dropped.
    pub fn begin(gauge: &'static Metric) -> GaugeGuard {
        gauge.change(&[], 1.0);
        GaugeGuard(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.change(&[], -1.0);
    }
}
