//! The explanation of a run: the source, the work that is pushed to the source, and the operators, with the number of
//! rows and the time of each operator.

use crate::model::value::{Object, Value};
use crate::pipeline::run::meter::OperatorMeter;
use crate::pipeline::run::program::Program;
use crate::pipeline::source::scan::Scan;

/// Returns the plan with its measurements. `read` contains the measurements of the source.
pub fn explain(
    program: &Program,
    scans: &[Scan],
    rules: &[&'static str],
    meters: &[OperatorMeter],
    read: &OperatorMeter,
) -> Value {
    let Value::Array(plan) = program.describe(scans) else { return Value::Null };
    let mut stages = Vec::with_capacity(plan.len());
    let mut below = 0;
    for (number, (entry, meter)) in plan.iter().zip(std::iter::once(read).chain(meters)).enumerate() {
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        if number == 0 && !read.is_by_columns() {
            entry.remove("columns");
        }
        let us = meter.us();
        entry.insert("rows", int(meter.rows()));
        entry.insert("us", int(us.saturating_sub(below)));
        below = us;
        stages.push(Value::from(entry));
    }
    let rules: Vec<Value> = rules.iter().copied().map(Value::from).collect();
    Object::from_iter([("stages", Value::from(stages)), ("rules", rules.into())]).into()
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
