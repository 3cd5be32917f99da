//! Accumulators: the functions that `$group` and similar stages compute over the rows of a group.

mod collect;
mod kind;
mod operator;
mod ranked;
mod single;

pub use kind::{AccumulatorKind, DeviationKind, Extremum, OrderEnd};
pub use operator::{AccumulatorOperator, catalogue, parse, parse_argument};

use super::expr::{Env, Expr};
use super::input_value::InputValue;
use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result};
use crate::pipeline::value::memory::KeptBytes;
use crate::pipeline::value::number::parse_count;
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::statistics::{self, Deviation};
use crate::pipeline::value::sum::Sum;

/// An accumulator with its parsed arguments.
#[derive(Debug, Clone)]
pub struct Accumulator {
    operator: &'static AccumulatorOperator,
    input: Expr,
    kind: AccumulatorKind,
}

/// The intermediate result of an accumulator for one group.
#[derive(Debug)]
pub struct AccumulatorState {
    data: Data,
    memory: KeptBytes,
}

#[derive(Debug)]
enum Data {
    Sum(Sum),
    Average(Sum, u64),
    One(single::SingleValue),
    Items(Vec<Value>),
    Set(collect::DistinctValues),
    Object(collect::MergedObject),
    Deviation(Deviation),
    Numbers(Vec<f64>),
    Bounded(ranked::TopValues),
}

impl AccumulatorState {
    /// Returns the number of bytes that the query is charged for the values that the state keeps.
    pub fn kept_bytes(&self) -> usize {
        self.memory.0
    }
}

impl Accumulator {
    pub fn name(&self) -> &'static str {
        self.operator.word.name
    }

    pub fn kind(&self) -> &AccumulatorKind {
        &self.kind
    }

    /// Returns the expression whose values the accumulator collects.
    pub fn input(&self) -> &Expr {
        &self.input
    }

    /// Visits the paths of the row that the accumulator reads.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        self.input.visit_paths(visit);
        if let AccumulatorKind::Ranked(_, sort, _) = &self.kind {
            sort.visit_paths(visit);
        }
    }

    /// Returns the expression for the number of values to keep, or `None` if the specification has no `n`.
    fn count(&self) -> Option<&Expr> {
        match &self.kind {
            AccumulatorKind::Edge(_, count) | AccumulatorKind::ExtremeN(_, count) => Some(count),
            AccumulatorKind::Ranked(_, _, count) => count.as_ref(),
            _ => None,
        }
    }

    /// Returns the number of values to keep, or 1 if the specification has no `n`. The expression for the number reads
    /// variables, but no row.
    pub fn kept(&self, env: &Env) -> Result<usize> {
        self.count().map_or(Ok(1), |count| kept(count, env))
    }

    /// Returns whether the accumulator uses random numbers. The values of such an accumulator depend on the random
    /// numbers that were drawn before.
    pub fn draws(&self) -> bool {
        self.input.draws() || self.count().is_some_and(Expr::draws)
    }

    /// Returns the initial state of the group with the key `id`. If the accumulator keeps a limited number of values,
    /// the expression for this number may read variables and the fields of the key, but no row.
    pub fn start(&self, id: &Value, env: &Env) -> Result<AccumulatorState> {
        let data = match &self.kind {
            AccumulatorKind::Sum => Data::Sum(Sum::default()),
            AccumulatorKind::Average => Data::Average(Sum::default(), 0),
            AccumulatorKind::Extreme(_) | AccumulatorKind::First | AccumulatorKind::Last => {
                Data::One(single::SingleValue::default())
            }
            AccumulatorKind::Push | AccumulatorKind::ConcatArrays => Data::Items(Vec::new()),
            AccumulatorKind::AddToSet | AccumulatorKind::SetUnion => Data::Set(collect::DistinctValues::default()),
            AccumulatorKind::MergeObjects => Data::Object(collect::MergedObject::default()),
            AccumulatorKind::Deviation(_) => Data::Deviation(Deviation::default()),
            AccumulatorKind::Percentiles(_) | AccumulatorKind::Median => Data::Numbers(Vec::new()),
            AccumulatorKind::Edge(..) | AccumulatorKind::ExtremeN(..) | AccumulatorKind::Ranked(..) => {
                let none = Value::from(Object::new());
                let root = if id.as_object().is_some() { id } else { &none };
                Data::Bounded(ranked::TopValues::new(self.count(), &env.over(root)).map_err(in_group)?)
            }
        };
        Ok(AccumulatorState { data, memory: KeptBytes::default() })
    }

    /// Adds the row of `env` to a group's state, and charges the query for the values that the state keeps. `built` is
    /// the maximum number of bytes of the row that were built for the query. All other bytes of the row belong to the
    /// source.
    pub fn add(&self, state: &mut AccumulatorState, built: usize, env: &Env) -> Result<()> {
        self.add_row(state, built, env).map_err(in_group)
    }

    fn add_row(&self, state: &mut AccumulatorState, built: usize, env: &Env) -> Result<()> {
        if self.is_final(state) {
            return Ok(());
        }
        match &mut state.data {
            Data::Bounded(bounded) => ranked::add(&self.kind, &self.input, bounded, built, &mut state.memory, env),
            _ => self.add_input(state, InputValue::of_row(&self.input, built, env)?, env),
        }
    }

    /// Adds the input value of one row.
    fn add_input(&self, state: &mut AccumulatorState, input: InputValue, env: &Env) -> Result<()> {
        let (value, memory) = (input.value.as_ref(), &mut state.memory);
        match &mut state.data {
            Data::Sum(sum) => sum.add(value),
            Data::Average(sum, count) => *count += u64::from(sum.add_number(value)),
            Data::One(kept) => single::add(&self.kind, kept, input, memory, env)?,
            Data::Items(items) => collect::add(&self.kind, items, input, memory, env)?,
            Data::Set(set) => collect::add_to_set(&self.kind, set, input, memory, env)?,
            Data::Object(merged) => collect::merge(merged, input, memory, env)?,
            Data::Deviation(deviation) => deviation.add(value),
            Data::Numbers(numbers) => statistics::add_number(numbers, value, memory, env.query)?,
            Data::Bounded(_) => {}
        }
        Ok(())
    }

    /// Returns the input expression of an accumulator that reads nothing else from a row and accepts every value.
    /// Returns `None` for all other accumulators, and for accumulators with an argument `n`.
    pub fn value_input(&self) -> Option<&Expr> {
        match &self.kind {
            AccumulatorKind::Sum
            | AccumulatorKind::Average
            | AccumulatorKind::Extreme(_)
            | AccumulatorKind::First
            | AccumulatorKind::Last
            | AccumulatorKind::Push
            | AccumulatorKind::AddToSet => Some(&self.input),
            AccumulatorKind::Deviation(_) | AccumulatorKind::Percentiles(_) | AccumulatorKind::Median => {
                Some(&self.input)
            }
            AccumulatorKind::MergeObjects | AccumulatorKind::SetUnion | AccumulatorKind::ConcatArrays => None,
            AccumulatorKind::Edge(..) | AccumulatorKind::ExtremeN(..) | AccumulatorKind::Ranked(..) => None,
        }
    }

    /// Adds one row. `input` is the row's value of the expression that [`value_input`](Accumulator::value_input)
    /// returns.
    pub fn add_value(&self, state: &mut AccumulatorState, input: InputValue, env: &Env) -> Result<()> {
        if self.is_final(state) { Ok(()) } else { self.add_input(state, input, env) }
    }

    /// Returns whether the accumulator is a `$first` that already has its value. Further rows cannot change this value.
    pub fn is_final(&self, state: &AccumulatorState) -> bool {
        matches!((&self.kind, &state.data), (AccumulatorKind::First, Data::One(kept)) if kept.value.is_some())
    }

    /// Returns the result of the group. The charges for the values that the state keeps are not canceled.
    pub fn finish(&self, state: AccumulatorState) -> Value {
        match (state.data, &self.kind) {
            (Data::Sum(sum), _) => sum.total(),
            (Data::Average(sum, count), _) => sum.average(count),
            (Data::One(kept), _) => kept.value.unwrap_or_default(),
            (Data::Items(items), _) => items.into(),
            (Data::Set(set), _) => set.into_value(),
            (Data::Object(merged), _) => merged.object.into(),
            (Data::Deviation(deviation), AccumulatorKind::Deviation(DeviationKind::Sample)) => deviation.sample(),
            (Data::Deviation(deviation), _) => deviation.population(),
            (Data::Numbers(mut numbers), AccumulatorKind::Percentiles(ranks)) => {
                statistics::percentiles(&mut numbers, ranks)
            }
            (Data::Numbers(mut numbers), _) => statistics::median(&mut numbers),
            (Data::Bounded(bounded), kind) => ranked::finish(kind, bounded),
        }
    }
}

/// Evaluates `count`, the expression for the number of values to keep. The expression reads variables, but no row.
pub fn kept(count: &Expr, env: &Env) -> Result<usize> {
    let none = Value::from(Object::new());
    parse_count(&count.eval(&env.over(&none))?.unwrap_or_default())
}

/// Replaces the code of an error about a division by zero, because MongoDB uses a different code for this error in a
/// group.
fn in_group(error: Error) -> Error {
    match (&error.code, error.message.as_str()) {
        (PipelineErrorCode::Number(2), "can't $divide by zero") => {
            Error { code: PipelineErrorCode::Number(4_848_401), ..error }
        }
        (PipelineErrorCode::Number(16610), "can't $mod by zero") => {
            Error { code: PipelineErrorCode::Number(4_848_403), ..error }
        }
        _ => error,
    }
}
