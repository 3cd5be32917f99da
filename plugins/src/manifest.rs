//! Reads the manifest of a scripted plugin, `plugin.toml`. Errors name the line and the column, except errors about
//! limits that are out of range.

mod tool;

use std::str::FromStr;

use foldwork_engine::hook::{Candidates, Hook, PluginAgent, PluginDescription, Subscription};
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::id::is_valid_name;
use foldwork_engine::model::value::Object;
use serde::Deserialize;
use strum::VariantArray;
use toml::Spanned;

use crate::error::LoadError;
use crate::folder::{MANIFEST, PluginFolder};
use crate::limits::{CallLimits, Overrides};
use crate::suggestion::{did_you_mean, hint};

pub(crate) use tool::ToolSchemas;

/// The hooks that a script can implement.
pub(crate) const SCRIPTED: [Hook; 4] = [Hook::Enrich, Hook::Route, Hook::Work, Hook::Tool];
const MAX_DESCRIPTION: usize = 1_000;

/// A manifest that has been read and checked.
#[derive(Debug)]
pub struct Manifest {
    pub about: PluginDescription,
    pub limits: CallLimits,
    /// The schemas of a plugin with the hook `tool`. `None` for other plugins.
    pub(crate) schemas: Option<ToolSchemas>,
}

/// The manifest as it is written in `plugin.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestText {
    name: Spanned<String>,
    version: Spanned<String>,
    description: Spanned<String>,
    hooks: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    on: ManifestTrigger,
    on_error: Option<Spanned<String>>,
    #[serde(default)]
    settings: Object,
    #[serde(default)]
    limits: Overrides,
    agent: Option<Spanned<Agent>>,
    route: Option<Spanned<ManifestRoute>>,
    tool: Option<Spanned<tool::ManifestTool>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ManifestTrigger {
    events: Vec<Spanned<String>>,
    traits: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    description: String,
    #[serde(default)]
    traits: Vec<Spanned<String>>,
    #[serde(default)]
    capabilities: Object,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestRoute {
    agents: Option<Spanned<String>>,
}

impl Manifest {
    /// Reads and checks the manifest of a plugin's folder. Limits in the manifest override the limits of the host.
    pub fn read(folder: &PluginFolder, host: CallLimits) -> Result<Manifest, LoadError> {
        let file = ManifestFile { path: folder.file(MANIFEST), text: &folder.manifest };
        let raw: ManifestText =
            toml::from_str(&folder.manifest).map_err(|error| refusal(&file.path, file.text, &error))?;
        if *raw.name.get_ref() != folder.name {
            let message =
                format!("the name '{}' differs from the folder's name, '{}'", raw.name.get_ref(), folder.name);
            return Err(file.at(raw.name.span().start, message));
        }
        if !is_valid_name(&folder.name) {
            return Err(file.at(raw.name.span().start, "a name must match [a-z][a-z0-9_-]{0,63}"));
        }
        for (text, what) in [(&raw.version, "version"), (&raw.description, "description")] {
            if text.get_ref().trim().is_empty() || text.get_ref().len() > MAX_DESCRIPTION {
                let message = format!("the {what} must have 1 to {MAX_DESCRIPTION} bytes, not only white space");
                return Err(file.at(text.span().start, message));
            }
        }
        let hooks = file.hooks(&raw.hooks)?;
        let agent = file.agent(raw.agent, &hooks, raw.hooks.span().start)?;
        let candidates = file.candidates(raw.route, &hooks)?;
        let (tool, schemas) = file.tool(raw.tool, &hooks, &raw.name, raw.hooks.span().start)?.unzip();
        let limits = raw.limits.over(host);
        limits.check().map_err(|message| LoadError::new(&file.path, format!("[limits] {message}")))?;
        let about = PluginDescription {
            name: folder.name.as_str().into(),
            version: raw.version.into_inner(),
            description: raw.description.into_inner(),
            hooks,
            on: file.subscription(&raw.on)?,
            on_error: file.choice("on_error", raw.on_error)?,
            settings: raw.settings,
            agent,
            tool,
            candidates,
        };
        Ok(Manifest { about, limits, schemas })
    }
}

/// Returns the default settings with the overrides applied. The manifest must declare each overridden setting, and the
/// override must have the type of the default.
pub(crate) fn merged(defaults: &Object, overrides: &Object) -> Result<Object, (String, Option<String>)> {
    let mut settings = defaults.clone();
    for (name, value) in overrides.iter() {
        let Some(default) = defaults.get(name) else {
            let known: Vec<&str> = defaults.keys().map(|name| &**name).collect();
            let hint = match did_you_mean(name, known.iter().copied()) {
                Some(hint) => hint,
                None if known.is_empty() => "the plugin has no settings".into(),
                None => format!("the settings are {}", known.join(", ")),
            };
            return Err((format!("the setting '{name}' is unknown"), Some(hint)));
        };
        if default.type_rank() != value.type_rank() {
            let (expected, found) = (default.type_name(), value.type_name());
            return Err((format!("the setting '{name}' is of type {found}, not {expected}"), None));
        }
        settings.insert(name.clone(), value.clone());
    }
    Ok(settings)
}

/// The path and text of a manifest. Error messages use both to name a line and column.
struct ManifestFile<'a> {
    path: String,
    text: &'a str,
}

impl ManifestFile<'_> {
    fn at(&self, offset: usize, message: impl Into<String>) -> LoadError {
        let (line, column) = line_and_column(self.text, offset);
        LoadError { line: Some(line), column: Some(column), ..LoadError::new(&self.path, message) }
    }

    fn hooks(&self, raw: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<Hook>, LoadError> {
        let mut hooks = Vec::new();
        for name in raw.get_ref() {
            let Some(hook) = SCRIPTED.into_iter().find(|hook| hook.name() == name.get_ref()) else {
                let error = self.at(name.span().start, format!("unknown hook '{}'", name.get_ref()));
                return Err(error.with_hint(hint(name.get_ref(), &SCRIPTED.map(Hook::name), "'")));
            };
            if hooks.contains(&hook) {
                return Err(self.at(name.span().start, format!("the hook '{}' is listed twice", hook.name())));
            }
            hooks.push(hook);
        }
        if hooks.is_empty() {
            return Err(self.at(raw.span().start, "a plugin needs at least one hook"));
        }
        Ok(hooks)
    }

    fn subscription(&self, on: &ManifestTrigger) -> Result<Subscription, LoadError> {
        for pattern in &on.events {
            if !is_pattern(pattern.get_ref()) {
                let message = format!("'{}' is not an event pattern", pattern.get_ref());
                let hint = "a pattern has the form article.created, article.*, *.created or *".to_owned();
                return Err(self.at(pattern.span().start, message).with_hint(hint));
            }
        }
        Ok(Subscription {
            events: on.events.iter().map(|pattern| pattern.get_ref().as_str().into()).collect(),
            traits: self.traits(&on.traits)?,
        })
    }

    fn traits(&self, raw: &[Spanned<String>]) -> Result<Vec<std::sync::Arc<str>>, LoadError> {
        match raw.iter().find(|name| !is_valid_name(name.get_ref())) {
            Some(name) => {
                let message = format!("'{}' is not a valid trait name", name.get_ref());
                let hint = "a trait name must match [a-z][a-z0-9_-]{0,63}".to_owned();
                Err(self.at(name.span().start, message).with_hint(hint))
            }
            None => Ok(raw.iter().map(|name| name.get_ref().as_str().into()).collect()),
        }
    }

    fn candidates(&self, raw: Option<Spanned<ManifestRoute>>, hooks: &[Hook]) -> Result<Candidates, LoadError> {
        let Some(route) = raw else { return Ok(Candidates::default()) };
        if !hooks.contains(&Hook::Route) {
            return Err(self.at(route.span().start, "a [route] table requires the hook 'route'"));
        }
        self.choice("agents", route.into_inner().agents)
    }

    /// Converts the value of `key` in the manifest to a member of a closed set. Returns the default if the key is
    /// missing.
    fn choice<T: VariantArray + Copy + Default + FromStr + Into<&'static str>>(
        &self,
        key: &str,
        raw: Option<Spanned<String>>,
    ) -> Result<T, LoadError> {
        let Some(raw) = raw else { return Ok(T::default()) };
        raw.get_ref().parse().map_err(|_| {
            let error = self.at(raw.span().start, format!("'{}' is not allowed for {key}", raw.get_ref()));
            error.with_hint(format!("allowed are {}", names::<T>().join(", ")))
        })
    }

    /// Reads the `[agent]` table. The table is required for plugins with the hook `work`, and not allowed for other
    /// plugins.
    fn agent(
        &self,
        raw: Option<Spanned<Agent>>,
        hooks: &[Hook],
        hooks_at: usize,
    ) -> Result<Option<PluginAgent>, LoadError> {
        match (raw, hooks.contains(&Hook::Work)) {
            (None, false) => Ok(None),
            (None, true) => Err(self.at(hooks_at, "a plugin with the hook 'work' needs an [agent] table")),
            (Some(agent), false) => Err(self.at(agent.span().start, "an [agent] table requires the hook 'work'")),
            (Some(agent), true) => {
                let Agent { description, traits, capabilities } = agent.into_inner();
                Ok(Some(PluginAgent { description, traits: self.traits(&traits)?, capabilities }))
            }
        }
    }
}

/// Returns whether a text is a pattern of event types, such as `article.created`, `article.*`, `*.created` or `*`.
fn is_pattern(text: &str) -> bool {
    let part = |part: &str| part == "*" || is_valid_name(part);
    match text.split_once('.') {
        Some((name, verb)) => part(name) && part(verb),
        None => text == "*",
    }
}

/// Converts a TOML error into a load error with the position of the TOML error.
pub(crate) fn refusal(path: &str, text: &str, error: &toml::de::Error) -> LoadError {
    let (line, column) = error.span().map(|span| line_and_column(text, span.start)).unzip();
    // For an unknown key, the message contains the unknown key and then all known keys, each in backticks.
    let quoted: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    let hint = match quoted.split_first() {
        Some((unknown, known)) if error.message().starts_with("unknown field") => {
            did_you_mean(unknown, known.iter().copied())
        }
        _ => None,
    };
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    LoadError { line, column, hint, ..LoadError::new(path, message) }
}

/// Returns the line and column of a byte offset in a text, both from 1.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let prefix = text.get(..offset).unwrap_or(text);
    let line_start = prefix.rfind('\n').map_or(0, |end| end + 1);
    (prefix.matches('\n').count() + 1, prefix[line_start..].chars().count() + 1)
}
