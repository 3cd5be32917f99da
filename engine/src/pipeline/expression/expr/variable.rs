//! The operators that bind variables, and `$literal` with its synonym `$const`.

use std::sync::Arc;

use super::operator::ArgumentForm::Own;
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named_specs};
use super::parse::check_user_variable;
use super::system::INDEX;
use super::{Answer, Env, Expr, NULL, ParseScope, parse, some};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::expanded_bytes;
use crate::pipeline::value::number::whole;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the items for which a condition is true; with a `limit`, returns at most this number of items.
    "$filter"("input: array, cond: any, as?: string, limit?: integer, arrayIndexAs?: string")
        [r#"{"$filter":{"input":"$a","cond":{"$gt":["$$this",1]}}}"#, r#"{"a":[1,2,3]}"#, "[2,3]"]:
        Own(parse_filter), filter;
    /// Binds values to variables and evaluates an expression that can read the variables.
    "$let"("vars: object, in: any") [r#"{"$let":{"vars":{"x":"$a"},"in":{"$add":["$$x","$$x"]}}}"#, r#"{"a":2}"#, "4"]:
        Own(parse_let), eval_let;
    /// Returns the value of an expression for each item.
    "$map"("input: array, in: any, as?: string, arrayIndexAs?: string")
        [r#"{"$map":{"input":"$a","as":"x","in":{"$multiply":["$$x",2]}}}"#, r#"{"a":[1,2]}"#, "[2,4]"]:
        Own(parse_map), map;
    /// Folds the items into one value; `$$value` is the result so far.
    "$reduce"("input: array, initialValue: any, in: any, as?: string, valueAs?: string, arrayIndexAs?: string")
        [r#"{"$reduce":{"input":"$a","initialValue":0,"in":{"$add":["$$value","$$this"]}}}"#, r#"{"a":[1,2,3]}"#, "6"]:
        Own(parse_reduce), reduce;
    /// Returns the value as written, without evaluating operators and paths.
    "$literal"("value: any") [r#"{"$literal":"$a"}"#, r#"{"a":1}"#, r#""$a""#]:
        Own(parse_literal), |call, env| call.field(0, env);
    /// Returns the value as written, as `$literal` does.
    "$const"("value: any") [r#"{"$const":{"$add":[1]}}"#, "{}", r#"{"$add":[1]}"#]:
        Own(parse_literal), |call, env| call.field(0, env);
};

fn parse_literal(spec: &Value, _: &ParseScope) -> Result<OperatorArguments> {
    Ok(vec![Some(Expr::constant_of(spec.clone()))].into())
}

static LET: NamedArguments =
    NamedArguments { not_object: 16874, unknown: 16875, fields: &[("vars", Some(16876)), ("in", Some(16877))] };

fn parse_let(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let [vars, body] = known(named_specs("$let", &LET, spec)?);
    if matches!(vars, Some(Value::Array(_))) {
        return Err(Error::new(9, "'0' starts with an invalid character for a user variable name"));
    }
    let (Some(Value::Object(vars)), Some(body)) = (vars, body) else {
        let found = vars.map_or("missing", Value::type_name);
        return err!(10065, "invalid parameter: expected an object (vars), found {found}");
    };
    let mut values = vec![None];
    for (name, value) in vars.iter() {
        check_user_variable(name)?;
        values.push(Some(parse(value, scope)?));
    }
    values[0] = Some(parse(body, &scope.with(vars.keys().cloned()))?);
    Ok(values.into())
}

fn eval_let(call: &OperatorCall, env: &Env) -> Answer {
    let values: Vec<Option<Value>> = (1..call.len()).map(|index| call.field(index, env)).collect::<Result<_>>()?;
    let frame = env.frame(&values);
    call.field(0, &env.bind(&frame))
}

fn known<const N: usize>(specs: Vec<Option<&Value>>) -> [Option<&Value>; N] {
    std::array::from_fn(|index| specs.get(index).copied().flatten())
}

/// Returns the variable name of a loop, or `default` if the specification names no variable.
fn variable_name(spec: Option<&Value>, default: &str) -> Result<Arc<str>> {
    match spec {
        None => Ok(default.into()),
        Some(Value::String(name)) => {
            check_user_variable(name)?;
            Ok(name.clone())
        }
        // MongoDB reads any other type as an empty name.
        Some(_) => Err(Error::new(9, "empty variable names are not allowed")),
    }
}

static MAP: NamedArguments = NamedArguments {
    not_object: 16878,
    unknown: 16879,
    fields: &[("input", Some(16880)), ("in", Some(16882)), ("as", None), ("arrayIndexAs", None)],
};

fn parse_map(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let [input, body, name, index] = known(named_specs("$map", &MAP, spec)?);
    let input = input.map(|input| parse(input, scope)).transpose()?;
    let names = [variable_name(name, "this")?, variable_name(index, INDEX)?];
    let body = body.map(|body| parse(body, &scope.with(names))).transpose()?;
    Ok(vec![input, body].into())
}

/// Evaluates the input of a loop, which must be an array. Returns `None` if the input is null or missing.
fn input(call: &OperatorCall, env: &Env, code: i32) -> Result<Option<Arc<Vec<Value>>>> {
    call.array(0, code, format_args!("input to {} must be an array not", call.name()), env)
}

/// Evaluates the body for one item.
fn at_item(call: &OperatorCall, env: &Env, index: usize, item: &Value) -> Answer {
    env.query.tick()?;
    let values = [Some(item.clone()), Some(Value::Int(index as i64))];
    let frame = env.frame(&values);
    call.field(1, &env.bind(&frame))
}

fn map(call: &OperatorCall, env: &Env) -> Answer {
    let Some(items) = input(call, env, 16883)? else { return NULL };
    env.query.charge(size_of_val(items.as_slice()))?;
    let mut results = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        results.push(at_item(call, env, index, item)?.unwrap_or_default());
    }
    some(results)
}

static FILTER: NamedArguments = NamedArguments {
    not_object: 28646,
    unknown: 28647,
    fields: &[("input", Some(28648)), ("cond", Some(28650)), ("as", None), ("limit", None), ("arrayIndexAs", None)],
};

fn parse_filter(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let [input, body, name, limit, index] = known(named_specs("$filter", &FILTER, spec)?);
    let input = input.map(|input| parse(input, scope)).transpose()?;
    let names = [variable_name(name, "this")?, variable_name(index, INDEX)?];
    let body = body.map(|body| parse(body, &scope.with(names))).transpose()?;
    let limit = limit.map(|limit| parse(limit, scope)).transpose()?;
    Ok(vec![input, body, limit].into())
}

fn filter(call: &OperatorCall, env: &Env) -> Answer {
    let Some(items) = input(call, env, 28651)? else { return NULL };
    let limit = match call.value(2, env)? {
        Value::Null => usize::MAX,
        value => filter_limit(&value)?,
    };
    let mut kept = Vec::new();
    for (index, item) in items.iter().enumerate() {
        // The value of the condition is dropped after the test, so the query is not charged for the value.
        if env.query.uncharged(|| Ok(Expr::truthy(at_item(call, env, index, item)?.as_ref())))? {
            kept.push(item.clone());
            if kept.len() >= limit {
                break;
            }
        }
    }
    env.query.charge(size_of_val(kept.as_slice()))?;
    some(kept)
}

fn filter_limit(value: &Value) -> Result<usize> {
    let Some(limit) = whole(value).and_then(|limit| i32::try_from(limit).ok()) else {
        return err!(327_391, "$filter: limit must be represented as a 32-bit integral value: {}", excerpt(value));
    };
    match usize::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => err!(327_392, "$filter: limit must be greater than 0: {limit}"),
    }
}

static REDUCE: NamedArguments = NamedArguments {
    not_object: 40075,
    unknown: 40076,
    fields: &[
        ("input", Some(40077)),
        ("in", Some(40079)),
        ("initialValue", Some(40078)),
        ("as", None),
        ("valueAs", None),
        ("arrayIndexAs", None),
    ],
};

fn parse_reduce(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let [input, body, initial, name, value, index] = known(named_specs("$reduce", &REDUCE, spec)?);
    let input = input.map(|input| parse(input, scope)).transpose()?;
    let initial = initial.map(|initial| parse(initial, scope)).transpose()?;
    let names = [variable_name(name, "this")?, variable_name(value, "value")?, variable_name(index, INDEX)?];
    let body = body.map(|body| parse(body, &scope.with(names))).transpose()?;
    Ok(vec![input, body, initial].into())
}

/// The interval, in steps, at which a `$reduce` measures the size of its intermediate value.
const MEASURED_EVERY: usize = 16;

fn reduce(call: &OperatorCall, env: &Env) -> Answer {
    let Some(items) = input(call, env, 40080)? else { return NULL };
    let before = env.query.bytes_left.get();
    let mut value = call.field(2, env)?;
    for (index, item) in items.iter().enumerate() {
        env.query.tick()?;
        let values = [Some(item.clone()), value, Some(Value::Int(index as i64))];
        let frame = env.frame(&values);
        value = call.field(1, &env.bind(&frame))?;
        // Each step replaces the value, and may nest the previous value one level deeper. A measurement after every
        // step would take quadratic time for growing arrays.
        if index % MEASURED_EVERY == 0 {
            let left = value.as_ref().map_or(Ok(0), |value| expanded_bytes(value, env.query))?;
            let charged = usize::try_from(before.saturating_sub(env.query.bytes_left.get())).unwrap_or(0);
            env.query.give_back(charged.saturating_sub(left));
        }
    }
    Ok(value)
}
