//! The metrics of the engine.

use super::Metric;

/// The buckets for work that takes a fraction of a millisecond to seconds, in seconds.
const SHORT: &[f64] = &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// The buckets for work that takes milliseconds to a minute, in seconds.
pub const LONG: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

pub const EVENTS_APPENDED: Metric = Metric::counter("foldwork_events_appended_total", &[], "Events appended to logs");
pub const APPEND_CONFLICTS: Metric = Metric::counter(
    "foldwork_append_conflicts_total",
    &[],
    "Commits repeated because another process wrote to the log first",
);
pub const COMMIT_SECONDS: Metric = Metric::histogram(
    "foldwork_commit_duration_seconds",
    &[],
    SHORT,
    "Time that the store took to commit a batch of appends, in seconds",
);

pub const PULSE_SECONDS: Metric = Metric::histogram(
    "foldwork_pulse_interval_seconds",
    &[],
    SHORT,
    "Time between two successful reads of what other servers on the store have appended, in seconds; no values if the \
     store belongs to one server",
);
pub const PULSE_AGE: Metric = Metric::gauge(
    "foldwork_pulse_age_seconds",
    &[],
    "Time since the last successful read of what other servers on the store have appended, in seconds; 0 if the store \
     belongs to one server",
);
pub const CONFLICTS: Metric = Metric::counter(
    "foldwork_conflicts_total",
    &["kind"],
    "Conflicts with other servers on the store: definitions of types and steps of plugins that were repeated, and \
     appends that were given up after several attempts",
)
.starting_with(&[&["append_given_up"], &["definition"], &["graph"]]);
pub const WORKSPACES_LED: Metric =
    Metric::gauge("foldwork_workspaces_led", &[], "Open workspaces whose plugins and timers run on this server");
pub const LEADER_CHANGES: Metric = Metric::counter(
    "foldwork_leader_changes_total",
    &[],
    "Workspaces whose plugins and timers this server has taken over",
);

pub const STORE_FAILURES: Metric = Metric::counter(
    "foldwork_store_failures_total",
    &["kind"],
    "Failures of the store by kind; conflicts between writers are not failures",
)
.starting_with(&[
    &["archive"],
    &["blobs"],
    &["connection"],
    &["corrupt"],
    &["database"],
    &["disk"],
    &["opening"],
    &["unwritable"],
]);
pub const STORE_HEALTHY: Metric = Metric::gauge(
    "foldwork_store_healthy",
    &[],
    "Whether the store responded to the last check and accepted a write (1) or not (0)",
)
.starting_with(&[]);

pub const WORKSPACES_OPEN: Metric = Metric::gauge("foldwork_workspaces_open", &[], "Workspaces in memory");
pub const WORKSPACES_FAILED: Metric =
    Metric::gauge("foldwork_workspaces_failed", &[], "Workspaces whose last attempt to load failed");
pub const RESIDENT_BYTES: Metric =
    Metric::gauge("foldwork_resident_bytes", &[], "Memory of the open workspaces, in bytes");
pub const RESIDENT_LIMIT_BYTES: Metric = Metric::gauge(
    "foldwork_resident_limit_bytes",
    &[],
    "Memory of open workspaces above which unused ones are closed, in bytes; 0 without a limit",
);
pub const FILE_BYTES: Metric = Metric::gauge(
    "foldwork_file_bytes",
    &[],
    "Bytes of the files in open workspaces, including uploads in progress and bytes to be removed",
);

pub const LAG_EVENTS: Metric = Metric::gauge(
    "foldwork_consumer_lag_events",
    &["consumer"],
    "Events between the end of the log and the consumer, in the open workspace in which it is furthest behind",
)
.starting_with(&[&["graph"], &["nodes"]]);
pub const LAG_SECONDS: Metric = Metric::gauge(
    "foldwork_consumer_lag_seconds",
    &["consumer"],
    "Age of the oldest event that the consumer has not processed in any open workspace, in seconds",
)
.starting_with(&[&["graph"], &["nodes"]]);
pub const CONSUMER_FAILURES: Metric = Metric::counter(
    "foldwork_consumer_failures_total",
    &["consumer"],
    "Steps of a consumer that failed and are repeated",
)
.starting_with(&[&["graph"], &["nodes"]]);

pub const PLUGIN_CALL_SECONDS: Metric = Metric::histogram(
    "foldwork_plugin_call_duration_seconds",
    &["plugin"],
    SHORT,
    "Time that a call of a plugin's hook took, in seconds",
);
pub const PLUGIN_OPERATIONS: Metric =
    Metric::counter("foldwork_plugin_operations_total", &["plugin"], "Script operations in successful calls");
pub const PLUGIN_ERRORS: Metric =
    Metric::counter("foldwork_plugin_errors_total", &["plugin"], "Calls of a plugin's hook that failed");
pub const STEPS_PARKED: Metric =
    Metric::counter("foldwork_steps_parked_total", &["plugin"], "Failed steps that were parked");
pub const PARKED_STEPS: Metric =
    Metric::gauge("foldwork_parked_steps", &["plugin"], "Steps that are parked in open workspaces");
pub const PLUGIN_STOPPED: Metric = Metric::gauge(
    "foldwork_plugin_stopped_workspaces",
    &["plugin"],
    "Open workspaces in which the plugin is stopped until somebody resumes it",
);

pub const TASKS_OPEN: Metric =
    Metric::gauge("foldwork_tasks_open", &["status"], "Open tasks of open workspaces by status").starting_with(&[
        &["pending"],
        &["in_progress"],
        &["input_required"],
        &["review"],
        &["awaiting_reply"],
        &["deferred"],
    ]);
pub const TASKS_OLDEST_SECONDS: Metric = Metric::gauge(
    "foldwork_tasks_oldest_waiting_seconds",
    &["waiting_on"],
    "Time since the last change of the open task that has waited longest for this party, in seconds",
)
.starting_with(&[&["human"], &["agent"]]);

pub const PIPELINE_SECONDS: Metric = Metric::histogram(
    "foldwork_pipeline_duration_seconds",
    &["result"],
    LONG,
    "Duration of pipelines, including the wait for admission, in seconds, by result",
);

pub const BACKUP_SEGMENTS: Metric =
    Metric::counter("foldwork_backup_segments_total", &[], "Segments of logs that were archived");
pub const BACKUP_FAILURES: Metric = Metric::counter(
    "foldwork_backup_failures_total",
    &[],
    "Attempts to archive a workspace or the control database that failed and are repeated",
);
pub const BACKUP_LAG_EVENTS: Metric = Metric::gauge(
    "foldwork_backup_lag_events",
    &[],
    "Events that are not archived yet, in the open workspace in which the archive is furthest behind",
);
pub const BACKUP_LAG_SECONDS: Metric = Metric::gauge(
    "foldwork_backup_lag_seconds",
    &[],
    "Age of the oldest event that is not archived yet in any open workspace, in seconds",
);
pub const BACKUP_UNVERIFIED: Metric = Metric::gauge(
    "foldwork_backup_unverified_workspaces",
    &[],
    "Workspaces whose archive differs from the server's states, is damaged, or was not verified for two days",
);

pub const MEASURED_AT: Metric = Metric::gauge(
    "foldwork_measured_timestamp_seconds",
    &[],
    "Time at which gauges of the store and of open workspaces were last measured, in seconds since the epoch",
)
.starting_with(&[]);

/// All metrics of the engine.
pub const ENGINE: &[Metric] = &[
    EVENTS_APPENDED,
    PULSE_SECONDS,
    PULSE_AGE,
    CONFLICTS,
    WORKSPACES_LED,
    LEADER_CHANGES,
    APPEND_CONFLICTS,
    COMMIT_SECONDS,
    STORE_FAILURES,
    STORE_HEALTHY,
    WORKSPACES_OPEN,
    WORKSPACES_FAILED,
    RESIDENT_BYTES,
    RESIDENT_LIMIT_BYTES,
    FILE_BYTES,
    LAG_EVENTS,
    LAG_SECONDS,
    CONSUMER_FAILURES,
    PLUGIN_CALL_SECONDS,
    PLUGIN_OPERATIONS,
    PLUGIN_ERRORS,
    STEPS_PARKED,
    PARKED_STEPS,
    PLUGIN_STOPPED,
    TASKS_OPEN,
    TASKS_OLDEST_SECONDS,
    PIPELINE_SECONDS,
    BACKUP_SEGMENTS,
    BACKUP_FAILURES,
    BACKUP_LAG_EVENTS,
    BACKUP_LAG_SECONDS,
    BACKUP_UNVERIFIED,
    MEASURED_AT,
];
