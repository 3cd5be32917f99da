//! The table of accumulators, and the parsers of their specifications.

use std::fmt;

use super::Accumulator;
use super::kind::{AccumulatorKind, DeviationKind, Extremum, OrderEnd};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Expr, ParseScope, parse as parse_expr};
use crate::pipeline::value::documentation::{NameDocumentation, name_table};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::sort_by::parse_sort;
use crate::pipeline::value::statistics::{check_method, parse_shares};

/// The table entry of an accumulator.
pub struct AccumulatorOperator {
    /// The name and the documentation. The example consists of the accumulator, an array of input documents, and the
    /// result.
    pub word: NameDocumentation,
    read: ArgumentParser,
}

/// The function that parses the argument of an accumulator. The function receives the name of the accumulator.
type ArgumentParser = fn(&str, &Value, &ParseScope) -> ArgumentResult;

/// The input expression and the kind of an accumulator.
type ArgumentResult = Result<(Expr, AccumulatorKind)>;

impl fmt::Debug for AccumulatorOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.name)
    }
}

const fn row(word: NameDocumentation, read: ArgumentParser) -> AccumulatorOperator {
    AccumulatorOperator { word, read }
}

static OPERATORS: &[AccumulatorOperator] = name_table! { row:
    /// Returns the distinct values in the order of their first appearance.
    "$addToSet"("expression: any") [r#"{"$addToSet":"$a"}"#, r#"[{"a":1},{"a":2},{"a":1.0},{}]"#, "[1,2]"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::AddToSet);
    /// Returns the mean of the numbers.
    "$avg"("expression: any") [r#"{"$avg":"$a"}"#, r#"[{"a":1},{"a":2},{"a":"x"}]"#, "1.5"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Average);
    /// Returns the output of the row that sorts last.
    "$bottom"("sortBy: object, output: any")
        [r#"{"$bottom":{"sortBy":{"a":1},"output":"$b"}}"#, r#"[{"a":2,"b":"x"},{"a":1,"b":"y"}]"#, r#""x""#]:
        |name, spec, scope| ranked(name, spec, scope, OrderEnd::Back, false);
    /// Returns the outputs of the rows that sort last.
    "$bottomN"("n: integer, sortBy: object, output: any")
        [r#"{"$bottomN":{"n":2,"sortBy":{"a":1},"output":"$a"}}"#, r#"[{"a":2},{"a":3},{"a":1}]"#, "[2,3]"]:
        |name, spec, scope| ranked(name, spec, scope, OrderEnd::Back, true);
    /// Concatenates the arrays.
    "$concatArrays"("array") [r#"{"$concatArrays":"$a"}"#, r#"[{"a":[1,2]},{},{"a":[1]}]"#, "[1,2,1]"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::ConcatArrays);
    /// Returns the number of rows.
    "$count"("") [r#"{"$count":{}}"#, "[{},{}]", "2"]: count;
    /// Returns the value of the first row.
    "$first"("expression: any") [r#"{"$first":"$a"}"#, r#"[{"a":1},{"a":2}]"#, "1"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::First);
    /// Returns the values of the first rows.
    "$firstN"("input: any, n: integer") [r#"{"$firstN":{"input":"$a","n":2}}"#, r#"[{"a":1},{},{"a":3}]"#, "[1,null]"]:
        |name, spec, scope| counted(name, spec, scope, |count| AccumulatorKind::Edge(OrderEnd::Front, count));
    /// Returns the value of the last row.
    "$last"("expression: any") [r#"{"$last":"$a"}"#, r#"[{"a":1},{"a":2}]"#, "2"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Last);
    /// Returns the values of the last rows.
    "$lastN"("input: any, n: integer") [r#"{"$lastN":{"input":"$a","n":2}}"#, r#"[{"a":1},{"a":2},{"a":3}]"#, "[2,3]"]:
        |name, spec, scope| counted(name, spec, scope, |count| AccumulatorKind::Edge(OrderEnd::Back, count));
    /// Returns the greatest value that is not null.
    "$max"("expression: any") [r#"{"$max":"$a"}"#, r#"[{"a":1},{"a":2},{"a":null}]"#, "2"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Extreme(Extremum::Greatest));
    /// Returns the greatest values that are not null.
    "$maxN"("input: any, n: integer") [r#"{"$maxN":{"input":"$a","n":2}}"#, r#"[{"a":1},{"a":3},{"a":2}]"#, "[3,2]"]:
        |name, spec, scope| counted(name, spec, scope, |count| AccumulatorKind::ExtremeN(Extremum::Greatest, count));
    /// Returns the median of the numbers.
    "$median"("input: any, method: string")
        [r#"{"$median":{"input":"$a","method":"approximate"}}"#, r#"[{"a":1},{"a":9},{"a":2}]"#, "2.0"]:
        median;
    /// Merges the objects into one; later fields replace earlier ones.
    "$mergeObjects"("object") [r#"{"$mergeObjects":"$a"}"#, r#"[{"a":{"x":1}},{"a":{"y":2}}]"#, r#"{"x":1,"y":2}"#]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::MergeObjects);
    /// Returns the least value that is not null.
    "$min"("expression: any") [r#"{"$min":"$a"}"#, r#"[{"a":1},{"a":2},{"a":null}]"#, "1"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Extreme(Extremum::Least));
    /// Returns the least values that are not null.
    "$minN"("input: any, n: integer") [r#"{"$minN":{"input":"$a","n":2}}"#, r#"[{"a":1},{"a":3},{"a":2}]"#, "[1,2]"]:
        |name, spec, scope| counted(name, spec, scope, |count| AccumulatorKind::ExtremeN(Extremum::Least, count));
    /// Returns the percentiles of the numbers for the given ranks.
    "$percentile"("input: any, p: array, method: string") [
        r#"{"$percentile":{"input":"$a","p":[0.5,1],"method":"approximate"}}"#,
        r#"[{"a":1},{"a":9},{"a":2}]"#,
        "[2.0,9.0]",
    ]: percentile;
    /// Returns all values except missing ones.
    "$push"("expression: any") [r#"{"$push":"$a"}"#, r#"[{"a":1},{},{"a":null}]"#, "[1,null]"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Push);
    /// Returns the distinct items of the arrays.
    "$setUnion"("array") [r#"{"$setUnion":"$a"}"#, r#"[{"a":[1,2]},{"a":[2,3]}]"#, "[1,2,3]"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::SetUnion);
    /// Returns the population standard deviation of the numbers.
    "$stdDevPop"("expression: any") [r#"{"$stdDevPop":"$a"}"#, r#"[{"a":1},{"a":3}]"#, "1.0"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Deviation(DeviationKind::Population));
    /// Returns the sample standard deviation of the numbers.
    "$stdDevSamp"("expression: any") [r#"{"$stdDevSamp":"$a"}"#, r#"[{"a":1},{"a":2},{"a":3}]"#, "1.0"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Deviation(DeviationKind::Sample));
    /// Returns the sum of the numbers.
    "$sum"("expression: any") [r#"{"$sum":"$a"}"#, r#"[{"a":1},{"a":2},{"a":"x"}]"#, "3"]:
        |_, spec, scope| unary(spec, scope, AccumulatorKind::Sum);
    /// Returns the output of the row that sorts first.
    "$top"("sortBy: object, output: any")
        [r#"{"$top":{"sortBy":{"a":1},"output":"$b"}}"#, r#"[{"a":2,"b":"x"},{"a":1,"b":"y"}]"#, r#""y""#]:
        |name, spec, scope| ranked(name, spec, scope, OrderEnd::Front, false);
    /// Returns the outputs of the rows that sort first.
    "$topN"("n: integer, sortBy: object, output: any")
        [r#"{"$topN":{"n":2,"sortBy":{"a":1},"output":"$a"}}"#, r#"[{"a":2},{"a":3},{"a":1}]"#, "[1,2]"]:
        |name, spec, scope| ranked(name, spec, scope, OrderEnd::Front, true);
};

/// Returns all accumulators.
pub fn catalogue() -> impl Iterator<Item = &'static AccumulatorOperator> {
    OPERATORS.iter()
}

/// Parses the accumulator of an output field, such as `{$sum: "$a"}`.
pub fn parse(field: &str, spec: &Value, scope: &ParseScope) -> Result<Accumulator> {
    if field.contains('.') {
        return err!(40235, "The field name '{field}' cannot contain '.'");
    }
    if field.starts_with('$') {
        return err!(40236, "The field name '{field}' cannot be an operator name");
    }
    let Value::Object(object) = spec else {
        return err!(40234, "The field '{field}' must be an accumulator object");
    };
    let mut fields = object.iter();
    let (Some((name, argument)), None) = (fields.next(), fields.next()) else {
        return Err(match object.is_empty() {
            true => Error::new(40234, format!("The field '{field}' must be an accumulator object")),
            false => Error::new(40238, format!("The field '{field}' must specify one accumulator")),
        });
    };
    if !name.starts_with('$') {
        return err!(40234, "The field '{field}' must be an accumulator object");
    }
    if argument.as_array().is_some() {
        return err!(40237, "The {name} accumulator is a unary operator");
    }
    let Some(operator) = OPERATORS.iter().find(|operator| operator.word.name == &**name) else {
        let error = Error::new(15952, format!("unknown group operator '{name}'")).within(name.clone());
        return Err(error.suggesting(name, OPERATORS.iter().map(|operator| operator.word.name)));
    };
    read(operator, argument, scope).map_err(|error| error.within(name.clone()))
}

/// Parses the argument of the accumulator with the given name. Returns `None` if there is no such accumulator.
pub fn parse_argument(name: &str, argument: &Value, scope: &ParseScope) -> Option<Result<Accumulator>> {
    let operator = OPERATORS.iter().find(|operator| operator.word.name == name)?;
    Some(read(operator, argument, scope))
}

fn read(operator: &'static AccumulatorOperator, argument: &Value, scope: &ParseScope) -> Result<Accumulator> {
    let (input, kind) = (operator.read)(operator.word.name, argument, scope)?;
    Ok(Accumulator { operator, input, kind })
}

/// Parses an accumulator whose argument is one expression.
fn unary(spec: &Value, scope: &ParseScope, kind: AccumulatorKind) -> ArgumentResult {
    Ok((parse_expr(spec, scope)?, kind))
}

fn count(name: &str, spec: &Value, scope: &ParseScope) -> ArgumentResult {
    match spec.as_object() {
        Some(object) if object.is_empty() => Ok((parse_expr(&Value::Int(1), scope)?, AccumulatorKind::Sum)),
        _ => err!(14, "{name} takes no arguments, i.e. {name}:{{}}"),
    }
}

/// Returns the named arguments in the order of `names`. `unknown` is the error code for an argument that `names` does
/// not contain. `not_object` is the error code for a specification that is not an object.
fn named<'s, const N: usize>(
    name: &str,
    spec: &'s Value,
    names: [&str; N],
    unknown: i32,
    not_object: i32,
) -> Result<[Option<&'s Value>; N]> {
    let Value::Object(object) = spec else {
        return err!(not_object, "specification must be an object; found {name}: {}", excerpt(spec));
    };
    if let Some(stray) = object.keys().find(|key| !names.contains(&&***key)) {
        let error = Error::new(unknown, format!("Unknown argument: '{stray}'"));
        return Err(error.suggesting(stray, names));
    }
    Ok(names.map(|name| object.get(name)))
}

fn missing(code: i32, name: &str, argument: &str) -> Error {
    Error::new(code, format!("Missing value for '{argument}' in {name}"))
}

fn read_count(spec: &Value, scope: &ParseScope) -> Result<Expr> {
    let count = parse_expr(spec, scope)?;
    if let Some(constant) = count.constant() {
        super::ranked::group_count(constant)?;
    }
    Ok(count)
}

fn counted(name: &str, spec: &Value, scope: &ParseScope, kind: fn(Expr) -> AccumulatorKind) -> ArgumentResult {
    let not_object = if matches!(name, "$minN" | "$maxN") { 5_787_900 } else { 5_787_801 };
    let [input, count] = named(name, spec, ["input", "n"], 5_787_901, not_object)?;
    let count = count.ok_or_else(|| missing(5_787_906, name, "n"))?;
    let input = input.ok_or_else(|| missing(5_787_907, name, "input"))?;
    Ok((parse_expr(input, scope)?, kind(read_count(count, scope)?)))
}

fn ranked(name: &str, spec: &Value, scope: &ParseScope, end: OrderEnd, has_count: bool) -> ArgumentResult {
    let [sort, output, count] = named(name, spec, ["sortBy", "output", "n"], 5_788_002, 5_788_001)?;
    let count = match (count, has_count) {
        (Some(count), true) => Some(read_count(count, scope)?),
        (None, true) => return Err(missing(5_788_003, name, "n")),
        (Some(_), false) => return Err(Error::new(5_788_002, "Unknown argument: 'n'")),
        (None, false) => None,
    };
    let output = output.ok_or_else(|| missing(5_788_004, name, "output"))?;
    let sort = parse_sort(sort.ok_or_else(|| missing(5_788_005, name, "sortBy"))?, 5_788_604)?;
    Ok((parse_expr(output, scope)?, AccumulatorKind::Ranked(end, sort, count)))
}

fn median(name: &str, spec: &Value, scope: &ParseScope) -> ArgumentResult {
    let [input, method] = named(name, spec, ["input", "method"], 40415, 7_436_100)?;
    check_method(name, method)?;
    let input = input.ok_or_else(|| missing(40414, name, "input"))?;
    Ok((parse_expr(input, scope)?, AccumulatorKind::Median))
}

fn percentile(name: &str, spec: &Value, scope: &ParseScope) -> ArgumentResult {
    let [input, shares, method] = named(name, spec, ["input", "p", "method"], 40415, 7_429_703)?;
    check_method(name, method)?;
    let input = input.ok_or_else(|| missing(40414, name, "input"))?;
    let shares = shares.ok_or_else(|| missing(40414, name, "p"))?;
    let shares = parse_expr(shares, scope)?;
    let shares = parse_shares(shares.constant())?;
    Ok((parse_expr(input, scope)?, AccumulatorKind::Percentiles(shares)))
}
