//! Settings of plugins: the list of enabled plugins, common settings, and for each plugin a table `[plugins.<name>]`
//! that overrides settings in the section `[settings]` of the plugin's manifest.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use foldwork_engine::model::value::Object;
use foldwork_plugins::limits::CallLimits;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::TimeSpan;

/// Settings of plugins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plugins {
    /// The names of the enabled plugins, in the order in which their hooks are called.
    pub enabled: Vec<String>,
    pub folder: String,
    /// Whether a plugin is reloaded when its files change.
    pub watch: bool,
    /// The limits of each call. Among the limits, only the deadline is a setting, because the duration of a call
    /// depends on the machine. A plugin that needs other limits declares them in its manifest.
    #[serde(rename = "deadline", serialize_with = "deadline")]
    pub limits: CallLimits,
    /// The settings of each plugin, from the tables `[plugins.<name>]`.
    #[serde(flatten)]
    pub settings: BTreeMap<String, Object>,
}

/// Serializes the limits as the deadline, the only limit that is a setting.
fn deadline<S: Serializer>(limits: &CallLimits, serializer: S) -> Result<S::Ok, S::Error> {
    TimeSpan(Duration::from_millis(limits.deadline_ms)).serialize(serializer)
}

// `Deserialize` is not derived, so that the error for a plugin's table names the table.
impl<'de> Deserialize<'de> for Plugins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Plugins, D::Error> {
        deserializer.deserialize_map(Section)
    }
}

struct Section;

impl<'de> Visitor<'de> for Section {
    type Value = Plugins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of plugins")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plugins, A::Error> {
        let (mut enabled, mut folder, mut watch, mut deadline) = Default::default();
        let mut settings = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "enabled" => enabled = Some(map.next_value::<Names>()?.0),
                "folder" => folder = Some(map.next_value()?),
                "watch" => watch = Some(map.next_value()?),
                "deadline" => deadline = Some(map.next_value::<TimeSpan>()?),
                _ => {
                    let wrong = |error| {
                        A::Error::custom(format_args!("[plugins] {key} is neither a setting nor a table: {error}"))
                    };
                    let table = map.next_value::<Object>().map_err(wrong)?;
                    settings.insert(key, table);
                }
            }
        }
        let missing = A::Error::missing_field;
        let deadline_ms = deadline.ok_or_else(|| missing("deadline"))?.millis();
        if deadline_ms == 0 {
            return Err(A::Error::custom("[plugins] deadline must be at least 1 ms"));
        }
        Ok(Plugins {
            enabled: enabled.ok_or_else(|| missing("enabled"))?,
            folder: folder.ok_or_else(|| missing("folder"))?,
            watch: watch.ok_or_else(|| missing("watch"))?,
            limits: CallLimits { deadline_ms, ..CallLimits::default() },
            settings,
        })
    }
}

/// A list of names, or a text with names that are separated by commas.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        deserializer.deserialize_any(Names(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Names {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of plugin names")
    }

    fn visit_str<E>(self, text: &str) -> Result<Names, E> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Names(names.map(str::to_owned).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut names: A) -> Result<Names, A::Error> {
        while let Some(name) = names.next_element()? {
            self.0.push(name);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(text: &str) -> anyhow::Result<Plugins> {
        Ok(Config::parse(&format!("[plugins]\n{text}"))?.plugins)
    }

    #[test]
    fn the_plugins_section_has_common_settings_and_a_table_for_each_plugin() {
        let text = "enabled = [\"linker\"]\ndeadline = \"7 ms\"\n[plugins.linker]\nkind = \"cites\"\n";
        let plugins = parsed(text).expect("settings");
        assert_eq!(plugins.enabled, ["linker"]);
        assert_eq!(plugins.limits, CallLimits { deadline_ms: 7, ..CallLimits::default() });
        assert_eq!(plugins.settings["linker"].get("kind").and_then(|kind| kind.as_str()), Some("cites"));
        let again: Plugins = toml::from_str(&toml::to_string(&plugins).expect("TOML")).expect("settings");
        assert_eq!(again, plugins);
    }

    #[test]
    fn the_plugins_section_accepts_comma_separated_lists_and_rejects_invalid_settings() {
        let plugins = parsed("enabled = \"linker, trait_router\"").expect("settings");
        assert_eq!(plugins.enabled, ["linker", "trait_router"]);
        let refused = parsed("wach = true").expect_err("refused").to_string();
        assert!(refused.contains("[plugins] wach is neither a setting nor a table"), "{refused}");
        let refused = parsed("deadline = \"0 s\"").expect_err("refused").to_string();
        assert!(refused.contains("[plugins] deadline must be at least 1 ms"), "{refused}");
    }
}
