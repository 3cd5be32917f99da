//! Lists the functions that a script may call. The file `host.d.rhai` and the checks at load use the list.

use std::collections::BTreeMap;

use rhai::Engine;
use serde::Deserialize;

use super::sandbox;
use crate::limits::CallLimits;

/// The functions by name and number of arguments, each with its signatures.
pub(super) type Functions = BTreeMap<String, BTreeMap<usize, Vec<String>>>;

#[derive(Deserialize)]
struct ScriptMetadata {
    #[serde(default)]
    functions: Vec<DeclaredFunction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredFunction {
    name: String,
    num_params: usize,
    signature: String,
    #[serde(default)]
    doc_comments: Vec<String>,
}

/// Returns all functions of an engine, including the functions of the language.
pub(super) fn functions(engine: &Engine) -> Functions {
    let mut functions = Functions::new();
    // Sorts the functions, because the engine lists functions in no fixed order. Documented functions come first, so
    // that messages prefer their signatures.
    let mut all = registered(engine, true);
    all.sort_by(|a, b| (a.doc_comments.is_empty(), &a.signature).cmp(&(b.doc_comments.is_empty(), &b.signature)));
    for function in all {
        let same = functions.entry(function.name).or_default().entry(function.num_params).or_default();
        same.push(named(&function.signature));
    }
    functions
}

/// Returns the text of `host.d.rhai`.
pub fn text() -> String {
    let mut text = String::from(
        "//! Host functions, which scripts may call in addition to rhai's own.\n//!\n\
         //! Generated from the host's functions, for people and language servers. Each example is true.\n\n\
         module static;\n",
    );
    let mut functions = documented();
    functions.sort_by(|a, b| (&a.name, a.num_params).cmp(&(&b.name, b.num_params)));
    for function in functions {
        text += &format!("\n{}\nfn {};\n", function.doc_comments.join("\n"), function.signature);
    }
    text
}

/// Returns the example of each host function: an expression that must be true.
pub fn examples() -> Vec<String> {
    let comments: Vec<String> = documented().into_iter().flat_map(|function| function.doc_comments).collect();
    let lines = comments.iter().flat_map(|comment| comment.lines());
    lines.filter_map(|line| Some(line.strip_prefix("/// `")?.strip_suffix('`')?.to_owned())).collect()
}

/// Evaluates an expression in the sandbox of scripts. Returns whether the result is true.
pub fn holds(expression: &str) -> Result<bool, String> {
    let engine = sandbox::engine("example", &CallLimits::default());
    engine.eval_expression::<bool>(expression).map_err(|error| error.to_string())
}

fn documented() -> Vec<DeclaredFunction> {
    let engine = sandbox::engine("example", &CallLimits::default());
    registered(&engine, false).into_iter().filter(|function| !function.doc_comments.is_empty()).collect()
}

fn registered(engine: &Engine, with_language: bool) -> Vec<DeclaredFunction> {
    let metadata = engine.gen_fn_metadata_to_json(with_language).unwrap_or_default();
    serde_json::from_str::<ScriptMetadata>(&metadata).map(|metadata| metadata.functions).unwrap_or_default()
}

/// Returns a signature with only the names of the parameters, without their types.
fn named(signature: &str) -> String {
    let Some((name, rest)) = signature.split_once('(') else { return signature.to_owned() };
    let parameters = rest.rsplit_once(')').map_or(rest, |(parameters, _)| parameters);
    let names: Vec<&str> =
        parameters.split(", ").map(|parameter| parameter.split(':').next().unwrap_or(parameter).trim()).collect();
    format!("{name}({})", names.join(", "))
}
