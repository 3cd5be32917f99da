//! The bounds of a window: the range of rows, relative to the current row, that a window function reads.

use super::parse::WindowOrder;
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::{self, ParseScope, Unit};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole_i32;

/// One end of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowBound<T> {
    /// The first row of the partition as the lower end, or the last row of the partition as the upper end.
    Unbounded,
    /// The current row itself, regardless of other rows with the same sort value.
    Current,
    /// A distance from the current row. A negative distance leads to earlier rows.
    Offset(T),
}

/// The two ends of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Bounds {
    /// Distances from the current row, as numbers of rows.
    Documents(WindowBound<i64>, WindowBound<i64>),
    /// Distances between sort values that are numbers.
    Numbers(WindowBound<Value>, WindowBound<Value>),
    /// Distances between sort values that are dates.
    Dates(WindowBound<i64>, WindowBound<i64>, Unit),
}

impl Bounds {
    /// The whole partition.
    pub const WHOLE: Bounds = Bounds::Documents(WindowBound::Unbounded, WindowBound::Unbounded);

    /// Returns whether the window of every row begins with the first row of the partition.
    pub fn begins_with_partition(&self) -> bool {
        matches!(
            self,
            Bounds::Documents(WindowBound::Unbounded, _)
                | Bounds::Numbers(WindowBound::Unbounded, _)
                | Bounds::Dates(WindowBound::Unbounded, ..)
        )
    }

    /// Returns whether the window of every row contains the row itself.
    pub fn contains_current(&self) -> bool {
        let is_around = |lower: Option<f64>, upper: Option<f64>| {
            lower.is_none_or(|lower| lower <= 0.0) && upper.is_none_or(|upper| upper >= 0.0)
        };
        match self {
            Bounds::Documents(lower, upper) | Bounds::Dates(lower, upper, _) => {
                let distance = |bound: &WindowBound<i64>| match bound {
                    WindowBound::Offset(offset) => Some(*offset as f64),
                    WindowBound::Unbounded | WindowBound::Current => None,
                };
                is_around(distance(lower), distance(upper))
            }
            Bounds::Numbers(lower, upper) => {
                let distance = |bound: &WindowBound<Value>| match bound {
                    WindowBound::Offset(offset) => offset.as_f64(),
                    WindowBound::Unbounded | WindowBound::Current => None,
                };
                is_around(distance(lower), distance(upper))
            }
        }
    }
}

/// Parses a `window` argument. Without the argument, the window is the whole partition.
pub fn parse(window: Option<&Value>, sorting: &WindowOrder, scope: &ParseScope) -> Result<Bounds> {
    let Some(window) = window else { return Ok(Bounds::WHOLE) };
    let Value::Object(object) = window else { return Err(Error::new(9, "'window' field must be an object")) };
    if let Some(unknown) = object.keys().find(|name| !matches!(&***name, "documents" | "range" | "unit")) {
        let text = format!(
            "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' \
             field, but found '{}'",
            excerpt_of(unknown)
        );
        return Err(Error::new(9, text));
    }
    match (object.get("documents"), object.get("range")) {
        (Some(_), Some(_)) => Err(Error::new(9, "Window bounds can specify either 'documents' or 'range', not both.")),
        (Some(_), None) | (None, None) if object.contains("unit") => {
            Err(Error::new(9, "Window bounds can only specify 'unit' with range-based bounds."))
        }
        (None, None) => Ok(Bounds::WHOLE),
        (Some(bounds), None) => documents(bounds, sorting, scope),
        (None, Some(bounds)) => range(bounds, object, sorting, scope),
    }
    .map_err(|error| error.within("window"))
}

fn documents(spec: &Value, sorting: &WindowOrder, scope: &ParseScope) -> Result<Bounds> {
    let not_whole = || Error::new(9, "Numeric document-based bounds must be an integer of 32 bits");
    let [lower, upper] = both(spec, scope, &|value| whole_i32(value).map(i64::from).ok_or_else(not_whole))?;
    let (lower, upper) = (zero(&lower, 0), zero(&upper, 0));
    check_order(&lower, &upper, spec)?;
    let is_whole = matches!((&lower, &upper), (WindowBound::Unbounded, WindowBound::Unbounded));
    if !is_whole && !sorting.is_given {
        return Err(Error::new(5_339_901, "Document-based bounds require a sortBy"));
    }
    Ok(Bounds::Documents(lower, upper))
}

fn range(spec: &Value, window: &Object, sorting: &WindowOrder, scope: &ParseScope) -> Result<Bounds> {
    let unit = match window.get("unit") {
        None => None,
        Some(Value::String(name)) => Some(unit(name)?),
        Some(_) => return Err(Error::new(9, "'unit' must be a string")),
    };
    let bounds = match unit {
        Some(unit) => {
            let not_whole = || Error::new(9, "With 'unit', range-based bounds must be an integer of 32 bits");
            let [lower, upper] = both(spec, scope, &|value| whole_i32(value).map(i64::from).ok_or_else(not_whole))?;
            check_order(&zero(&lower, 0), &zero(&upper, 0), spec)?;
            Bounds::Dates(lower, upper, unit)
        }
        None => {
            let [lower, upper] = both(spec, scope, &|value| match value.is_number() {
                true => Ok(value.clone()),
                false => Err(Error::new(9, "Range-based bounds expression must be a number")),
            })?;
            check_order(&zero(&lower, Value::Int(0)), &zero(&upper, Value::Int(0)), spec)?;
            Bounds::Numbers(lower, upper)
        }
    };
    match sorting.keys {
        [(_, false)] => Ok(bounds),
        [(_, true)] => Err(Error::new(8_947_401, "Range-based bounds require an ascending sortBy")),
        _ => Err(Error::new(5_339_902, "Range-based bounds require sortBy a single field")),
    }
}

/// Replaces `Current` with the distance 0. Leaves other bounds unchanged.
fn zero<T: Clone>(bound: &WindowBound<T>, zero: T) -> WindowBound<T> {
    match bound {
        WindowBound::Current => WindowBound::Offset(zero),
        other => other.clone(),
    }
}

fn check_order<T: Ord>(lower: &WindowBound<T>, upper: &WindowBound<T>, spec: &Value) -> Result<()> {
    match (lower, upper) {
        (WindowBound::Offset(lower), WindowBound::Offset(upper)) if lower > upper => {
            err!(5_339_900, "Lower bound must not exceed upper bound: {}", excerpt(spec))
        }
        _ => Ok(()),
    }
}

/// Parses the name of a unit of time.
pub fn unit(name: &str) -> Result<Unit> {
    Unit::parse(name).ok_or_else(|| Error::new(9, format!("unknown time unit value: {}", excerpt_of(name))))
}

/// Parses both ends of a window. `read` converts the value of a constant expression.
fn both<T>(spec: &Value, scope: &ParseScope, read: &dyn Fn(&Value) -> Result<T>) -> Result<[WindowBound<T>; 2]> {
    let Some([lower, upper]) = spec.as_array() else {
        return err!(9, "Window bounds must be a 2-element array: {}", excerpt(spec));
    };
    Ok([bound(lower, scope, read)?, bound(upper, scope, read)?])
}

fn bound<T>(spec: &Value, scope: &ParseScope, read: &dyn Fn(&Value) -> Result<T>) -> Result<WindowBound<T>> {
    match spec.as_str() {
        Some("unbounded") => return Ok(WindowBound::Unbounded),
        Some("current") => return Ok(WindowBound::Current),
        Some(_) => return Err(Error::new(9, "Window bounds must be 'unbounded', 'current', or a number.")),
        None => {}
    }
    let expr = expr::parse(spec, scope)?;
    let Some(value) = expr.constant() else {
        return Err(Error::new(9, "Window bounds expression must be a constant."));
    };
    read(value).map(WindowBound::Offset)
}
