//! Parses the specification of one output field of `$setWindowFields`.

use std::sync::Arc;

use super::bounds::{self, Bounds};
use super::function::{Ranking, Scale, WindowFunction};
use super::operator::OPERATORS;
use crate::model::excerpt::excerpt;
use crate::model::object::Object;
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::{self, DeviationKind};
use crate::pipeline::expression::expr::{self, Env, Expr, ParseScope};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;

/// A computed field: a function over a window.
#[derive(Debug, Clone)]
pub struct WindowOutput {
    /// The path that the values are written to.
    pub field: Arc<str>,
    /// The name of the function.
    pub name: &'static str,
    pub function: WindowFunction,
    pub bounds: Bounds,
}

/// The order of the rows in a partition.
#[derive(Debug, Clone, Copy)]
pub struct WindowOrder<'s> {
    /// Whether the stage has a `sortBy`, possibly without keys.
    pub is_given: bool,
    /// The sort paths, each with a flag that is `true` for a descending order.
    pub keys: &'s [(Arc<str>, bool)],
}

/// A call of a window function: its name and argument, the specification of the output field, and the stage's context.
pub struct WindowCall<'c> {
    name: &'static str,
    argument: &'c Value,
    spec: &'c Object,
    sorting: &'c WindowOrder<'c>,
    scope: &'c ParseScope<'c>,
}

/// Parses the specification of the output field `field`, such as `{$sum: "$a", window: {documents: [-1, 0]}}`.
pub fn parse(field: &Arc<str>, spec: &Value, sorting: &WindowOrder, scope: &ParseScope) -> Result<WindowOutput> {
    let Value::Object(object) = spec else { return Err(failed(format!("The field '{field}' must be an object"))) };
    let mut functions = object.iter().filter(|(name, _)| name.starts_with('$'));
    let Some((name, argument)) = functions.next() else {
        let first = object.keys().next().map(|name| &**name).unwrap_or_default();
        return Err(failed(format!("Expected a $-prefixed window function, {first}")));
    };
    if functions.next().is_some() {
        return Err(match &**name {
            "$rank" | "$denseRank" | "$documentNumber" => rank_alone(),
            _ => failed("Cannot specify two functions in window function spec"),
        });
    }
    of_function(field, name, argument, object, sorting, scope).map_err(|error| error.within(name.clone()))
}

fn of_function(
    field: &Arc<str>,
    name: &Arc<str>,
    argument: &Value,
    spec: &Object,
    sorting: &WindowOrder,
    scope: &ParseScope,
) -> Result<WindowOutput> {
    if let Some(operator) = OPERATORS.iter().find(|operator| operator.word.name == &**name) {
        let call = WindowCall { name: operator.word.name, argument, spec, sorting, scope };
        let function = (operator.read)(&call)?;
        let bounds = if operator.has_window { call.bounds()? } else { Bounds::WHOLE };
        return Ok(WindowOutput { field: field.clone(), name: operator.word.name, function, bounds });
    }
    let known = || accumulator::catalogue().map(|known| known.word.name);
    let Some(known_name) = known().find(|known| *known == &**name) else {
        let error = failed(format!("Unrecognized window function, {name}"));
        let names = known().chain(OPERATORS.iter().map(|operator| operator.word.name));
        return Err(error.suggesting(name, names));
    };
    let call = WindowCall { name: known_name, argument, spec, sorting, scope };
    let bounds = call.bounds()?;
    Ok(WindowOutput { field: field.clone(), name: known_name, function: accumulate(&call)?, bounds })
}

fn rank_alone() -> Error {
    Error::new(5_371_601, "Rank style window functions take no other arguments")
}

fn failed(text: impl Into<String>) -> Error {
    Error::new(9, text)
}

impl WindowCall<'_> {
    /// Parses the window. Rejects all arguments other than the function and the window.
    fn bounds(&self) -> Result<Bounds> {
        self.check_others(&["window"])?;
        bounds::parse(self.spec.get("window"), self.sorting, self.scope)
    }

    fn check_others(&self, allowed: &[&str]) -> Result<()> {
        let is_unknown = |name: &&Arc<str>| !name.starts_with('$') && !allowed.contains(&&***name);
        match self.spec.keys().find(is_unknown) {
            None => Ok(()),
            Some(_) if matches!(self.name, "$rank" | "$denseRank" | "$documentNumber") => Err(rank_alone()),
            Some(name) if matches!(self.name, "$first" | "$last") => {
                Err(failed(format!("{} got unexpected argument: {name}", self.name)))
            }
            Some(name) if &**name == "window" && self.name == "$shift" => {
                Err(failed("$shift does not accept a 'window' field"))
            }
            Some(name) if &**name == "window" => Err(failed(format!("{} does not accept a 'window' field", self.name))),
            Some(name) => Err(failed(format!("Window function found an unknown argument: {name}"))),
        }
    }

    /// Parses an expression in the argument of the function.
    fn expr(&self, spec: &Value) -> Result<Expr> {
        expr::parse(spec, self.scope)
    }

    /// Returns the fields of the argument. Rejects fields that are not in `allowed`.
    fn fields(&self, allowed: &[&str]) -> Result<&Object> {
        let name = self.name;
        let Value::Object(object) = self.argument else {
            return Err(failed(format!("Argument to {name} must be an object")));
        };
        match object.keys().find(|key| !allowed.contains(&&***key)) {
            None => Ok(object),
            Some(unknown) => {
                let error = failed(format!("Unknown argument in {name}: '{unknown}'"));
                Err(error.suggesting(unknown, allowed.iter().copied()))
            }
        }
    }

    fn input(&self, object: &Object) -> Result<Expr> {
        match object.get("input") {
            Some(input) => self.expr(input).map_err(|error| error.within("input")),
            None => Err(failed(format!("{} requires an 'input' expression", self.name))),
        }
    }

    /// Parses the unit of `$derivative` and `$integral`. Returns the length of the unit in milliseconds, or `None` if
    /// the argument has no unit.
    fn unit(&self, object: &Object) -> Result<Option<i64>> {
        match object.get("unit") {
            None => Ok(None),
            Some(Value::String(name)) => match bounds::unit(name)?.fixed_milliseconds() {
                Some(ms) => Ok(Some(ms)),
                None => Err(Error::new(5_490_710, "unit must be 'week' or smaller")),
            },
            Some(_) => Err(failed("'unit' must be a string")),
        }
    }

    /// Rejects a stage without exactly one sort key.
    fn check_one_key(&self) -> Result<()> {
        match self.sorting.keys.len() {
            1 => Ok(()),
            0 => Err(failed(format!("{} requires a sortBy", self.name))),
            _ => Err(failed(format!("{} requires a non-compound sortBy", self.name))),
        }
    }
}

/// Parses an accumulator, and computes the number of values to keep. If the number depends on the time, on random
/// numbers or on variables of an enclosing `$lookup`, the number is known only when the stage runs. The number is
/// always computed without a row.
fn accumulate(call: &WindowCall) -> Result<WindowFunction> {
    let WindowCall { name, argument, scope, .. } = *call;
    if name == "$count" {
        return match argument {
            Value::Object(object) if object.is_empty() => Ok(WindowFunction::Count),
            _ => Err(failed("$count only accepts an empty object as input")),
        };
    }
    let count = match (name, argument.get("n")) {
        ("$firstN" | "$lastN" | "$minN" | "$maxN" | "$topN" | "$bottomN", Some(count)) => {
            let count = expr::parse(count, scope)?;
            match count.depends_on_run(scope.variables()) {
                true => None,
                false => Some(accumulator::kept(&count, &Env::new(scope.query, &Value::Null))?),
            }
        }
        _ => Some(1),
    };
    if matches!(name, "$top" | "$topN" | "$bottom" | "$bottomN")
        && argument.get("sortBy").is_some_and(|sort| sort.as_object().is_none())
    {
        let found = argument.get("sortBy").map(Value::type_name).unwrap_or_default();
        return err!(10065, "invalid parameter: expected an object (sortBy), found {found}");
    }
    match accumulator::parse_argument(name, argument, scope) {
        Some(parsed) => Ok(WindowFunction::Accumulate(parsed?, count)),
        None => Err(failed(format!("Unrecognized window function, {name}"))),
    }
}

pub(super) fn rank(call: &WindowCall, ranking: Ranking) -> Result<WindowFunction> {
    call.check_others(&[])?;
    match call.argument {
        Value::Object(object) if object.is_empty() => {}
        _ => return err!(5_371_603, "{} must be specified with '{{}}' as the value", call.name),
    }
    if call.sorting.keys.len() != 1 {
        let text =
            format!("{} must be specified with a top level sortBy expression with exactly one element", call.name);
        return Err(Error::new(5_371_602, text));
    }
    Ok(WindowFunction::Rank(ranking))
}

pub(super) fn shift(call: &WindowCall) -> Result<WindowFunction> {
    call.check_others(&[])?;
    let object = call.fields(&["output", "by", "default"])?;
    let output = object.get("output").ok_or_else(|| failed("$shift requires an 'output' expression."))?;
    let output = call.expr(output).map_err(|error| error.within("output"))?;
    let by = object.get("by").ok_or_else(|| failed("$shift requires 'by' as an integer value."))?;
    let found = || failed(format!("'$shift:by' field must be an integer, but found {}", excerpt(by)));
    let by = whole(by).filter(|by| i32::try_from(*by).is_ok()).ok_or_else(found)?;
    let default = match object.get("default") {
        None => Value::Null,
        Some(spec) => match call.expr(spec)?.constant() {
            Some(value) => value.clone(),
            None => {
                let text = format!("'$shift:default' expression must yield a constant value. Found {}", excerpt(spec));
                return Err(failed(text));
            }
        },
    };
    if !call.sorting.is_given {
        return Err(failed("'$shift' requires a sortBy"));
    }
    Ok(WindowFunction::Shift { output, by, default })
}

pub(super) fn derivative(call: &WindowCall) -> Result<WindowFunction> {
    let object = call.fields(&["input", "unit"])?;
    call.check_others(&["window"])?;
    let (input, unit) = (call.input(object)?, call.unit(object)?);
    call.check_one_key()?;
    if !call.spec.contains("window") {
        return Err(failed("$derivative requires explicit window bounds"));
    }
    Ok(WindowFunction::Derivative(input, unit))
}

pub(super) fn integral(call: &WindowCall) -> Result<WindowFunction> {
    let object = call.fields(&["input", "unit"])?;
    call.check_others(&["window"])?;
    let (input, unit) = (call.input(object)?, call.unit(object)?);
    call.check_one_key()?;
    Ok(WindowFunction::Integral(input, unit))
}

pub(super) fn moving_average(call: &WindowCall) -> Result<WindowFunction> {
    let Value::Object(object) = call.argument else {
        return Err(failed("$expMovingAvg must have exactly one argument that is an object"));
    };
    if call.spec.len() != 1 {
        return Err(failed("$expMovingAvg must have exactly one argument that is an object"));
    }
    if !call.sorting.is_given || call.sorting.keys.is_empty() {
        return Err(failed("$expMovingAvg requires an explicit 'sortBy'"));
    }
    let fields = || {
        failed(
            "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an \
             'alpha' field",
        )
    };
    let (Some(input), 2) = (object.get("input"), object.len()) else { return Err(fields()) };
    let input = call.expr(input).map_err(|error| error.within("input"))?;
    let alpha = match (object.get("N"), object.get("alpha")) {
        (Some(count), None) => {
            let found = || failed(format!("'N' field must be an integer, but found type {}", count.type_name()));
            match whole(count).ok_or_else(found)? {
                count if count > 0 => 2.0 / (count as f64 + 1.0),
                count => return Err(failed(format!("'N' must be greater than zero. Got {count}"))),
            }
        }
        (None, Some(alpha)) => match alpha.as_f64() {
            Some(alpha) if alpha > 0.0 && alpha < 1.0 => alpha,
            Some(_) => {
                return Err(failed(format!("'alpha' must be between 0 and 1 (exclusive), found {}", excerpt(alpha))));
            }
            None => {
                return Err(failed(format!("'alpha' field must be a number, but found type {}", alpha.type_name())));
            }
        },
        _ => return Err(fields()),
    };
    Ok(WindowFunction::MovingAverage(input, alpha))
}

pub(super) fn covariance(call: &WindowCall, sampled: DeviationKind) -> Result<WindowFunction> {
    Ok(WindowFunction::Covariance(call.expr(call.argument)?, sampled))
}

pub(super) fn linear_fill(call: &WindowCall) -> Result<WindowFunction> {
    call.check_others(&[])?;
    let input = call.expr(call.argument)?;
    if call.sorting.keys.len() != 1 {
        return Err(Error::new(
            605_001,
            "$linearFill must be specified with a top level sortBy expression with exactly one element",
        ));
    }
    Ok(WindowFunction::LinearFill(input))
}

pub(super) fn last_known(call: &WindowCall) -> Result<WindowFunction> {
    call.check_others(&[])?;
    Ok(WindowFunction::LastKnown(call.expr(call.argument)?))
}

pub(super) fn scale(call: &WindowCall) -> Result<WindowFunction> {
    let object = call.fields(&["input", "min", "max"])?;
    let input = call.input(object)?;
    let constant = |name: &str| match object.get(name) {
        None => Ok(None),
        Some(spec) => match call.expr(spec)?.constant() {
            Some(value) if value.is_number() => Ok(Some(value.clone())),
            _ => Err(failed(format!("$minMaxScaler argument '{name}' must be a constant number"))),
        },
    };
    let (min, max) = match (constant("min")?, constant("max")?) {
        (None, None) => (Value::Int(0), Value::Int(1)),
        (Some(min), Some(max)) if min < max => (min, max),
        (Some(_), Some(_)) => return Err(failed("$minMaxScaler requires 'min' to be less than 'max'")),
        _ => return Err(failed("$minMaxScaler requires both 'min' and 'max', or neither")),
    };
    if !call.bounds()?.contains_current() {
        return Err(failed("the window of $minMaxScaler must contain the current row"));
    }
    Ok(WindowFunction::Scale(Scale { input, min, max }))
}
