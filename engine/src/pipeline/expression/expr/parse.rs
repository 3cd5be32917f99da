//! Parses expressions: literals, field paths, variables, objects, arrays and operators.

use std::sync::Arc;

use super::operator::{self, ExprOperator, OperatorCall};
use super::{Env, Expr, ExprNode, System, UserVariable, system};
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};
use crate::pipeline::value::extended_json;
use crate::pipeline::value::memory;
use crate::pipeline::value::path::{FieldPath, check_name};

/// The maximum depth of nested expressions.
pub(super) const MAX_DEPTH: usize = 180;

/// The names that are visible while an expression is parsed: operators and variables.
#[derive(Clone)]
pub struct ParseScope<'q> {
    /// The query whose time and memory limits apply to parsing, and to the evaluation of constant expressions.
    pub query: &'q Context<'q>,
    /// The tables of all operators. The tables are a field, because this module must not depend on the modules that
    /// define the operators: those modules use this module to parse arguments.
    operators: &'static [&'static [ExprOperator]],
    names: Arc<Vec<Arc<str>>>,
    redact: bool,
    depth: usize,
}

impl<'q> ParseScope<'q> {
    /// Creates a scope with these operators and the system variables. `redact` adds the variables of `$redact`.
    pub(super) fn new(
        operators: &'static [&'static [ExprOperator]],
        redact: bool,
        query: &'q Context<'q>,
    ) -> ParseScope<'q> {
        ParseScope { query, operators, names: Arc::default(), redact, depth: 0 }
    }

    /// Returns the scope with additional user variables. A later variable hides earlier variables of the same name.
    pub fn with(&self, names: impl IntoIterator<Item = Arc<str>>) -> ParseScope<'q> {
        let names = self.names.iter().cloned().chain(names).collect();
        ParseScope { names: Arc::new(names), ..*self }
    }

    fn operators(&self) -> impl Iterator<Item = &'static ExprOperator> + use<> {
        self.operators.iter().copied().flatten()
    }

    /// Returns the number of visible user variables.
    pub fn variables(&self) -> usize {
        self.names.len()
    }

    /// Returns the scope one level deeper, or an error if the scope already has the maximum depth.
    fn deeper(&self) -> Result<ParseScope<'q>> {
        if self.depth == MAX_DEPTH {
            return err!(15, "expression is nested deeper than {MAX_DEPTH} levels");
        }
        Ok(ParseScope { names: self.names.clone(), depth: self.depth + 1, ..*self })
    }
}

/// The maximum number of bytes that the evaluation of a call may use during folding. A call that needs more bytes is
/// not folded: every row evaluates the call, and the query is charged for the bytes.
const FOLD_BYTES: i64 = 64 * 1024;

/// Parses an expression and folds its constant parts.
pub fn parse(spec: &Value, scope: &ParseScope) -> Result<Expr> {
    let scope = &scope.deeper()?;
    scope.query.tick()?;
    match spec {
        Value::String(text) if text.starts_with('$') => parse_path(text, scope),
        Value::Array(items) => parse_array(items, scope),
        Value::Object(object) => parse_object(object, scope),
        _ => Ok(Expr::constant_of(spec.clone())),
    }
}

fn parse_array(items: &[Value], scope: &ParseScope) -> Result<Expr> {
    let items: Vec<Expr> = parse_items(items, scope)?;
    let constant: Option<Vec<Value>> = items.iter().map(|item| item.constant().cloned()).collect();
    Ok(match constant {
        Some(values) => Expr::constant_of(values),
        None => Expr { node: ExprNode::Array(items.into()) },
    })
}

/// Parses the items of an array.
pub(super) fn parse_items(items: &[Value], scope: &ParseScope) -> Result<Vec<Expr>> {
    let item = |(index, item): (usize, &Value)| parse(item, scope).map_err(|error| error.within(index.to_string()));
    items.iter().enumerate().map(item).collect::<Result<_>>()
}

fn parse_object(object: &Object, scope: &ParseScope) -> Result<Expr> {
    let Some((first, argument)) = object.iter().next() else {
        return Ok(Expr::constant_of(Object::new()));
    };
    if first.starts_with('$') {
        if object.len() != 1 {
            let shown = Value::from(object.clone());
            return err!(
                15983,
                "An object representing an expression must have exactly one field: {}",
                excerpt(&shown)
            );
        }
        return parse_operator(first, argument, scope).map_err(|error| error.within(first.clone()));
    }
    let mut fields: Vec<(Arc<str>, Expr)> = Vec::with_capacity(object.len());
    for (name, value) in object.iter() {
        check_name(name)?;
        if name.contains('.') {
            return err!(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
        }
        fields.push((name.clone(), parse(value, scope).map_err(|error| error.within(name.clone()))?));
    }
    let constant: Option<Object> =
        fields.iter().map(|(name, field)| Some((name.clone(), field.constant()?.clone()))).collect();
    Ok(match constant {
        Some(object) => Expr::constant_of(object),
        None => Expr { node: ExprNode::Object(fields.into()) },
    })
}

fn parse_operator(name: &str, argument: &Value, scope: &ParseScope) -> Result<Expr> {
    let Some(operator) = scope.operators().find(|operator| operator.word.name == name) else {
        if name == extended_json::REGEX {
            let message = "a regular expression is not a value: it is allowed only in a filter and as the 'regex' of \
                           $regexMatch, $regexFind and $regexFindAll";
            return Err(Error::new(168, message));
        }
        let error = Error::new(168, format!("Unrecognized expression '{name}'"));
        return Err(error.suggesting(name, scope.operators().map(|operator| operator.word.name)));
    };
    fold(operator::parse_call(operator, argument, scope)?, scope.query)
}

/// Replaces a call with its result if constant arguments determine the result and the evaluation needs at most
/// [`FOLD_BYTES`] of memory. The evaluation may use the remaining time of the query. Returns the error of an evaluation
/// that fails for any reason other than this limit.
fn fold(call: OperatorCall, query: &Context) -> Result<Expr> {
    if let Some(decided) = call.decided() {
        return Ok(Expr::constant_of(decided));
    }
    if !call.is_foldable() {
        return Ok(Expr { node: ExprNode::Call(Arc::new(call)) });
    }
    match query.with_byte_limit(FOLD_BYTES, || call.eval(&Env::new(query, &Value::Null))) {
        Ok(Some(value)) => {
            // The plan keeps the constant until the query ends.
            memory::hold(&value, query)?;
            Ok(Expr::constant_of(value))
        }
        Ok(None) => Ok(Expr { node: ExprNode::Missing }),
        Err(error) if error.code == PipelineErrorCode::Number(146) => Ok(Expr { node: ExprNode::Call(Arc::new(call)) }),
        Err(error) => Err(error),
    }
}

/// Returns the expression for `text`, or `None` if `text` is not a path into a variable in `names`.
pub fn variable(text: &str, names: &[Arc<str>]) -> Option<Expr> {
    let variable = text.strip_prefix("$$")?;
    let (name, rest) = variable.split_once('.').map_or((variable, None), |(name, rest)| (name, Some(rest)));
    let variable = UserVariable::find(name, names)?;
    let path = rest.map_or_else(|| Ok(FieldPath::root()), FieldPath::parse).ok()?;
    Some(Expr { node: ExprNode::Variable(variable, path) })
}

fn parse_path(text: &str, scope: &ParseScope) -> Result<Expr> {
    let Some(variable) = text.strip_prefix("$$") else {
        if text == "$" {
            return Err(Error::new(16872, "'$' by itself is not a valid FieldPath"));
        }
        let path = FieldPath::parse(&text[1..])?;
        // Plain paths start from `$$CURRENT`, if a variable of this name is bound.
        let node = match UserVariable::find("CURRENT", &scope.names) {
            Some(current) => ExprNode::Variable(current, path),
            None => ExprNode::Path(path),
        };
        return Ok(Expr { node });
    };
    let (name, rest) = variable.split_once('.').map_or((variable, None), |(name, rest)| (name, Some(rest)));
    check_variable(name)?;
    let user_variable = UserVariable::find(name, &scope.names);
    let is_redact = scope.redact && system::OF_REDACT.contains(&name);
    let is_system = system::names().any(|known| known == name) || is_redact;
    if user_variable.is_none() && !is_system {
        return Err(undefined(name, scope));
    }
    let path = match rest {
        None => FieldPath::root(),
        // The part after the name is empty for `$$x.`, a path that ends with a dot.
        Some("") => FieldPath::parse(".")?,
        Some(rest) => FieldPath::parse(rest)?,
    };
    let node = match (user_variable, name) {
        (Some(variable), _) => ExprNode::Variable(variable, path),
        (None, "ROOT" | "CURRENT") => ExprNode::Path(path),
        (None, "NOW") => ExprNode::System(System::Now, path),
        (None, "USER") => ExprNode::System(System::User, path),
        (None, "WORKSPACE") => ExprNode::System(System::Workspace, path),
        (None, "DESCEND" | "PRUNE" | "KEEP") => ExprNode::Constant(name.to_lowercase().into()),
        (None, _) => ExprNode::Missing,
    };
    Ok(Expr { node })
}

fn undefined(name: &str, scope: &ParseScope) -> Error {
    let error = Error::new(17276, format!("Use of undefined variable: {name}"));
    let known = system::names().chain(scope.names.iter().map(|name| &**name));
    error.suggesting(name, known)
}

/// Rejects names that are not allowed for any variable.
fn check_variable(name: &str) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::new(9, "empty variable names are not allowed"));
    };
    if !first.is_ascii_alphabetic() && first.is_ascii() {
        return err!(9, "'{name}' starts with an invalid character for a variable name");
    }
    match name.chars().find(|char| char.is_ascii() && !char.is_ascii_alphanumeric() && *char != '_') {
        Some(char) => err!(9, "'{name}' contains an invalid character for a variable name: '{char}'"),
        None => Ok(()),
    }
}

/// Rejects names that are not allowed for user variables.
pub fn check_user_variable(name: &str) -> Result<()> {
    let starts_upper = name.chars().next().is_some_and(|first| first.is_ascii_uppercase());
    if starts_upper && name != "CURRENT" {
        return err!(9, "'{name}' starts with an invalid character for a user variable name");
    }
    check_variable(name)
}
