//! Conditional operators.

use super::operator::ArgumentForm::Own;
use super::operator::{
    ExprOperator, NamedArguments, OperatorArguments, OperatorCall, exact_count, name_table, named, positional,
};
use super::{Answer, Env, Expr, ParseScope, parse};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns one of two values, depending on a condition.
    "$cond"("if: any, then: any, else: any")
        [r#"{"$cond":[{"$gt":["$a",1]},"many","one"]}"#, r#"{"a":2}"#, r#""many""#]:
        Own(parse_cond), cond;
    /// Returns the first value that is neither null nor missing, or else the last value.
    "$ifNull"("expression...: any, replacement: any") [r#"{"$ifNull":["$a","none"]}"#, "{}", r#""none""#]:
        Own(parse_if_null), if_null;
    /// Returns the value of the first branch whose case is true, or else the default.
    "$switch"("branches: array, default?: any") [
        r#"{"$switch":{"branches":[{"case":{"$gt":["$a",1]},"then":"many"}],"default":"few"}}"#,
        r#"{"a":1}"#,
        r#""few""#,
    ]: Own(parse_switch), switch;
};

static COND: NamedArguments = NamedArguments {
    not_object: 17080,
    unknown: 17083,
    fields: &[("if", Some(17080)), ("then", Some(17081)), ("else", Some(17082))],
};

fn parse_cond(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    if let Value::Object(object) = spec
        && object.keys().next().is_none_or(|name| !name.starts_with('$'))
    {
        return Ok(named("$cond", &COND, spec, scope)?.into());
    }
    let values = positional(spec, scope)?;
    exact_count("$cond", 3, values.len())?;
    Ok(values.into())
}

fn cond(call: &OperatorCall, env: &Env) -> Answer {
    let chosen = if Expr::truthy(call.field(0, env)?.as_ref()) { 1 } else { 2 };
    call.field(chosen, env)
}

fn parse_if_null(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let values = positional(spec, scope)?;
    if values.len() < 2 {
        return err!(1_257_300, "$ifNull needs at least two arguments, had: {}", values.len());
    }
    Ok(values.into())
}

fn if_null(call: &OperatorCall, env: &Env) -> Answer {
    let last = call.len() - 1;
    for index in 0..last {
        if let Some(value) = call.field(index, env)?.filter(|value| !value.is_null()) {
            return Ok(Some(value));
        }
    }
    call.field(last, env)
}

/// Parses a `$switch`. The arguments are the `case` and the `then` of each branch, followed by the default.
fn parse_switch(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let Value::Object(object) = spec else {
        return err!(40060, "$switch requires an object as an argument, found: {}", spec.type_name());
    };
    let mut values = Vec::new();
    let mut default = None;
    for (name, argument) in object.iter() {
        match &**name {
            "branches" => {
                let Value::Array(branches) = argument else {
                    return err!(40061, "$switch expected an array for 'branches', found: {}", argument.type_name());
                };
                for branch in branches.iter() {
                    values.extend(parse_branch(branch, scope)?);
                }
            }
            "default" => default = Some(parse(argument, scope)?),
            stray => return err!(40067, "$switch found an unknown argument: {stray}"),
        }
    }
    if values.is_empty() {
        return Err(Error::new(40068, "$switch requires at least one branch."));
    }
    if default.is_none() && values.iter().step_by(2).flatten().all(|case| case.constant().is_some_and(is_false)) {
        return Err(no_branch());
    }
    values.push(default);
    Ok(values.into())
}

fn is_false(value: &Value) -> bool {
    !Expr::truthy(Some(value))
}

fn no_branch() -> Error {
    Error::new(40069, "One cannot execute a switch statement where all the cases evaluate to false without a default.")
}

fn parse_branch(branch: &Value, scope: &ParseScope) -> Result<[Option<Expr>; 2]> {
    let Value::Object(object) = branch else {
        return err!(40062, "$switch expected each branch to be an object, found: {}", branch.type_name());
    };
    if let Some(stray) = object.keys().find(|name| !matches!(&***name, "case" | "then")) {
        return err!(40063, "$switch found an unknown argument to a branch: {stray}");
    }
    let case =
        object.get("case").ok_or_else(|| Error::new(40064, "$switch requires each branch have a 'case' expression"))?;
    let then = object
        .get("then")
        .ok_or_else(|| Error::new(40065, "$switch requires each branch have a 'then' expression."))?;
    let case = parse(case, scope)?;
    // If a case is never true, its result is never evaluated. A division by zero in a constant part of the result is
    // therefore not an error. Other errors in the constants of the result are reported.
    let is_skipped = case.constant().is_some_and(is_false);
    let then = match parse(then, scope) {
        Err(error) if is_skipped && error.is_division_by_zero() => Expr::constant_of(Value::Null),
        then => then?,
    };
    Ok([Some(case), Some(then)])
}

fn switch(call: &OperatorCall, env: &Env) -> Answer {
    let default = call.len() - 1;
    for case in (0..default).step_by(2) {
        if Expr::truthy(call.field(case, env)?.as_ref()) {
            return call.field(case + 1, env);
        }
    }
    match call.expr(default) {
        Some(expression) => expression.eval(env),
        None => err!(40066, "$switch could not find a matching branch for an input, and no default was specified."),
    }
}
