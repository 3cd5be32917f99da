//! Scripted plugins: folders with a manifest, functions in rhai and test cases. Scripts run in a sandbox.
//!
//! A script is a function from data to data, and is compiled and checked once. A call runs on the caller's thread
//! within the script's limits, and the result of the call is checked strictly.
//!
//! The host adds the limits that rhai lacks:
//!
//! * rhai does not measure the values that `map[key] = value` adds. `variables.rs` measures a variable when it is used.
//! * A function of the language may create a huge value in one call. `bounded_functions.rs` replaces such functions.
//! * Dropping a nested value is recursive and may need much stack. Therefore, a call has 64 MiB of stack, and closures
//!   cannot capture one another, because such closures could nest without limit.
//! * A regular expression may be expensive. Its automaton stops with an error if the cost exceeds a limit.

mod absent;
mod bounded_functions;
pub mod case;
mod check;
mod convert;
pub mod declaration;
mod failure;
mod functions;
mod guard;
mod input;
mod result;
mod sandbox;
#[cfg(test)]
mod steps_tests;
mod variables;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldwork_engine::hook::{
    EnrichInput, Failure, Hook, HookOutput, Outcome, Plugin, PluginDescription, RouteInput, ScriptSource, ToolInput,
    WorkInput,
};
use foldwork_engine::model::facts::{Assignment, Facts, Product};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::Violation;
use rhai::{AST, Dynamic, Engine, ImmutableString, Scope};

use self::absent::ScriptNames;
use self::guard::Guard;
use crate::error::LoadError;
use crate::folder::{MANIFEST, PluginFolder};
use crate::limits::CallLimits;
use crate::manifest::{Manifest, ToolSchemas, merged};

/// The minimum stack of a call, in bytes. Nested values of a script are traversed and dropped recursively.
const STACK_BYTES: usize = 64 << 20;

/// A scripted plugin that is ready to be called.
#[derive(Clone)]
pub struct Script {
    about: PluginDescription,
    source: ScriptSource,
    /// The settings in the form in which the script receives them.
    settings: Dynamic,
    limits: CallLimits,
    /// The schemas of a plugin with the hook `tool`. `None` for other plugins.
    schemas: Option<Arc<ToolSchemas>>,
    program: Arc<ScriptProgram>,
}

/// The parts of a scripted plugin that do not depend on the settings.
struct ScriptProgram {
    engine: Engine,
    hooks: Vec<(Hook, HookBody)>,
}

/// The function of a hook: the names of its parameters, and its body, which is a separate program. If the body were
/// called as a function, the interpreter could not report the position at which the script was stopped.
struct HookBody {
    parameters: Vec<ImmutableString>,
    ast: AST,
}

impl Script {
    /// Reads, compiles and checks the plugin of a folder. Does not run the plugin's cases; [`case::run`] runs them.
    pub fn load(folder: &PluginFolder, limits: CallLimits) -> Result<Script, LoadError> {
        Script::load_with(folder, limits, |_| {})
    }

    /// Loads a plugin like [`Script::load`]. Lowers the limits of the plugin to `most`, if `most` is given.
    pub(crate) fn load_within(
        folder: &PluginFolder,
        limits: CallLimits,
        most: Option<CallLimits>,
    ) -> Result<Script, LoadError> {
        let mut manifest = Manifest::read(folder, limits)?;
        if let Some(most) = most {
            manifest.limits = manifest.limits.at_most(most);
        }
        Script::compile(folder, manifest, |_| {})
    }

    /// Loads a plugin like [`Script::load`]. `extend` registers additional host functions.
    pub fn load_with(
        folder: &PluginFolder,
        limits: CallLimits,
        extend: impl FnOnce(&mut Engine),
    ) -> Result<Script, LoadError> {
        Script::compile(folder, Manifest::read(folder, limits)?, extend)
    }

    fn compile(
        folder: &PluginFolder,
        manifest: Manifest,
        extend: impl FnOnce(&mut Engine),
    ) -> Result<Script, LoadError> {
        let Manifest { about, limits, schemas } = manifest;
        let mut engine = sandbox::engine(&about.name, &limits);
        extend(&mut engine);
        let hooks = on_large_stack(|| check::compile(&engine, folder, &about))?;
        let settings = Dynamic::from_map(convert::to_map(&about.settings));
        let schemas = schemas.map(Arc::new);
        let source = ScriptSource {
            name: about.name.clone(),
            manifest: folder.manifest.as_str().into(),
            script: folder.script.as_str().into(),
            settings: Object::new(),
        };
        Ok(Script { about, source, settings, limits, schemas, program: Arc::new(ScriptProgram { engine, hooks }) })
    }

    /// Returns the plugin with some of its settings overridden.
    pub fn with_settings(&self, overrides: &Object) -> Result<Script, LoadError> {
        let settings = merged(&self.about.settings, overrides).map_err(|(message, hint)| {
            let location = format!("[plugins.{}]", self.about.name);
            let known = format!("{message} (settings are declared in {MANIFEST} under [settings])");
            LoadError::new(location, known).with_hint(hint)
        })?;
        let mut script = self.clone();
        script.settings = Dynamic::from_map(convert::to_map(&settings));
        script.about.settings = settings;
        script.source.settings = overrides.clone();
        Ok(script)
    }

    /// Returns the limits of each call.
    pub fn limits(&self) -> CallLimits {
        self.limits
    }

    /// Returns the plugin with its deadline multiplied by `times`.
    fn with_deadline_factor(&self, times: u64) -> Script {
        let deadline_ms = self.limits.deadline_ms.saturating_mul(times);
        Script { limits: CallLimits { deadline_ms, ..self.limits }, ..self.clone() }
    }

    /// Returns the names that messages about a hook's failure may contain.
    fn names<'a>(&'a self, body: &'a HookBody) -> ScriptNames<'a> {
        // The last parameter of every hook is the settings.
        let settings_name = body.parameters.last().map_or("", |name| name.as_str());
        ScriptNames { ast: &body.ast, settings_name, settings: &self.about.settings }
    }

    /// Calls a hook's function within the limits, and reads the result with `read`.
    fn call<T, const N: usize>(
        &self,
        hook: Hook,
        now_ms: i64,
        arguments: impl FnOnce() -> [Dynamic; N],
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Outcome<T> {
        let (ScriptProgram { engine, hooks }, limits) = (&*self.program, &self.limits);
        let Some((_, body)) = hooks.iter().find(|(of, _)| *of == hook) else {
            return Err(failure::of_result(format!("the plugin has no hook '{}'", hook.name())));
        };
        let run = || {
            let guard = Guard::begin(limits, now_ms);
            let mut scope = Scope::new();
            let arguments = arguments();
            variables::begin(&arguments);
            for (name, argument) in body.parameters.iter().zip(arguments) {
                scope.push_dynamic(name.clone(), argument);
            }
            let called = engine.eval_ast_with_scope::<Dynamic>(&mut scope, &body.ast);
            let operations = Guard::operations();
            let value =
                called.map_err(|error| failure::of_error(*error, limits, &self.names(body))).and_then(|returned| {
                    let returned = result::value_of(&returned, hook, limits);
                    returned.and_then(|value| read(&value)).map_err(failure::of_result)
                });
            drop(guard);
            value.map(|value| HookOutput { value, operations })
        };
        // A panic leaves no broken state. The engine and the program are never written, except for the cache of
        // compiled patterns, which stays valid. All other values are dropped with the call.
        on_large_stack(|| catch_unwind(AssertUnwindSafe(run)))
            .unwrap_or_else(|payload| Err(failure::of_panic(&*payload)))
    }
}

fn on_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_BYTES, STACK_BYTES, run)
}

impl Plugin for Script {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn source(&self) -> Option<&ScriptSource> {
        Some(&self.source)
    }

    fn enrich(&self, call: &EnrichInput<'_>) -> Outcome<Facts> {
        let arguments =
            || [input::event(call.event), input::state(call.aggregate, call.definition), self.settings.clone()];
        let event_type = &call.event.aggregate_type;
        self.call(Hook::Enrich, call.event.occurred_at, arguments, |value| result::facts::read(value, event_type))
    }

    fn route(&self, call: &RouteInput<'_>) -> Outcome<Vec<Assignment>> {
        let arguments = || {
            [
                input::event(call.event),
                input::state(call.aggregate, call.definition),
                Dynamic::from_map(convert::to_map(&call.aggregate.facts)),
                input::aggregate_type(call.definition),
                input::list(call.agents),
                self.settings.clone(),
            ]
        };
        self.call(Hook::Route, call.event.occurred_at, arguments, result::assignments::read)
    }

    fn work(&self, call: &WorkInput<'_>) -> Outcome<Product> {
        let arguments = || {
            [
                convert::to_dynamic(call.task),
                input::list(call.messages),
                call.aggregate.map_or(Dynamic::UNIT, convert::to_dynamic),
                input::list(call.related),
                self.settings.clone(),
            ]
        };
        let aggregate_type = call.aggregate.and_then(|state| state.get("aggregate_type")).and_then(Value::as_str);
        self.call(Hook::Work, call.now_ms, arguments, |value| result::product::read(value, aggregate_type))
    }

    fn check_arguments(&self, arguments: &Object) -> Vec<Violation> {
        let (Some(schemas), Ok(arguments)) = (&self.schemas, serde_json::to_value(arguments)) else {
            return Vec::new();
        };
        schemas.input.violations(&arguments)
    }

    fn tool(&self, call: &ToolInput<'_>) -> Outcome<Object> {
        let arguments =
            || [Dynamic::from_map(convert::to_map(call.arguments)), input::list(call.rows), self.settings.clone()];
        let schema = self.schemas.as_ref().and_then(|schemas| schemas.output.as_ref());
        self.call(Hook::Tool, call.now_ms, arguments, |value| result::tool::read(value, schema))
    }
}

/// Converts a failure of a script to an error with the script's path and the failure's position.
pub(crate) fn located(folder: &PluginFolder, failure: &Failure) -> LoadError {
    LoadError {
        line: failure.line.map(|line| line as usize),
        column: failure.column.map(|column| column as usize),
        ..LoadError::new(folder.file(crate::folder::SCRIPT), &failure.message)
    }
}
