//! Checks a script before its first call: the syntax, the hooks, the settings that it reads, function calls and
//! closures.

use std::collections::{BTreeMap, BTreeSet};

use foldwork_engine::hook::{Hook, PluginDescription};
use rhai::{AST, ASTNode, Dynamic, Engine, Expr, FnCallExpr, ImmutableString, Position, Scope, Stmt};

use crate::error::LoadError;
use crate::folder::{PluginFolder, SCRIPT};
use crate::manifest::{SCRIPTED, line_and_column};
use crate::script::absent::{self, ScriptNames};
use crate::script::failure::lowered;
use crate::script::{HookBody, declaration};
use crate::suggestion::{did_you_mean, nearest};

/// The functions of the interpreter that a script must not call.
const FORBIDDEN: [&str; 5] = ["eval", "sleep", "curry", "exit", "get_fn_metadata_list"];
/// The functions that are built into the interpreter, each with its number of arguments.
const KEYWORDS: [(&str, usize); 6] =
    [("Fn", 1), ("is_def_fn", 2), ("is_def_var", 1), ("is_shared", 1), ("type_of", 1), ("print", 1)];
/// The functions that take a closure and do not store the closure.
const TAKE_CLOSURES: [&str; 18] = [
    "filter",
    "map",
    "for_each",
    "find",
    "find_map",
    "index_of",
    "some",
    "all",
    "sort",
    "sort_by",
    "reduce",
    "reduce_rev",
    "dedup",
    "drain",
    "retain",
    "order",
    "any",
    "none",
];

/// Returns the names of the parameters of a hook's function.
fn parameters(hook: Hook) -> &'static [&'static str] {
    match hook {
        Hook::Enrich => &["event", "state", "settings"],
        Hook::Route => &["event", "state", "facts", "aggregate_type", "agents", "settings"],
        Hook::Work => &["task", "messages", "state", "related", "settings"],
        Hook::Tool => &["arguments", "rows", "settings"],
        Hook::Mount => &[],
    }
}

/// Compiles the script of a plugin's folder into one program for each hook. Rejects a script that fails one of the
/// checks.
pub(super) fn compile(
    engine: &Engine,
    folder: &PluginFolder,
    about: &PluginDescription,
) -> Result<Vec<(Hook, HookBody)>, LoadError> {
    let hooks = &about.hooks;
    let script = ScriptText { path: folder.file(SCRIPT), text: &folder.script };
    let ast = engine
        .compile(&folder.script)
        .map_err(|error| script.at(error.position(), lowered(&error.err_type().to_string())))?;
    if let Some(statement) = ast.statements().iter().find(|statement| !matches!(statement, Stmt::Noop(_))) {
        return Err(script.at(statement.position(), "a script may only contain functions"));
    }
    script.hooks(&ast, hooks)?;
    script.calls(engine, &ast)?;
    hooks.iter().map(|hook| Ok((*hook, script.body(engine, &ast, *hook, about)?))).collect()
}

/// The path and text of a script. Error messages use both to name a line and column.
struct ScriptText<'a> {
    path: String,
    text: &'a str,
}

impl ScriptText<'_> {
    fn at(&self, position: Position, message: impl Into<String>) -> LoadError {
        LoadError { line: position.line(), column: position.position(), ..LoadError::new(&self.path, message) }
    }

    fn hooks(&self, ast: &AST, hooks: &[Hook]) -> Result<(), LoadError> {
        for hook in SCRIPTED {
            let params = parameters(hook);
            let signature = format!("fn {}({})", hook.name(), params.join(", "));
            let defined: Vec<usize> =
                ast.iter_functions().filter(|f| f.name == hook.name()).map(|f| f.params.len()).collect();
            match (hooks.contains(&hook), defined.is_empty(), defined.contains(&params.len())) {
                (false, true, _) | (true, false, true) => {}
                (true, true, _) => {
                    let message =
                        format!("the manifest names the hook '{}', which the script does not define", hook.name());
                    return Err(LoadError::new(&self.path, message).with_hint(format!("write {signature}")));
                }
                (true, false, false) => {
                    let message = format!("'{}' takes {} parameters, found {}", hook.name(), params.len(), defined[0]);
                    return Err(self.at_function(hook, message).with_hint(format!("write {signature}")));
                }
                (false, false, _) => {
                    let message = format!("the function '{}' is a hook that the manifest does not name", hook.name());
                    let hint = format!("add the hook to `hooks` in {}", crate::folder::MANIFEST);
                    return Err(self.at_function(hook, message).with_hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Rejects a hook that reads an undeclared setting. A setting that the manifest does not declare is always absent.
    /// Reads with the operator `??` are allowed.
    fn settings(&self, names: &ScriptNames<'_>) -> Result<(), LoadError> {
        let Some((setting, position)) = absent::undeclared(names).into_iter().next() else { return Ok(()) };
        let undeclared = || format!("declare the setting in {} under [settings]", crate::folder::MANIFEST);
        let hint = did_you_mean(&setting, names.settings.keys().map(|name| &**name)).unwrap_or_else(undeclared);
        let message = format!("{} has no '{setting}'", names.settings_name);
        Err(self.at(position, message).with_hint(hint))
    }

    /// Compiles the body of a hook's function as a separate program. The function's parameters become variables of the
    /// program. Rejects a body that reads settings that the manifest does not declare.
    fn body(&self, engine: &Engine, ast: &AST, hook: Hook, about: &PluginDescription) -> Result<HookBody, LoadError> {
        let param_count = parameters(hook).len();
        let function = ast.iter_fn_def().find(|f| f.name == hook.name() && f.params.len() == param_count);
        let function = function.ok_or_else(|| LoadError::new(&self.path, format!("no function '{}'", hook.name())))?;
        let (start, end) = (self.offset(function.body.start_position()), self.offset(function.body.end_position()));
        // The text before the body is replaced by blanks, so that positions in the body stay the same.
        let blank = |text: &str| text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect::<String>();
        let inside = self.text.get(start + 1..end).unwrap_or_default();
        let alone = blank(self.text.get(..=start).unwrap_or_default()) + inside;
        let mut scope = Scope::new();
        for name in &function.params {
            scope.push_dynamic(name.as_str(), Dynamic::UNIT);
        }
        let statements = engine
            .compile_with_scope(&scope, alone)
            .map_err(|error| self.at(error.position(), lowered(&error.err_type().to_string())))?;
        let parameters: Vec<ImmutableString> = function.params.iter().cloned().collect();
        let settings_name = parameters.last().map_or("", |name| name.as_str());
        self.settings(&ScriptNames { ast: &statements, settings_name, settings: &about.settings })?;
        Ok(HookBody { parameters, ast: ast.clone_functions_only().merge(&statements) })
    }

    /// Returns the byte offset of a position in the text.
    fn offset(&self, position: Position) -> usize {
        let (line, column) = (position.line().unwrap_or(1), position.position().unwrap_or(1));
        let line_start: usize = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let within = self.text.get(line_start..).unwrap_or_default().chars().take(column - 1).map(char::len_utf8);
        line_start + within.sum::<usize>()
    }

    fn at_function(&self, hook: Hook, message: String) -> LoadError {
        let found = self.text.find(&format!("fn {}(", hook.name())).map(|offset| line_and_column(self.text, offset));
        let (line, column) = found.unzip();
        LoadError { line, column, ..LoadError::new(&self.path, message) }
    }

    /// Checks every call and closure in the script, and rejects `this`. The function of a call must exist, accept the
    /// number of arguments, and be allowed.
    fn calls(&self, engine: &Engine, ast: &AST) -> Result<(), LoadError> {
        let known = CallableFunctions::of(engine, ast);
        let mut refused = None;
        ast.walk(&mut |path| {
            refused = self.node(&known, path).err();
            refused.is_none()
        });
        refused.map_or(Ok(()), Err)
    }

    fn node(&self, known: &CallableFunctions, path: &[ASTNode<'_>]) -> Result<(), LoadError> {
        match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, position)) | ASTNode::Stmt(Stmt::FnCall(call, position))) => {
                if is_capture(call, path) {
                    return Ok(());
                }
                self.call(known, call, call.args.len(), *position)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, position))) => {
                self.call(known, call, call.args.len() + 1, *position)
            }
            Some(ASTNode::Stmt(Stmt::Share(_))) => self.closure(known, path),
            // The size of `this` cannot be measured while the value grows.
            Some(ASTNode::Expr(Expr::ThisPtr(position))) => Err(self.at(*position, "a script may not use 'this'")),
            _ => Ok(()),
        }
    }

    fn call(
        &self,
        known: &CallableFunctions,
        call: &FnCallExpr,
        arguments: usize,
        position: Position,
    ) -> Result<(), LoadError> {
        let name = call.name.as_str();
        if call.op_token.is_some() || !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Ok(());
        }
        if FORBIDDEN.contains(&name) && !known.scripted.contains_key(name) {
            return Err(self.at(position, format!("a script may not call '{name}'")));
        }
        if known.takes(name, arguments) {
            return Ok(());
        }
        let signatures = known.signatures(name);
        if !signatures.is_empty() {
            let message = format!("'{name}' does not take {}", count(arguments));
            return Err(self.at(position, message).with_hint(format!("expected {}", signatures.join(", "))));
        }
        let error = self.at(position, format!("unknown function '{name}'"));
        let hint = nearest(name, known.names());
        let hint = hint.map(|hint| format!("did you mean {}?", known.signatures(hint).join(", ")));
        Err(error.with_hint(hint))
    }

    /// Checks a closure that captures variables. Such a closure must be passed directly to a function that does not
    /// store the closure. If scripts could store closures in variables that other closures capture, closures could nest
    /// without limit.
    fn closure(&self, known: &CallableFunctions, path: &[ASTNode<'_>]) -> Result<(), LoadError> {
        // The closure's statement is in a block, and this block is an argument of the call.
        let call = path.iter().rev().skip(2).find(|node| !matches!(node, ASTNode::Stmt(Stmt::Expr(_))));
        let name = match call {
            Some(
                ASTNode::Expr(Expr::MethodCall(call, _) | Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _)),
            ) => call.name.as_str(),
            _ => "",
        };
        if TAKE_CLOSURES.contains(&name) && !known.scripted.contains_key(name) {
            return Ok(());
        }
        let position = path.iter().rev().find_map(|node| match node {
            ASTNode::Expr(expr) => Some(expr.position()),
            _ => None,
        });
        let message = "a closure that captures variables can only be passed to a function such as 'filter' or 'map'";
        Err(self.at(position.unwrap_or(Position::NONE), message))
    }
}

/// Returns whether the parser created `call` for a closure with captured variables. `call` is the last node of `path`.
fn is_capture(call: &FnCallExpr, path: &[ASTNode<'_>]) -> bool {
    let shares = |node: &ASTNode<'_>| match node {
        ASTNode::Expr(Expr::Stmt(block)) => matches!(block.statements().first(), Some(Stmt::Share(_))),
        _ => false,
    };
    call.name == "curry" && path.iter().rev().skip(1).take(2).any(shares)
}

/// The functions that a script can call.
struct CallableFunctions {
    host: BTreeMap<String, BTreeMap<usize, Vec<String>>>,
    scripted: BTreeMap<String, BTreeSet<usize>>,
    scripted_signatures: BTreeMap<String, Vec<String>>,
}

impl CallableFunctions {
    fn of(engine: &Engine, ast: &AST) -> CallableFunctions {
        let mut scripted: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let mut scripted_signatures: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for function in ast.iter_functions() {
            scripted.entry(function.name.to_owned()).or_default().insert(function.params.len());
            let signature = format!("{}({})", function.name, function.params.join(", "));
            scripted_signatures.entry(function.name.to_owned()).or_default().push(signature);
        }
        CallableFunctions { host: declaration::functions(engine), scripted, scripted_signatures }
    }

    fn takes(&self, name: &str, arguments: usize) -> bool {
        // If a scripted function is called as a method, the value before the dot becomes `this` and counts as an
        // argument. Calls without a dot are not distinguished and may therefore have one argument too many.
        let scripted =
            |counts: &BTreeSet<usize>| counts.contains(&arguments) || counts.contains(&arguments.wrapping_sub(1));
        self.host.get(name).is_some_and(|counts| counts.contains_key(&arguments))
            || self.scripted.get(name).is_some_and(scripted)
            || KEYWORDS.contains(&(name, arguments))
            || (name == "call" && arguments > 0)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.host.keys().chain(self.scripted.keys()).map(String::as_str)
    }

    fn signatures(&self, name: &str) -> Vec<String> {
        let host = self.host.get(name).into_iter().flat_map(BTreeMap::values).filter_map(|same| same.first()).cloned();
        host.chain(self.scripted_signatures.get(name).cloned().unwrap_or_default()).take(4).collect()
    }
}

fn count(arguments: usize) -> String {
    match arguments {
        1 => "1 argument".into(),
        many => format!("{many} arguments"),
    }
}
