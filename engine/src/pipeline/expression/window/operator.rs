//! The table of the functions that only `$setWindowFields` supports. Every accumulator is a window function as well.

use std::fmt;

use super::function::WindowFunction;
use super::parse::{self, WindowCall};
use crate::pipeline::expression::accumulator::DeviationKind;
use crate::pipeline::expression::window::function::Ranking;
use crate::pipeline::value::documentation::{NameDocumentation, name_table};
use crate::pipeline::value::error::Result;

/// The table entry of a window function.
pub struct WindowOperator {
    /// The name and the documentation. The example consists of the function, an array of input documents, and the
    /// results for these documents, sorted by `t`.
    pub word: NameDocumentation,
    pub(super) read: fn(&WindowCall) -> Result<WindowFunction>,
    /// Whether the function accepts a `window`.
    pub(super) has_window: bool,
}

impl fmt::Debug for WindowOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.name)
    }
}

const fn row(word: NameDocumentation, read: fn(&WindowCall) -> Result<WindowFunction>) -> WindowOperator {
    WindowOperator { word, read, has_window: true }
}

impl WindowOperator {
    const fn without_window(self) -> WindowOperator {
        WindowOperator { has_window: false, ..self }
    }

    const fn remark(self, remark: &'static str) -> WindowOperator {
        WindowOperator { word: self.word.remark(remark), ..self }
    }
}

pub(super) static OPERATORS: &[WindowOperator] = name_table! { row:
    /// Returns the population covariance of the pairs of numbers in the window.
    "$covariancePop"("pair: array") [
        r#"{"$covariancePop":["$t","$a"],"window":{"documents":["unbounded","current"]}}"#,
        r#"[{"t":1,"a":1},{"t":3,"a":3}]"#,
        "[0.0,1.0]",
    ]: |call| parse::covariance(call, DeviationKind::Population);
    /// Returns the sample covariance of the pairs of numbers in the window.
    "$covarianceSamp"("pair: array") [
        r#"{"$covarianceSamp":["$t","$a"],"window":{"documents":["unbounded","current"]}}"#,
        r#"[{"t":1,"a":1},{"t":3,"a":3}]"#,
        "[null,2.0]",
    ]: |call| parse::covariance(call, DeviationKind::Sample);
    /// Returns the rank of the row; rows with equal sort values have the same rank, and the ranks have no gaps.
    "$denseRank"("") [r#"{"$denseRank":{}}"#, r#"[{"t":1},{"t":1},{"t":5}]"#, "[1,1,2]"].without_window():
        |call| parse::rank(call, Ranking::Dense);
    /// Returns the average rate of change between the first and the last row of the window.
    "$derivative"("input: number | date, unit?: string") [
        r#"{"$derivative":{"input":"$a"},"window":{"documents":[-1,0]}}"#,
        r#"[{"t":1,"a":2},{"t":3,"a":8}]"#,
        "[null,3.0]",
    ]: parse::derivative;
    /// Returns the place of the row in its partition, from 1.
    "$documentNumber"("") [r#"{"$documentNumber":{}}"#, r#"[{"t":1},{"t":1},{"t":5}]"#, "[1,2,3]"].without_window():
        |call| parse::rank(call, Ranking::Number);
    /// Returns the exponential moving average, with the weight `alpha` or 2/(N+1) for the current row.
    "$expMovingAvg"("input: number, N?: integer, alpha?: number")
        [r#"{"$expMovingAvg":{"input":"$a","alpha":0.5}}"#, r#"[{"t":1,"a":4},{"t":2,"a":8}]"#, "[4.0,6.0]"]
        .without_window()
        .remark("The average is a double; MongoDB computes decimals."): parse::moving_average;
    /// Returns the area under the curve of the window's values, computed with the trapezoidal rule.
    "$integral"("input: number, unit?: string") [
        r#"{"$integral":{"input":"$a"},"window":{"documents":["unbounded","current"]}}"#,
        r#"[{"t":1,"a":2},{"t":3,"a":4}]"#,
        "[0,6.0]",
    ]: parse::integral;
    /// Replaces null and missing values by linear interpolation between the known neighbors.
    "$linearFill"("expression: number")
        [r#"{"$linearFill":"$a"}"#, r#"[{"t":1,"a":2},{"t":2},{"t":3,"a":4}]"#, "[2,3.0,4]"].without_window():
        parse::linear_fill;
    /// Returns the last value up to the current row that is neither null nor missing.
    "$locf"("expression: any") [r#"{"$locf":"$a"}"#, r#"[{"t":1,"a":2},{"t":2},{"t":3,"a":4}]"#, "[2,2,4]"]
        .without_window(): parse::last_known;
    /// Maps the value linearly, so that the least value of the window becomes `min` and the greatest value becomes
    /// `max`.
    "$minMaxScaler"("input: number, min?: number, max?: number")
        [r#"{"$minMaxScaler":{"input":"$a"}}"#, r#"[{"t":1,"a":5},{"t":2,"a":7},{"t":3,"a":9}]"#, "[0.0,0.5,1.0]"]
        .remark("Without `min` and `max`, the interval is from 0 to 1."): parse::scale;
    /// Returns the rank of the row; rows with equal sort values have the same rank, and a gap follows such rows.
    "$rank"("") [r#"{"$rank":{}}"#, r#"[{"t":1},{"t":1},{"t":5}]"#, "[1,1,3]"].without_window():
        |call| parse::rank(call, Ranking::Rank);
    /// Returns the value of the row that is `by` rows after the current row; a negative `by` selects an earlier row.
    "$shift"("output: any, by: integer, default?: any")
        [r#"{"$shift":{"output":"$a","by":-1,"default":0}}"#, r#"[{"t":1,"a":5},{"t":2,"a":7}]"#, "[0,5]"]
        .without_window(): parse::shift;
};

/// Returns the window functions that are not accumulators.
pub fn catalogue() -> impl Iterator<Item = &'static WindowOperator> {
    OPERATORS.iter()
}
