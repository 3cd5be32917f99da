//! Accumulators that are used as expressions. An accumulator reads the items of a single array, or all of its
//! arguments.

use super::operator::ArgumentForm::{AnyNumber, Own};
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named_specs};
use super::{Answer, Env, Expr, ParseScope, parse, some};
use crate::model::value::Value;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;
use crate::pipeline::value::statistics::{Deviation, check_method, median, parse_shares, percentiles};
use crate::pipeline::value::sum::Sum;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the mean of the numbers.
    "$avg"("expression...: any") [r#"{"$avg":"$a"}"#, r#"{"a":[1,2,"x"]}"#, "1.5"]:
        AnyNumber, average;
    /// Returns the greatest value that is not null.
    "$max"("expression...: any") [r#"{"$max":["$a","$b"]}"#, r#"{"a":1,"b":2}"#, "2"]:
        AnyNumber, |call, env| extreme(call, env, |value, best| value > best);
    /// Returns the median of the numbers.
    "$median"("input: any, method: string")
        [r#"{"$median":{"input":"$a","method":"approximate"}}"#, r#"{"a":[1,9,2]}"#, "2.0"]:
        Own(parse_median), |call, env| some(median(&mut numbers(call, env)?));
    /// Returns the least value that is not null.
    "$min"("expression...: any") [r#"{"$min":["$a","$b"]}"#, r#"{"a":1,"b":2}"#, "1"]:
        AnyNumber, |call, env| extreme(call, env, |value, best| value < best);
    /// Returns the percentiles of the numbers for the fractions in `p`.
    "$percentile"("input: any, p: array, method: string")
        [r#"{"$percentile":{"input":"$a","p":[0.5],"method":"approximate"}}"#, r#"{"a":[1,9,2]}"#, "[2.0]"]:
        Own(parse_percentile), percentile;
    /// Returns the population standard deviation of the numbers.
    "$stdDevPop"("expression...: any") [r#"{"$stdDevPop":"$a"}"#, r#"{"a":[1,3]}"#, "1.0"]:
        AnyNumber, |call, env| some(deviation(call, env)?.population());
    /// Returns the sample standard deviation of the numbers.
    "$stdDevSamp"("expression...: any") [r#"{"$stdDevSamp":"$a"}"#, r#"{"a":[1,2,3]}"#, "1.0"]:
        AnyNumber, |call, env| some(deviation(call, env)?.sample());
    /// Returns the sum of the numbers.
    "$sum"("expression...: any") [r#"{"$sum":["$a",2]}"#, r#"{"a":1}"#, "3"]: AnyNumber, sum;
};

/// Visits the items of a single array argument. For any other arguments, visits each argument.
fn each(call: &OperatorCall, env: &Env, mut visit: impl FnMut(&Value)) -> Result<()> {
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Array(items) if call.len() == 1 => {
                for item in items.iter() {
                    env.query.tick()?;
                    visit(item);
                }
            }
            value => visit(&value),
        }
    }
    Ok(())
}

fn average(call: &OperatorCall, env: &Env) -> Answer {
    let (mut sum, mut count) = (Sum::default(), 0);
    each(call, env, |value| count += u64::from(sum.add_number(Some(value))))?;
    some(sum.average(count))
}

fn sum(call: &OperatorCall, env: &Env) -> Answer {
    let mut sum = Sum::default();
    each(call, env, |value| sum.add(Some(value)))?;
    some(sum.total())
}

fn deviation(call: &OperatorCall, env: &Env) -> Result<Deviation> {
    let mut deviation = Deviation::default();
    each(call, env, |value| deviation.add(Some(value)))?;
    Ok(deviation)
}

fn extreme(call: &OperatorCall, env: &Env, is_better: fn(&Value, &Value) -> bool) -> Answer {
    let mut best = Value::Null;
    let mut charged = Ok(0);
    each(call, env, |value| {
        if charged.is_ok() {
            charged = measure(value, env.query);
        }
        if charged.is_ok() && !value.is_null() && (best.is_null() || is_better(value, &best)) {
            best = value.clone();
        }
    })?;
    charged?;
    some(best)
}

static MEDIAN: NamedArguments = NamedArguments {
    not_object: 7_436_100,
    unknown: 40415,
    fields: &[("input", Some(40414)), ("method", Some(40414))],
};

static PERCENTILE: NamedArguments = NamedArguments {
    not_object: 7_429_703,
    unknown: 40415,
    fields: &[("input", Some(40414)), ("method", Some(40414)), ("p", Some(40414))],
};

fn parse_median(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let specs = named_specs("$median", &MEDIAN, spec)?;
    check_method("$median", specs[1])?;
    Ok(vec![specs[0].map(|input| parse(input, scope)).transpose()?].into())
}

fn parse_percentile(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let specs = named_specs("$percentile", &PERCENTILE, spec)?;
    check_method("$percentile", specs[1])?;
    let input = specs[0].map(|input| parse(input, scope)).transpose()?;
    let shares = specs[2].map(|shares| parse(shares, scope)).transpose()?;
    let shares = parse_shares(shares.as_ref().and_then(Expr::constant))?;
    Ok(OperatorArguments { values: vec![input], prepared: Some(Box::new(shares)) })
}

fn numbers(call: &OperatorCall, env: &Env) -> Result<Vec<f64>> {
    let value = call.value(0, env)?;
    let items = value.as_array().unwrap_or(std::slice::from_ref(&value));
    env.query.charge(size_of_val(items))?;
    Ok(items.iter().filter_map(Value::as_f64).filter(|number| !number.is_nan()).collect())
}

fn percentile(call: &OperatorCall, env: &Env) -> Answer {
    let shares = call.prepared::<Vec<f64>>().map_or(&[][..], Vec::as_slice);
    env.query.charge(shares.len() * size_of::<Value>())?;
    some(percentiles(&mut numbers(call, env)?, shares))
}
