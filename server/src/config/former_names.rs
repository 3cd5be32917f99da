//! Former names of settings. The server accepts a former name for one release, and logs a warning with the new name. A
//! setting that was removed has no effect and causes only a warning.

use std::collections::HashSet;

use anyhow::bail;
use config::{Map, Value, ValueKind};

/// The former names of settings: the section, the former name, the new name, and a unit. If a setting with the former
/// name is a number, the number has this unit.
const RENAMED: [(&str, &str, &str, &str); 14] = [
    ("http", "body_limit_bytes", "body_limit", "B"),
    ("http", "idle_timeout_s", "idle_timeout", "s"),
    ("http", "stop_delay_s", "stop_delay", "s"),
    ("http", "stop_timeout_s", "stop_timeout", "s"),
    ("store", "memtable_bytes", "memtable", "B"),
    ("store", "timeout_ms", "timeout", "ms"),
    ("files", "quota_bytes", "quota", "B"),
    ("files", "upload_limit_bytes", "upload_limit", "B"),
    ("backup", "flush_ms", "flush", "ms"),
    ("backup", "retention_days", "retention", "days"),
    ("workspaces", "deletion_grace_days", "deletion_grace", "days"),
    ("memory", "resident_bytes", "resident", "B"),
    ("pipeline", "timeout_ms", "timeout", "ms"),
    ("pipeline", "memory_bytes", "memory", "B"),
];
/// The former settings that another setting replaces. Each entry contains the former path, the path of the other
/// setting, and the unit of whole numbers under the former path. If the unit is empty, the value has the same form in
/// both settings.
const MERGED: [(&str, &str, &str); 5] = [
    ("http.event_streams_per_workspace", "http.streams_per_workspace", ""),
    ("realtime.sockets_per_workspace", "http.streams_per_workspace", ""),
    ("realtime.idle_timeout", "http.idle_timeout", ""),
    ("realtime.idle_timeout_s", "http.idle_timeout", "s"),
    ("plugins.limits.deadline_ms", "plugins.deadline", "ms"),
];
/// The settings that were removed, as `section.name`. Most of them are constants now.
const REMOVED: [&str; 42] = [
    "http.upload_least_bytes_per_s",
    "http.page_bytes",
    "http.stalled_reader_s",
    "http.bodies_in_flight",
    "http.bodies_in_flight_bytes",
    "http.body_timeout",
    "http.body_timeout_s",
    "store.cache",
    "store.cache_bytes",
    "store.pulse",
    "store.pulse_ms",
    "files.json_limit_bytes",
    "memory.idle_minutes",
    "pipeline.wait_ms",
    "pipeline.key_queries",
    "pipeline.key_memory",
    "pipeline.key_memory_bytes",
    "pipeline.workspace_memory",
    "pipeline.workspace_memory_bytes",
    "plugins.threads",
    "plugins.limits.operations",
    "plugins.limits.memory_bytes",
    "plugins.limits.string_bytes",
    "plugins.limits.array_items",
    "plugins.limits.map_items",
    "plugins.limits.call_levels",
    "plugins.limits.expression_depth",
    "plugins.limits.function_expression_depth",
    "plugins.limits.variables",
    "plugins.limits.functions",
    "mcp.message_bytes",
    "mcp.response_bytes",
    "mcp.answer_bytes",
    "realtime.channels_per_socket",
    "realtime.joins_per_second",
    "realtime.messages_per_second",
    "realtime.frame_bytes",
    "realtime.queue_messages",
    "realtime.queue_bytes",
    "search.embedding.timeout",
    "search.embedding.timeout_ms",
    "search.embedding.batch",
];
/// The advice about removed settings: the beginning of the former path, and the text of the advice.
const ADVICE: [(&str, &str); 4] = [
    ("pipeline.key_queries", "; a key may use half of `pipeline.workspace_queries`"),
    ("pipeline.key_memory", "; the pipelines of a key may use twice `pipeline.memory` together"),
    ("pipeline.workspace_memory", "; the pipelines of a workspace may use four times `pipeline.memory` together"),
    ("plugins.limits.", "; set it for one plugin under [limits] in the plugin's manifest"),
];
/// The sections that were removed. A section inside another one has a dot in its path.
const REMOVED_SECTIONS: [&str; 2] = ["realtime", "plugins.limits"];

/// Returns whether a path is a former name of a setting, or a setting that was removed.
pub fn is_former(path: &[&str]) -> bool {
    let path = path.join(".");
    let is_renamed = RENAMED.iter().any(|(section, former, ..)| path == format!("{section}.{former}"));
    let is_merged = MERGED.iter().any(|(former, ..)| *former == path);
    is_renamed || is_merged || REMOVED.contains(&&*path)
}

/// Replaces the former names in the settings of one source with the new names, and removes the settings that no longer
/// exist. Returns a warning for each former name and each removed setting.
///
/// # Errors
///
/// Fails if the source has a renamed setting under both names.
pub fn adopt(settings: &mut Map<String, Value>) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for (section, former, name, unit) in RENAMED {
        let Some(table) = table_at(settings, section) else { continue };
        let Some(value) = table.remove(former) else { continue };
        if table.contains_key(name) {
            bail!("`{section}.{former}` is the former name of `{section}.{name}`, which is set as well");
        }
        let value = with_unit(value, unit);
        warnings.push(format!("`{section}.{former}` is now `{section}.{name}`; write {name} = \"{value}\""));
        table.insert(name.to_owned(), value);
    }
    merge(settings, &mut warnings);
    for path in REMOVED {
        if remove(settings, path).is_some() {
            let advice = ADVICE.iter().find(|(beginning, _)| path.starts_with(beginning)).map_or("", |(_, text)| *text);
            warnings.push(format!("`{path}` is no longer a setting and has no effect; remove it{advice}"));
        }
    }
    for section in REMOVED_SECTIONS {
        if table_at(settings, section).is_some_and(|table| table.is_empty()) {
            remove(settings, section);
        }
    }
    Ok(warnings)
}

/// Moves each former setting of [`MERGED`] to the setting that replaces it. A value under the new name has precedence.
/// If the same setting replaces two former settings with numbers, the higher number applies, because the higher number
/// allows everything that either number allowed. Of two other values, the value of the first entry in [`MERGED`]
/// applies.
fn merge(settings: &mut Map<String, Value>, warnings: &mut Vec<String>) {
    let mut moved = HashSet::new();
    for (former, new, unit) in MERGED {
        let Some(value) = remove(settings, former) else { continue };
        let value = with_unit(value, unit);
        let Some((section, name)) = new.split_once('.') else { continue };
        let entry = settings.entry(section.to_owned());
        let section = entry.or_insert_with(|| Value::new(None, ValueKind::Table(Map::new())));
        let ValueKind::Table(table) = &mut section.kind else { continue };
        let present = table.get(name).map(|present| &present.kind);
        let is_used = match (present, &value.kind) {
            (None, _) => true,
            (Some(ValueKind::I64(present)), ValueKind::I64(value)) if moved.contains(new) => value > present,
            _ => false,
        };
        if is_used {
            warnings.push(format!("`{former}` is now part of `{new}`; set `{new}` instead"));
            table.insert(name.to_owned(), value);
            moved.insert(new);
        } else {
            warnings.push(format!("`{former}` is now part of `{new}`, which is set; remove `{former}`"));
        }
    }
}

/// Converts a whole number to a text with the unit. Returns the value unchanged if it is not a whole number, or if the
/// unit is empty.
fn with_unit(value: Value, unit: &str) -> Value {
    let origin = value.origin().map(str::to_owned);
    let kind = match value.kind {
        ValueKind::I64(number) if !unit.is_empty() => ValueKind::String(format!("{number} {unit}")),
        kind => kind,
    };
    Value::new(origin.as_ref(), kind)
}

/// Removes a setting or a section, given by its path.
pub fn remove(settings: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.rsplit_once('.') {
        Some((section, name)) => table_at(settings, section)?.remove(name),
        None => settings.remove(path),
    }
}

/// Returns the table of a section, if the settings contain the section.
pub fn table_at<'a>(settings: &'a mut Map<String, Value>, section: &str) -> Option<&'a mut Map<String, Value>> {
    section.split('.').try_fold(settings, |table, name| match &mut table.get_mut(name)?.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use config::{File, FileFormat, Source};

    use super::*;

    fn adopted(text: &str) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
        let mut settings = File::from_str(text, FileFormat::Toml).collect()?;
        let warnings = adopt(&mut settings)?;
        Ok((settings, warnings))
    }

    #[test]
    fn the_value_of_a_renamed_setting_gets_the_unit_of_the_former_name() {
        let text = "[http]\nstop_timeout_s = 7\npage_bytes = 1\n[store]\nmemtable = \"1 MiB\"\n[backup]\nflush_ms = 8";
        let (mut settings, warnings) = adopted(text).expect("settings");
        let http = table_at(&mut settings, "http").expect("a section");
        assert_eq!(http.get("stop_timeout").map(ToString::to_string).as_deref(), Some("7 s"));
        assert_eq!(http.len(), 1);
        assert_eq!(
            warnings,
            [
                "`http.stop_timeout_s` is now `http.stop_timeout`; write stop_timeout = \"7 s\"",
                "`backup.flush_ms` is now `backup.flush`; write flush = \"8 ms\"",
                "`http.page_bytes` is no longer a setting and has no effect; remove it",
            ]
        );
    }

    #[test]
    fn a_setting_replaces_several_former_settings() {
        let read = |text: &str| {
            let config = crate::config::Config::parse(text).expect("a configuration");
            (config.http.streams_per_workspace, config.http.idle_timeout.millis(), config.plugins.limits.deadline_ms)
        };
        let (http, realtime) = ("[http]\nevent_streams_per_workspace = 5\n", "[realtime]\nsockets_per_workspace = 7\n");
        assert_eq!(read(http), (5, 75_000, 250));
        assert_eq!(read(&format!("{http}{realtime}idle_timeout = \"9 s\"\n")), (7, 9_000, 250));
        assert_eq!(
            read("[realtime]\nidle_timeout_s = 8\n[plugins.limits]\ndeadline_ms = 6\nvariables = 1\n"),
            (1_000, 8_000, 6)
        );
        // A value under the new name has precedence over former names.
        let text =
            format!("[http]\nstreams_per_workspace = 3\nidle_timeout = \"4 s\"\n{realtime}idle_timeout = \"9 s\"\n");
        assert_eq!(read(&text), (3, 4_000, 250));
        let (_, warnings) =
            adopted(&format!("{text}[plugins.limits]\nfunctions = 2\n[pipeline]\nkey_queries = 1")).expect("settings");
        assert_eq!(
            warnings,
            [
                "`realtime.sockets_per_workspace` is now part of `http.streams_per_workspace`, which is set; remove \
                 `realtime.sockets_per_workspace`",
                "`realtime.idle_timeout` is now part of `http.idle_timeout`, which is set; remove `realtime.idle_timeout`",
                "`pipeline.key_queries` is no longer a setting and has no effect; remove it; a key may use half of \
                 `pipeline.workspace_queries`",
                "`plugins.limits.functions` is no longer a setting and has no effect; remove it; set it for one plugin under \
                 [limits] in the plugin's manifest",
            ]
        );
    }

    #[test]
    fn a_setting_under_both_its_former_and_its_current_name_is_rejected() {
        let refused = adopted("[store]\nmemtable_bytes = 1\nmemtable = \"1 MiB\"").expect_err("both names").to_string();
        assert_eq!(refused, "`store.memtable_bytes` is the former name of `store.memtable`, which is set as well");
    }

    #[test]
    fn the_shipped_configuration_has_the_new_names_but_no_former_names() {
        let shipped: toml::Table = toml::from_str(crate::config::DEFAULTS).expect("the shipped configuration");
        let shipped = toml::Value::Table(shipped);
        let is_setting = |path: String| path.split('.').try_fold(&shipped, |table, name| table.get(name)).is_some();
        for (section, former, name, _) in RENAMED {
            assert!(is_setting(format!("{section}.{name}")), "{section}.{name}");
            assert!(!is_setting(format!("{section}.{former}")), "{section}.{former}");
            assert!(is_former(&[section, former]), "{section}.{former}");
        }
        for (former, new, _) in MERGED {
            assert!(is_setting(new.to_owned()), "{new}");
            assert!(!is_setting(former.to_owned()), "{former}");
        }
        for path in REMOVED {
            assert!(!is_setting(path.to_owned()), "{path}");
            assert!(is_former(&path.split('.').collect::<Vec<_>>()), "{path}");
        }
    }
}
