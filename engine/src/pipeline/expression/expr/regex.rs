//! Regular expression operators.

use super::operator::ArgumentForm::Own;
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named};
use super::{Answer, Env, Expr, NULL, ParseScope, some};
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Result, err};
use crate::pipeline::value::extended_json;
use crate::pipeline::value::regex::{PatternMatch, Regex, RegexError};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the first match, its position in code points, and its groups.
    "$regexFind"("input: string, regex: string, options?: string") [
        r#"{"$regexFind":{"input":"$a","regex":"b(.)"}}"#,
        r#"{"a":"abc"}"#,
        r#"{"match":"bc","idx":1,"captures":["c"]}"#,
    ]: Own(|spec, scope| parse_regex("$regexFind", spec, scope)), find;
    /// Returns all matches, their positions and their groups.
    "$regexFindAll"("input: string, regex: string, options?: string") [
        r#"{"$regexFindAll":{"input":"$a","regex":"a"}}"#,
        r#"{"a":"aba"}"#,
        r#"[{"match":"a","idx":0,"captures":[]},{"match":"a","idx":2,"captures":[]}]"#,
    ]: Own(|spec, scope| parse_regex("$regexFindAll", spec, scope)), find_all;
    /// Returns whether the string matches the regular expression.
    "$regexMatch"("input: string, regex: string, options?: string")
        [r#"{"$regexMatch":{"input":"$a","regex":"^B","options":"i"}}"#, r#"{"a":"bc"}"#, "true"]:
        Own(|spec, scope| parse_regex("$regexMatch", spec, scope)), matches;
};

static REGEX: NamedArguments = NamedArguments {
    not_object: 51103,
    unknown: 31024,
    fields: &[("input", Some(31022)), ("regex", Some(31023)), ("options", None)],
};

fn parse_regex(name: &str, spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let values = match spec.as_object() {
        Some(object) if object.get("regex").and_then(extended_json::regex).is_some() => {
            named(name, &REGEX, &spelled_out(name, object)?, scope)?
        }
        _ => named(name, &REGEX, spec, scope)?,
    };
    let pattern = values[1].as_ref().and_then(Expr::constant);
    let options = values[2].as_ref().map_or(Some(&Value::Null), Expr::constant);
    let prepared = match (pattern, options) {
        (Some(pattern), Some(options)) => compile(name, pattern, options, Regex::compile_held, scope.query)?,
        _ => None,
    };
    Ok(OperatorArguments { values, prepared: prepared.map(|pattern| Box::new(pattern) as _) })
}

/// Returns the arguments of an operator. If the argument `regex` is a `$regularExpression`, the pattern of the
/// `$regularExpression` becomes the argument `regex`, and its options, if any, become the argument `options`.
fn spelled_out(name: &str, object: &Object) -> Result<Value> {
    let mut spelled = object.clone();
    let Some((pattern, options)) = object.get("regex").and_then(extended_json::regex) else {
        return Ok(spelled.into());
    };
    let literal = |text: &str| Value::from(Object::from_iter([("$literal", text)]));
    spelled.insert("regex", literal(pattern));
    if !options.is_empty() {
        if object.contains("options") {
            return err!(51107, "{name}: regex option(s) specified in both 'regex' and 'option' fields");
        }
        spelled.push("options", literal(options));
    }
    Ok(spelled.into())
}

/// Compiles a pattern. Returns `None` if the pattern is null.
fn compile(
    name: &str,
    pattern: &Value,
    options: &Value,
    compile: fn(&str, &str, &Context) -> Result<Regex, RegexError>,
    query: &Context,
) -> Result<Option<Regex>> {
    let options = match options {
        Value::Null => "",
        Value::String(options) => options,
        other => return err!(51106, "{name} needs 'options' to be of type string, found: {}", other.type_name()),
    };
    let pattern = match pattern {
        Value::Null => return Ok(None),
        Value::String(pattern) => pattern,
        other => {
            return err!(51105, "{name} needs 'regex' to be of type string or regex, found: {}", other.type_name());
        }
    };
    if let Some(stray) = options.chars().find(|flag| !"imsxu".contains(*flag)) {
        return err!(51108, "{name} invalid flag in regex options: {stray}");
    }
    if pattern.contains('\0') {
        return err!(51109, "{name}: regular expression cannot contain an embedded null byte");
    }
    match compile(pattern, options, query) {
        Ok(pattern) => Ok(Some(pattern)),
        Err(RegexError::Ended(error)) => Err(error),
        Err(RegexError::Invalid(reason)) => err!(51111, "Invalid Regex in {name}: {reason}"),
    }
}

/// Calls `then` with the text and the pattern. If the text or the pattern is null, returns `None` without a call.
fn with_pattern<T>(call: &OperatorCall, env: &Env, then: impl FnOnce(&str, &Regex) -> Result<T>) -> Result<Option<T>> {
    let name = call.name();
    let input = call.value(0, env)?;
    if !matches!(input, Value::String(_) | Value::Null) {
        return err!(51104, "{name} needs 'input' to be of type string, found: {}", input.type_name());
    }
    let compiled;
    let pattern = match call.prepared::<Regex>() {
        Some(pattern) => Some(pattern),
        None => {
            compiled = compile(name, &call.value(1, env)?, &call.value(2, env)?, Regex::compile, env.query)?;
            compiled.as_ref()
        }
    };
    match (input.as_str(), pattern) {
        (Some(text), Some(pattern)) => then(text, pattern).map(Some),
        _ => Ok(None),
    }
}

fn matches(call: &OperatorCall, env: &Env) -> Answer {
    let found = with_pattern(call, env, |text, pattern| pattern.is_match(text, env.query))?;
    some(found.unwrap_or(false))
}

fn find(call: &OperatorCall, env: &Env) -> Answer {
    let found = with_pattern(call, env, |text, pattern| {
        let found = pattern.find(text, 0, env.query)?;
        found.map(|found| describe(text, text[..found.start].chars().count(), &found, env.query)).transpose()
    })?;
    found.flatten().map_or(NULL, some)
}

fn find_all(call: &OperatorCall, env: &Env) -> Answer {
    let found = with_pattern(call, env, |text, pattern| {
        let (mut all, mut from, mut seen, mut index) = (Vec::new(), 0, 0, 0);
        while from <= text.len()
            && let Some(found) = pattern.find(text, from, env.query)?
        {
            index += text[seen..found.start].chars().count();
            seen = found.start;
            all.push(describe(text, index, &found, env.query)?);
            // After an empty match, the search continues one character later.
            from = match text[found.end..].chars().next() {
                Some(next) if found.end == found.start => found.end + next.len_utf8(),
                None if found.end == found.start => break,
                _ => found.end,
            };
        }
        Ok(all)
    })?;
    some(found.unwrap_or_default())
}

/// Returns the description of a match, and charges the query for the description.
fn describe(text: &str, index: usize, found: &PatternMatch, query: &Context) -> Result<Value> {
    query.charge(200 + (found.groups.len() + 1) * (24 + found.end - found.start))?;
    let groups: Vec<Value> = found.groups.iter().map(|group| (*group).into()).collect();
    let mut object = Object::with_capacity(3);
    object.push("match", &text[found.start..found.end]);
    object.push("idx", index as i64);
    object.push("captures", groups);
    Ok(object.into())
}
