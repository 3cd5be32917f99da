//! Runs a plugin's cases from `cases.toml`. A case consists of an input for a hook and the expected result. Cases need
//! no server.

mod case_input;

use foldwork_engine::hook::{Hook, Plugin};
use foldwork_engine::model::value::{Object, Value};
use serde::Deserialize;
use toml::Spanned;

use self::case_input::CaseInput;
use super::{Script, functions, located, result};
use crate::error::LoadError;
use crate::folder::{CASES, PluginFolder};
use crate::manifest::{line_and_column, refusal};

/// The outcome of one case.
#[derive(Debug)]
pub struct CaseOutcome {
    pub name: String,
    pub failure: Option<LoadError>,
    /// The lines that the script logged or printed.
    pub logged: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    #[serde(default)]
    case: Vec<Spanned<Case>>,
}

/// A case as it is written in `cases.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The name of the hook. Optional if the plugin has only one hook.
    hook: Option<String>,
    #[serde(default)]
    settings: Object,
    event: Option<Object>,
    state: Option<Object>,
    #[serde(default)]
    facts: Object,
    /// The traits of the aggregate's type.
    traits: Option<Vec<String>>,
    #[serde(default)]
    agents: Vec<Object>,
    task: Option<Object>,
    #[serde(default)]
    messages: Vec<Object>,
    #[serde(default)]
    related: Vec<Object>,
    #[serde(default)]
    arguments: Object,
    #[serde(default)]
    rows: Vec<Object>,
    expect: Option<Value>,
    /// A part of the message with which the hook must fail.
    error: Option<String>,
}

/// The factor by which deadlines are longer in cases. A case tests the result of a script, and must not fail because
/// the machine is busy.
const DEADLINE_FACTOR: u64 = 100;

/// Runs the cases of a folder with the manifest's settings, overridden by the settings of each case.
pub fn run(script: &Script, folder: &PluginFolder) -> Result<Vec<CaseOutcome>, LoadError> {
    let path = folder.file(CASES);
    let script = &script.with_deadline_factor(DEADLINE_FACTOR);
    let file: CaseFile = toml::from_str(&folder.cases).map_err(|error| refusal(&path, &folder.cases, &error))?;
    let outcomes = file.case.into_iter().map(|case| {
        let (line, _) = line_and_column(&folder.cases, case.span().start);
        let case = case.into_inner();
        let name = case.name.clone();
        let (checked, logged) = functions::capture(|| case.check(script, folder));
        let failure = checked.err().map(|message| LoadError {
            line: Some(line),
            ..LoadError::new(&path, format!("the case '{name}' fails: {message}"))
        });
        CaseOutcome { name, failure, logged }
    });
    Ok(outcomes.collect())
}

impl Case {
    /// Runs the case. Fails with a message if the hook does not return the expected result or failure, or if the case
    /// itself is invalid.
    fn check(self, script: &Script, folder: &PluginFolder) -> Result<(), String> {
        let expectation = match (&self.expect, &self.error) {
            (Some(expect), None) => Ok(expect.clone()),
            (None, Some(error)) => Err(error.clone()),
            _ => return Err("exactly one of `expect` and `error` is required".into()),
        };
        let (hook, returned) = self.returned(script, folder)?;
        match (expectation, returned) {
            (Ok(expectation), Ok(returned)) => match expected(hook, &expectation) {
                Ok(expectation) => difference(&expectation, &returned).map_or(Ok(()), Err),
                Err(wrong) => Err(format!("the expected value is not a valid result: {wrong}")),
            },
            (Ok(_), Err(message)) => Err(message),
            (Err(error), Ok(returned)) => {
                Err(format!("expected a failure with '{error}', but the hook returned\n{}", pretty(&returned)))
            }
            (Err(error), Err(message)) if message.contains(&error) => Ok(()),
            (Err(error), Err(message)) => {
                Err(format!("expected a failure with '{error}', but the hook failed with\n{message}"))
            }
        }
    }

    /// Returns the hook of the case, with the hook's result or the message of the failure. Returns an error if the case
    /// itself is invalid.
    fn returned(self, script: &Script, folder: &PluginFolder) -> Result<(Hook, Result<Value, String>), String> {
        let hook = self.hook(script)?;
        let script = script.with_settings(&self.settings).map_err(|error| error.to_string())?;
        let failed = |failure| located(folder, &failure).to_string();
        let given = CaseInput::of(self, script.about())?;
        let script = &script;
        let returned = match hook {
            Hook::Enrich => script.enrich(&given.enrich(script.about())?).map(|outcome| Value::from(&outcome.value)),
            Hook::Route => script.route(&given.route(script.about())?).map(|outcome| outcome.value.iter().collect()),
            Hook::Work | Hook::Mount => script.work(&given.work()).map(|outcome| Value::from(&outcome.value)),
            Hook::Tool => match given.refused_arguments(script) {
                Some(refused) => return Ok((hook, Err(refused))),
                None => script.tool(&given.tool()).map(|outcome| Value::from(outcome.value)),
            },
        };
        Ok((hook, returned.map(canonical).map_err(failed)))
    }

    fn hook(&self, script: &Script) -> Result<Hook, String> {
        let hooks = &script.about().hooks;
        match (&self.hook, hooks.as_slice()) {
            (None, [hook]) => Ok(*hook),
            (None, _) => Err("the case must name its hook, because the plugin has several hooks".into()),
            (Some(name), _) => {
                let hook = hooks.iter().find(|hook| hook.name() == name);
                hook.copied().ok_or_else(|| format!("the plugin has no hook '{name}'"))
            }
        }
    }
}

/// Reads an expected value with the same checks as the result of a hook, except for the checks that need the type of
/// the aggregate or the schema of the tool's output.
fn expected(hook: Hook, value: &Value) -> Result<Value, String> {
    Ok(canonical(match hook {
        Hook::Enrich => {
            // The hook's result was already checked for the type prefix of its events, so any prefix is accepted here.
            // All expected events must have the prefix of the first one.
            let prefix = value.get("events").and_then(Value::as_array).and_then(|events| events.first());
            let prefix = prefix.and_then(|event| event.get("event_type")).and_then(Value::as_str).unwrap_or_default();
            Value::from(&result::facts::read(value, prefix.split('.').next().unwrap_or_default())?)
        }
        Hook::Route => result::assignments::read(value)?.iter().collect(),
        Hook::Work | Hook::Mount => Value::from(&result::product::read(value, None)?),
        Hook::Tool => result::tool::read(value, None)?.into(),
    }))
}

/// Returns the value with its fields in alphabetical order. Fields that are null or an empty list are removed, because
/// a case may omit such fields.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty);
            let fields = object.iter().map(|(name, value)| (name.clone(), canonical(value.clone())));
            let mut fields: Vec<_> = fields.filter(|(_, value)| !empty(value)).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.into_iter().collect::<Object>().into()
        }
        Value::Array(items) => items.iter().cloned().map(canonical).collect::<Vec<_>>().into(),
        other => other,
    }
}

/// Returns a comparison of the lines of two results, or `None` if the results are equal. From the first to the last
/// difference, the lines of the expected result begin with `-`, and the lines of the returned result begin with `+`.
fn difference(expected: &Value, returned: &Value) -> Option<String> {
    if expected == returned {
        return None;
    }
    let (expected, returned) = (pretty(expected), pretty(returned));
    let (expected, returned): (Vec<_>, Vec<_>) = (expected.lines().collect(), returned.lines().collect());
    let same = expected.iter().zip(&returned).take_while(|(a, b)| a == b).count();
    let tail = expected[same..].iter().rev().zip(returned[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    let lines = expected[..same].iter().map(|line| format!("  {line}"));
    let lines = lines.chain(expected[same..expected.len() - tail].iter().map(|line| format!("- {line}")));
    let lines = lines.chain(returned[same..returned.len() - tail].iter().map(|line| format!("+ {line}")));
    let lines = lines.chain(expected[expected.len() - tail..].iter().map(|line| format!("  {line}")));
    Some(format!("the result differs (- expected, + returned)\n{}", lines.collect::<Vec<_>>().join("\n")))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
