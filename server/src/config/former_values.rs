//! Former settings that are now a part of other settings. Their values apply for one release, with a warning.
//!
//! Values of two sources may belong together, such as a filter of the log in a file and a former setting of the log in
//! the environment. Such values are therefore collected from all sources and applied last. Only the former settings of
//! the embeddings become a `url` in a source, as soon as that source and earlier sources contain all required values.

use anyhow::{Context as _, bail};
use config::{Map, Value, ValueKind};

use super::Config;
use super::access::{Issuer, OfferedPlan};
use super::former_names::{remove, table_at};

/// The former settings, as `section.name`.
const NAMES: [&str; 5] =
    ["dashboard.oidc_issuer", "log.access", "plans.default", "search.embedding.kind", "search.embedding.path"];
/// The section of the former settings `kind` and `path`. The setting `url` of the same section replaces both.
const EMBEDDING: &str = "search.embedding";

/// Returns whether a path names a former setting that is now a part of another setting, such as `log.access` of
/// `log.filter`.
pub fn is_former(path: &[&str]) -> bool {
    NAMES.contains(&&*path.join("."))
}

/// The values of former settings, collected from all sources.
#[derive(Debug, Default)]
pub struct FormerValues {
    /// Whether requests are logged.
    access_log: Option<bool>,
    /// The id of the plan for users without an assigned plan.
    default_plan: Option<String>,
    /// The identity provider with which the dashboard signs users in.
    dashboard_issuer: Option<String>,
    embedding: FormerEmbedding,
}

/// The values that the sources have set so far for the former settings `kind` and `path` of the embeddings, and for the
/// setting `url`. A value that no source has set is empty.
#[derive(Debug, Default)]
struct FormerEmbedding {
    kind: String,
    path: String,
    url: String,
}

impl FormerValues {
    /// Removes the former settings from the settings of one source, and stores their values. The values of a later
    /// source override the values of an earlier source. Returns a warning for each former setting that the source sets.
    ///
    /// # Errors
    ///
    /// Fails if a value is not valid.
    pub fn take(&mut self, settings: &mut Map<String, Value>) -> anyhow::Result<Vec<String>> {
        let mut warnings = Vec::new();
        if let Some(value) = remove(settings, "log.access") {
            let is_on = value.into_bool().context("`log.access`: expected true or false")?;
            self.access_log = Some(is_on);
            let advice = match is_on {
                true => "remove `log.access`",
                false => "append \",foldwork::access=off\" to `log.filter` and remove `log.access`",
            };
            warnings.push(format!("`log.access` is now part of `log.filter`; {advice}"));
        }
        if let Some(value) = remove(settings, "plans.default") {
            let id = value.to_string();
            warnings.push(format!("`plans.default` is now the first of `plans.offered`; put the plan '{id}' first"));
            self.default_plan = Some(id);
        }
        if let Some(value) = remove(settings, "dashboard.oidc_issuer") {
            let issuer = value.to_string();
            let advice = match issuer.trim() {
                "" => "remove `dashboard.oidc_issuer`".to_owned(),
                issuer => format!("put the issuer '{issuer}' first"),
            };
            warnings.push(format!("`dashboard.oidc_issuer` is now the first of `auth.issuers`; {advice}"));
            self.dashboard_issuer = Some(issuer);
        }
        warnings.extend(self.embedding.take(settings)?);
        Ok(warnings)
    }

    /// Applies the values to the configuration that is merged from all sources.
    ///
    /// # Errors
    ///
    /// Fails if the former default plan is not in `plans.offered`, if the former issuer of the dashboard is not in
    /// `auth.issuers`, or if the former kind of embedding requires a folder or a URL that no source has.
    pub fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        if self.access_log == Some(false) {
            config.log.hide_requests();
        }
        if let Some(id) = self.default_plan {
            let is_default = |plan: &OfferedPlan| plan.id == id;
            if !put_first(&mut config.plans.offered, is_default) {
                bail!("`plans.default` is now the first of `plans.offered`, which has no plan '{id}'");
            }
        }
        if let Some(url) = self.dashboard_issuer.filter(|url| !url.trim().is_empty()) {
            let shortened = |url: &str| url.trim().trim_end_matches('/').to_owned();
            let is_provider = |issuer: &Issuer| shortened(&issuer.issuer) == shortened(&url);
            if !put_first(&mut config.auth.issuers, is_provider) {
                bail!("`dashboard.oidc_issuer` is now the first of `auth.issuers`, which has no issuer '{url}'");
            }
        }
        self.embedding.check(&config.search.embedding.url)
    }
}

impl FormerEmbedding {
    /// Replaces the former settings `kind` and `path` in the settings of one source with a `url` of the same meaning.
    /// For a value that this source lacks, uses the value of an earlier source. Sets no `url` while `kind` or a
    /// required `path` is missing, because a later source may contain the missing value. Returns a warning if the
    /// source has a `kind` or a `path`.
    fn take(&mut self, settings: &mut Map<String, Value>) -> anyhow::Result<Option<String>> {
        let Some(table) = table_at(settings, EMBEDDING) else { return Ok(None) };
        if let Some(url) = table.get("url") {
            self.url = url.to_string();
        }
        let (kind, path) = (table.remove("kind"), table.remove("path"));
        if kind.is_none() && path.is_none() {
            return Ok(None);
        }
        for (value, given) in [(&mut self.kind, kind), (&mut self.path, path)] {
            if let Some(given) = given {
                *value = given.to_string();
            }
        }
        let url = match (self.kind.as_str(), self.path.as_str()) {
            ("off", _) => Some(String::new()),
            ("http", _) => Some(self.url.clone()),
            ("local", folder) if !folder.is_empty() => Some(format!("file://{folder}")),
            // A later source may have the kind or the path.
            ("" | "local", _) => None,
            (kind, _) => {
                bail!(
                    "`{EMBEDDING}.kind` is now part of `{EMBEDDING}.url`; expected off, local or http, found '{kind}'"
                )
            }
        };
        let url = url.filter(|url| table.get("url").is_none_or(|given| given.to_string() != *url));
        let now = format!("`{EMBEDDING}.kind` and `{EMBEDDING}.path` are now part of `{EMBEDDING}.url`");
        Ok(Some(match url {
            Some(url) => {
                let warning = format!("{now}; write url = \"{url}\"");
                table.insert("url".to_owned(), Value::new(None, ValueKind::String(url)));
                warning
            }
            None => format!("{now}; remove them"),
        }))
    }

    /// Fails if the former kind requires a folder or a URL, and the merged settings contain none. `url` is the URL in
    /// the merged settings.
    fn check(&self, url: &str) -> anyhow::Result<()> {
        match self.kind.as_str() {
            "local" if self.path.is_empty() && !url.starts_with("file://") => {
                bail!("`{EMBEDDING}.kind` is no longer a setting; write url = \"file://FOLDER\"")
            }
            "http" if url.is_empty() => {
                bail!("`{EMBEDDING}.kind` is no longer a setting; set `{EMBEDDING}.url` to the URL of the service")
            }
            _ => Ok(()),
        }
    }
}

/// Moves the first item with a property to the front of a list. Returns whether the list contains such an item.
fn put_first<T>(items: &mut [T], is_wanted: impl Fn(&T) -> bool) -> bool {
    let found = items.iter().position(is_wanted);
    if let Some(index) = found {
        items[..=index].rotate_right(1);
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use config::{File, FileFormat, Source};

    use super::super::text_layer;
    use super::*;

    fn taken(text: &str) -> anyhow::Result<Vec<String>> {
        FormerValues::default().take(&mut File::from_str(text, FileFormat::Toml).collect()?)
    }

    #[test]
    fn no_former_setting_is_in_the_shipped_configuration() {
        let shipped: toml::Table = toml::from_str(crate::config::DEFAULTS).expect("the shipped configuration");
        let shipped = toml::Value::Table(shipped);
        for path in NAMES {
            let found = path.split('.').try_fold(&shipped, |table, name| table.get(name));
            assert!(found.is_none() && is_former(&path.split('.').collect::<Vec<_>>()), "{path}");
        }
    }

    #[test]
    fn the_filter_of_the_log_replaces_the_switch_of_the_access_log() {
        let filter = |text: &str| Config::parse(&format!("[log]\n{text}")).map(|config| config.log.filter);
        let off = filter("access = false\nfilter = \"warn\"\n").expect("a configuration");
        assert_eq!(off, "warn,foldwork::access=off");
        assert_eq!(filter("access = true\nfilter = \"warn\"\n").expect("a configuration"), "warn");
        assert!(filter("access = \"maybe\"\n").is_err_and(|error| error.to_string().contains("`log.access`")));
        let warnings = taken("[log]\naccess = false\n").expect("settings");
        assert_eq!(
            warnings,
            [
                "`log.access` is now part of `log.filter`; append \",foldwork::access=off\" to `log.filter` and remove `log.access`"
            ]
        );
    }

    #[test]
    fn the_former_setting_plans_default_selects_the_first_offered_plan() {
        let plans =
            "[[plans.offered]]\nid = \"free\"\n[[plans.offered]]\nid = \"pro\"\n[[plans.offered]]\nid = \"team\"\n";
        let ids = |default: &str| {
            let config = Config::parse(&format!("[plans]\n{default}{plans}"));
            config.map(|config| config.plans.offered.into_iter().map(|plan| plan.id).collect::<Vec<_>>())
        };
        assert_eq!(ids("").expect("plans"), ["free", "pro", "team"]);
        assert_eq!(ids("default = \"pro\"\n").expect("plans"), ["pro", "free", "team"]);
        assert!(ids("default = \"none\"\n").is_err_and(|error| error.to_string().contains("no plan 'none'")));
        let warnings = taken("[plans]\ndefault = \"pro\"\n").expect("settings");
        assert_eq!(warnings, ["`plans.default` is now the first of `plans.offered`; put the plan 'pro' first"]);
    }

    #[test]
    fn the_issuer_named_by_the_former_dashboard_setting_becomes_the_first_issuer() {
        let issuers = "[[auth.issuers]]\nissuer = \"https://one/\"\n[[auth.issuers]]\nissuer = \"https://two/\"\n";
        let first = |dashboard: &str| {
            let config = Config::parse(&format!("[dashboard]\n{dashboard}{issuers}"));
            config.map(|config| config.auth.issuers[0].issuer.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(first("oidc_issuer = \"\"\n"), Ok("https://one/".to_owned()));
        assert_eq!(first("oidc_issuer = \"https://two\"\n"), Ok("https://two/".to_owned()));
        assert!(
            first("oidc_issuer = \"https://three\"\n").is_err_and(|error| error.contains("no issuer 'https://three'"))
        );
    }

    #[test]
    fn the_embedding_url_replaces_the_former_kind_and_path() {
        let url = |text: &str| {
            let config = Config::parse(&format!("[search.embedding]\n{text}"));
            config.map(|config| config.search.embedding.url).map_err(|error| error.to_string())
        };
        let service = "url = \"https://api.example.com/v1\"\n";
        assert_eq!(url("kind = \"local\"\npath = \"models/small\"\n"), Ok("file://models/small".into()));
        assert_eq!(url(&format!("kind = \"http\"\npath = \"\"\n{service}")), Ok("https://api.example.com/v1".into()));
        assert_eq!(url(&format!("kind = \"off\"\n{service}")), Ok(String::new()));
        assert!(url("kind = \"local\"\n").is_err_and(|error| error.contains("url = \"file://FOLDER\"")));
        assert!(url("kind = \"http\"\n").is_err_and(|error| error.contains("the URL of the service")));
        assert!(url("kind = \"htp\"\n").is_err_and(|error| error.contains("expected off, local or http, found 'htp'")));
        let warnings = taken("[search.embedding]\nkind = \"local\"\npath = \"m\"\n").expect("settings");
        assert_eq!(
            warnings,
            [
                "`search.embedding.kind` and `search.embedding.path` are now part of `search.embedding.url`; write url = \
              \"file://m\""
            ]
        );
    }

    #[test]
    fn a_warning_states_whether_a_former_name_comes_from_the_environment() {
        let file = text_layer("[store]\npulse = \"1 s\"\n[log]\naccess = true\n").expect("TOML");
        let variable = |name: &str, value: &str| (format!("FOLDWORK_{name}"), value.to_owned());
        let variables = [variable("HTTP__STOP_DELAY_S", "7"), variable("PLANS__DEFAULT", "unlimited")];
        let config = Config::with_variables(file, &variables).expect("a configuration");
        assert_eq!(
            config.former_names,
            [
                "`store.pulse` is no longer a setting and has no effect; remove it",
                "`log.access` is now part of `log.filter`; remove `log.access`",
                "in the environment: `http.stop_delay_s` is now `http.stop_delay`; write stop_delay = \"7 s\"",
                "in the environment: `plans.default` is now the first of `plans.offered`; put the plan 'unlimited' first",
            ]
        );
    }

    #[test]
    fn former_embedding_settings_from_the_file_and_the_environment_are_combined() {
        let url = |file: &str, name: &str, value: &str| {
            let variable = (format!("FOLDWORK_SEARCH__EMBEDDING__{name}"), value.to_owned());
            let file = text_layer(&format!("[search.embedding]\n{file}")).expect("TOML");
            Config::with_variables(file, &[variable]).expect("a configuration").search.embedding.url
        };
        let service = "https://api.example.com/v1";
        assert_eq!(url("kind = \"local\"\n", "PATH", "m"), "file://m");
        assert_eq!(url("kind = \"local\"\npath = \"m\"\n", "PATH", "n"), "file://n");
        assert_eq!(url(&format!("kind = \"off\"\nurl = \"{service}\"\n"), "KIND", "http"), service);
        // A URL in a later source overrides former settings.
        assert_eq!(url("kind = \"off\"\npath = \"\"\nurl = \"\"\n", "URL", service), service);
    }
}
