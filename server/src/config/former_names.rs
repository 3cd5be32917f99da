//! Former names of settings. The server accepts a former name for one release, and warns with the new name.

use anyhow::bail;
use config::{Map, Value, ValueKind};

/// The former names of settings: the section, the former name, the new name and the unit of a former number.
const RENAMED: [Renaming; 22] = [
    ("http", "body_limit_bytes", "body_limit", "B"),
    ("http", "bodies_in_flight_bytes", "bodies_in_flight", "B"),
    ("http", "body_timeout_s", "body_timeout", "s"),
    ("http", "idle_timeout_s", "idle_timeout", "s"),
    ("http", "stop_delay_s", "stop_delay", "s"),
    ("http", "stop_timeout_s", "stop_timeout", "s"),
    ("store", "memtable_bytes", "memtable", "B"),
    ("store", "cache_bytes", "cache", "B"),
    ("store", "timeout_ms", "timeout", "ms"),
    ("store", "pulse_ms", "pulse", "ms"),
    ("files", "quota_bytes", "quota", "B"),
    ("files", "upload_limit_bytes", "upload_limit", "B"),
    ("backup", "flush_ms", "flush", "ms"),
    ("backup", "retention_days", "retention", "days"),
    ("workspaces", "deletion_grace_days", "deletion_grace", "days"),
    ("memory", "resident_bytes", "resident", "B"),
    ("pipeline", "timeout_ms", "timeout", "ms"),
    ("pipeline", "memory_bytes", "memory", "B"),
    ("pipeline", "workspace_memory_bytes", "workspace_memory", "B"),
    ("pipeline", "key_memory_bytes", "key_memory", "B"),
    ("realtime", "idle_timeout_s", "idle_timeout", "s"),
    ("search.embedding", "timeout_ms", "timeout", "ms"),
];
/// The settings that were removed, as `section.name`. Most of them are constants now.
const REMOVED: [&str; 14] = [
    "http.upload_least_bytes_per_s",
    "http.page_bytes",
    "http.stalled_reader_s",
    "files.json_limit_bytes",
    "memory.idle_minutes",
    "pipeline.wait_ms",
    "mcp.message_bytes",
    "mcp.response_bytes",
    "realtime.channels_per_socket",
    "realtime.joins_per_second",
    "realtime.messages_per_second",
    "realtime.frame_bytes",
    "realtime.queue_messages",
    "realtime.queue_bytes",
];

/// A former name of a setting: the section, the former name, the new name and the unit of a former number.
type Renaming = (&'static str, &'static str, &'static str, &'static str);

/// Returns whether a path is a former name of a setting, or a setting that was removed.
pub fn is_former(path: &[&str]) -> bool {
    let path = path.join(".");
    let is_renamed = |(section, former, ..): &Renaming| path == format!("{section}.{former}");
    RENAMED.iter().any(is_renamed) || REMOVED.contains(&&*path)
}

/// Replaces the former names in the settings of one source by the new names, and removes the settings that no longer
/// exist. Returns a warning for each of these settings.
///
/// # Errors
///
/// Fails if the source has a setting under both names.
pub fn adopt(settings: &mut Map<String, Value>) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for (section, former, name, unit) in RENAMED {
        let Some(table) = table_at(settings, section) else { continue };
        let Some(value) = table.remove(former) else { continue };
        if table.contains_key(name) {
            bail!("`{section}.{former}` is the former name of `{section}.{name}`, which is set as well");
        }
        let origin = value.origin().map(str::to_owned);
        let kind = match value.kind {
            ValueKind::I64(number) => ValueKind::String(format!("{number} {unit}")),
            kind => kind,
        };
        let shown = Value::new(None, kind.clone());
        warnings.push(format!("`{section}.{former}` is now `{section}.{name}`; write {name} = \"{shown}\""));
        table.insert(name.to_owned(), Value::new(origin.as_ref(), kind));
    }
    for path in REMOVED {
        let Some((section, name)) = path.rsplit_once('.') else { continue };
        if table_at(settings, section).and_then(|table| table.remove(name)).is_some() {
            warnings.push(format!("`{path}` is no longer a setting and has no effect; remove it"));
        }
    }
    Ok(warnings)
}

/// Returns the table of a section.
fn table_at<'a>(settings: &'a mut Map<String, Value>, section: &str) -> Option<&'a mut Map<String, Value>> {
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
    fn a_former_name_sets_the_new_setting_with_its_unit() {
        let text = "[http]\nbody_timeout_s = 7\npage_bytes = 1\n[store]\ncache = \"1 MiB\"\n[search.embedding]\ntimeout_ms = 8";
        let (mut settings, warnings) = adopted(text).expect("settings");
        let http = table_at(&mut settings, "http").expect("a section");
        assert_eq!(http.get("body_timeout").map(ToString::to_string).as_deref(), Some("7 s"));
        assert_eq!(http.len(), 1);
        assert_eq!(
            warnings,
            [
                "`http.body_timeout_s` is now `http.body_timeout`; write body_timeout = \"7 s\"",
                "`search.embedding.timeout_ms` is now `search.embedding.timeout`; write timeout = \"8 ms\"",
                "`http.page_bytes` is no longer a setting and has no effect; remove it",
            ]
        );
    }

    #[test]
    fn both_names_of_a_setting_are_an_error() {
        let refused = adopted("[store]\ncache_bytes = 1\ncache = \"1 MiB\"").expect_err("both").to_string();
        assert_eq!(refused, "`store.cache_bytes` is the former name of `store.cache`, which is set as well");
    }

    #[test]
    fn every_new_name_is_a_setting_and_no_former_name_is() {
        let shipped: toml::Table = toml::from_str(crate::config::DEFAULTS).expect("the shipped configuration");
        let shipped = toml::Value::Table(shipped);
        let is_setting = |path: String| path.split('.').try_fold(&shipped, |table, name| table.get(name)).is_some();
        for (section, former, name, _) in RENAMED {
            assert!(is_setting(format!("{section}.{name}")), "{section}.{name}");
            assert!(!is_setting(format!("{section}.{former}")), "{section}.{former}");
            assert!(is_former(&[section, former]) || section.contains('.'), "{section}.{former}");
        }
        for path in REMOVED {
            assert!(!is_setting(path.to_owned()), "{path}");
        }
    }
}
