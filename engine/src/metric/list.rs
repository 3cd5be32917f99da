//! The metrics of the engine.

/// The buckets for work that takes a fraction of a millisecond to seconds, in seconds.
const SHORT: &[f64] = &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// The buckets for work that takes milliseconds to a minute, in seconds.
pub const LONG: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

metric_table! {
    /// All metrics of the engine.
    ENGINE:
    EVENTS_APPENDED = counter "foldwork_events_appended_total": "Events appended to logs";
    PULSE_SECONDS = histogram "foldwork_pulse_interval_seconds" in SHORT:
        "Time between two successful reads of what other servers on the store have appended, in seconds; no values if \
         the store belongs to one server";
    PULSE_AGE = gauge "foldwork_pulse_age_seconds":
        "Time since the last successful read of what other servers on the store have appended, in seconds; 0 if the \
         store belongs to one server";
    CONFLICTS = counter "foldwork_conflicts_total" ["kind"]:
        "Conflicts with other servers on the store: repeated definitions of types, repeated steps of plugins, and \
         appends that were given up after several attempts" from &[&["append_given_up"], &["definition"], &["graph"]];
    WORKSPACES_LED = gauge "foldwork_workspaces_led": "Open workspaces whose plugins and timers run on this server";
    LEADER_CHANGES = counter "foldwork_leader_changes_total":
        "Workspaces whose plugins and timers this server has taken over";
    APPEND_CONFLICTS = counter "foldwork_append_conflicts_total":
        "Commits repeated because another process wrote to the log first";
    COMMIT_SECONDS = histogram "foldwork_commit_duration_seconds" in SHORT:
        "Time that the store took to commit a batch of appends, in seconds";
    STORE_FAILURES = counter "foldwork_store_failures_total" ["kind"]:
        "Failures of the store by kind; conflicts between writers are not failures"
        from &[
            &["archive"], &["blobs"], &["connection"], &["corrupt"], &["database"], &["disk"], &["opening"],
            &["unwritable"],
        ];
    STORE_HEALTHY = gauge "foldwork_store_healthy":
        "Whether the store responded to the last check and accepted a write (1) or not (0)" from &[];
    WORKSPACES_OPEN = gauge "foldwork_workspaces_open": "Workspaces in memory";
    WORKSPACES_FAILED = gauge "foldwork_workspaces_failed": "Workspaces whose last attempt to load failed";
    RESIDENT_BYTES = gauge "foldwork_resident_bytes": "Memory of the open workspaces, in bytes";
    RESIDENT_LIMIT_BYTES = gauge "foldwork_resident_limit_bytes":
        "Memory of open workspaces above which unused ones are closed, in bytes; 0 without a limit";
    FILE_BYTES = gauge "foldwork_file_bytes":
        "Bytes of the files in open workspaces, including uploads in progress and bytes to be removed";
    LAG_EVENTS = gauge "foldwork_consumer_lag_events" ["consumer"]:
        "Events between the end of the log and the consumer, in the open workspace in which it is furthest behind"
        from &[&["graph"], &["nodes"]];
    LAG_SECONDS = gauge "foldwork_consumer_lag_seconds" ["consumer"]:
        "Age of the oldest event that the consumer has not processed in any open workspace, in seconds"
        from &[&["graph"], &["nodes"]];
    CONSUMER_FAILURES = counter "foldwork_consumer_failures_total" ["consumer"]:
        "Steps of a consumer that failed and are repeated" from &[&["graph"], &["nodes"]];
    PLUGIN_CALL_SECONDS = histogram "foldwork_plugin_call_duration_seconds" ["plugin"] in SHORT:
        "Time that a call of a plugin's hook took, in seconds";
    PLUGIN_OPERATIONS = counter "foldwork_plugin_operations_total" ["plugin"]: "Script operations in successful calls";
    PLUGIN_ERRORS = counter "foldwork_plugin_errors_total" ["plugin"]: "Calls of a plugin's hook that failed";
    STEPS_PARKED = counter "foldwork_steps_parked_total" ["plugin"]: "Failed steps that were parked";
    PARKED_STEPS = gauge "foldwork_parked_steps" ["plugin"]: "Steps that are parked in open workspaces";
    PLUGIN_STOPPED = gauge "foldwork_plugin_stopped_workspaces" ["plugin"]:
        "Open workspaces in which the plugin is stopped until somebody resumes it";
    TASKS_OPEN = gauge "foldwork_tasks_open" ["status"]:
        "Open tasks of open workspaces by status"
        from &[&["pending"], &["in_progress"], &["input_required"], &["review"], &["awaiting_reply"], &["deferred"]];
    TASKS_OLDEST_SECONDS = gauge "foldwork_tasks_oldest_waiting_seconds" ["waiting_on"]:
        "Time since the last change of the open task that has waited longest for this party, in seconds"
        from &[&["human"], &["agent"]];
    PIPELINE_SECONDS = histogram "foldwork_pipeline_duration_seconds" ["result"] in LONG:
        "Duration of pipelines, including the wait for admission, in seconds, by result";
    BACKUP_SEGMENTS = counter "foldwork_backup_segments_total": "Segments of logs that were archived";
    BACKUP_FAILURES = counter "foldwork_backup_failures_total":
        "Attempts to archive a workspace or the control database that failed and are repeated";
    BACKUP_LAG_EVENTS = gauge "foldwork_backup_lag_events":
        "Events that are not archived yet, in the open workspace in which the archive is furthest behind";
    BACKUP_LAG_SECONDS = gauge "foldwork_backup_lag_seconds":
        "Age of the oldest event that is not archived yet in any open workspace, in seconds";
    BACKUP_UNVERIFIED = gauge "foldwork_backup_unverified_workspaces":
        "Workspaces whose archive differs from the server's states, is damaged, or was not verified for two days";
    MEASURED_AT = gauge "foldwork_measured_timestamp_seconds":
        "Time at which gauges of the store and of open workspaces were last measured, in seconds since the epoch"
        from &[];
}
