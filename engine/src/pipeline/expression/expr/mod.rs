//! Expressions. An expression is parsed once against the variables in scope, and evaluated for each row.

mod arithmetic;
mod array;
mod bitwise;
mod boolean;
pub mod catalogue;
mod comparison;
mod conditional;
mod conversion;
mod date;
mod hash;
mod measure;
mod number_text;
mod object;
mod operator;
mod parse;
mod regex;
mod rounding;
mod scope;
mod sequence;
mod set;
mod similarity;
mod statistics;
mod string;
mod system;
mod trigonometry;
mod trim;
mod unit;
mod variable;

use std::ops::Range;
use std::sync::Arc;

pub use parse::{ParseScope, parse, variable};
pub use scope::{Env, Frame};
pub use system::VARIABLES;
pub use unit::{Unit, add_units};

use operator::OperatorCall;

use crate::model::value::{Object, Value};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::own_bytes;
use crate::pipeline::value::path::FieldPath;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expr {
    node: ExprNode,
}

#[derive(Debug, Clone)]
enum ExprNode {
    Constant(Value),
    /// A missing value, such as `$$REMOVE`.
    Missing,
    /// A path in the row.
    Path(FieldPath),
    /// A user variable, and a path in the variable's value.
    Variable(UserVariable, FieldPath),
    System(System, FieldPath),
    Array(Arc<[Expr]>),
    Object(Arc<[(Arc<str>, Expr)]>),
    Call(Arc<OperatorCall>),
}

/// The place of a user variable among the variables that are visible to an expression.
#[derive(Debug, Clone, Copy)]
struct UserVariable {
    /// The number of visible user variables that were bound before this variable.
    outer: usize,
    /// The number of visible user variables that were bound after this variable.
    inner: usize,
}

impl UserVariable {
    /// Returns the place of the innermost variable with a name, or `None` if no variable has the name. `names` lists
    /// the variables from the outermost to the innermost.
    fn find(name: &str, names: &[Arc<str>]) -> Option<UserVariable> {
        let outer = names.iter().rposition(|known| **known == *name)?;
        Some(UserVariable { outer, inner: names.len() - 1 - outer })
    }
}

/// Variables whose values come from the query.
#[derive(Debug, Clone, Copy)]
enum System {
    Now,
    User,
    Workspace,
}

/// The shape or the type that all values of an expression have. [`ValueShape::Any`] means that neither is known before
/// the evaluation.
#[derive(Debug, Clone, Copy)]
pub enum ValueShape<'e> {
    /// The whole row.
    Row,
    /// The value at a path of the row.
    Path(&'e FieldPath),
    /// An object with the values of these expressions.
    Object(&'e [(Arc<str>, Expr)]),
    /// A date, or null.
    Date,
    /// A decimal, null, or a double that is infinite or NaN.
    Decimal,
    /// Neither a date nor a decimal.
    Plain,
    /// The value of one of the [`Expr::choices`] of this expression, or one or more items of such a value.
    Choice(&'e Expr),
    Any,
}

/// The operators that return only dates or null, apart from the `onError` and `onNull` values of `$dateFromString`.
/// Other operators, such as `$add` and `$convert`, may return dates as well.
pub const OF_DATES: [&str; 6] =
    ["$dateAdd", "$dateFromParts", "$dateFromString", "$dateSubtract", "$dateTrunc", "$toDate"];
/// Common operators that return strings or null, and therefore neither dates nor decimals. The `onNull` value of
/// `$dateToString`, which may have any type, is not considered.
const OF_TEXTS: [&str; 9] =
    ["$concat", "$dateToString", "$substr", "$substrBytes", "$substrCP", "$toLower", "$toString", "$toUpper", "$type"];

/// Operators that return one of their arguments, an item of an argument, or some items of an argument.
const CHOOSING: [&str; 9] =
    ["$arrayElemAt", "$cond", "$first", "$ifNull", "$last", "$max", "$min", "$reverseArray", "$slice"];

/// The result of an evaluation. `None` represents a missing field.
type Answer = Result<Option<Value>>;

/// The result `null`.
const NULL: Answer = Ok(Some(Value::Null));

/// Wraps a value as the result of an evaluation.
fn some(value: impl Into<Value>) -> Answer {
    Ok(Some(value.into()))
}

impl Expr {
    fn constant_of(value: impl Into<Value>) -> Expr {
        Expr { node: ExprNode::Constant(value.into()) }
    }

    /// Returns the value for one row, or `None` if the value is missing.
    pub fn eval(&self, env: &Env) -> Answer {
        if let ExprNode::Constant(value) = &self.node {
            return Ok(Some(value.clone()));
        }
        env.query.tick()?;
        match &self.node {
            ExprNode::Constant(value) => Ok(Some(value.clone())),
            ExprNode::Missing => Ok(None),
            ExprNode::Path(path) => {
                if path.segments().is_empty() {
                    // A source builds the row at each read, so a row that is kept takes memory in addition to the
                    // source.
                    env.query.charge(own_bytes(env.root))?;
                }
                path.eval(env.root, env.query)
            }
            ExprNode::Variable(variable, path) => match env.variable(variable.inner) {
                Some(value) => path.eval(value, env.query),
                None => Ok(None),
            },
            ExprNode::System(system, path) => system_value(*system, path, env),
            ExprNode::Call(call) => call.eval(env),
            ExprNode::Array(items) => eval_array(items, env),
            ExprNode::Object(fields) => eval_object(fields, env),
        }
    }

    /// Returns the value of a constant, or `None` for any other expression.
    pub fn constant(&self) -> Option<&Value> {
        match &self.node {
            ExprNode::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the path of an expression that consists of a path, or `None` for any other expression and for the whole
    /// row.
    pub fn plain_path(&self) -> Option<&FieldPath> {
        match &self.node {
            ExprNode::Path(path) if !path.segments().is_empty() => Some(path),
            _ => None,
        }
    }

    /// Returns the shape or the type of all values of the expression, as far as known before the evaluation.
    pub fn outcome(&self) -> ValueShape<'_> {
        match &self.node {
            ExprNode::Constant(Value::Date(_)) => ValueShape::Date,
            ExprNode::Constant(Value::Decimal(_)) => ValueShape::Decimal,
            ExprNode::Constant(_) => ValueShape::Plain,
            ExprNode::Path(path) if path.segments().is_empty() => ValueShape::Row,
            ExprNode::Path(path) => ValueShape::Path(path),
            ExprNode::System(System::Now, path) if path.segments().is_empty() => ValueShape::Date,
            ExprNode::Object(fields) => ValueShape::Object(fields),
            ExprNode::Call(call) if OF_DATES.contains(&call.name()) => ValueShape::Date,
            ExprNode::Call(call) if call.name() == "$toDecimal" => ValueShape::Decimal,
            ExprNode::Call(call) if OF_TEXTS.contains(&call.name()) => ValueShape::Plain,
            ExprNode::Call(call) if CHOOSING.contains(&call.name()) => ValueShape::Choice(self),
            ExprNode::Missing
            | ExprNode::Variable(..)
            | ExprNode::System(..)
            | ExprNode::Array(_)
            | ExprNode::Call(_) => ValueShape::Any,
        }
    }

    /// Returns the arguments that can supply the result of an operator in [`CHOOSING`]: the operator returns one of the
    /// arguments, or items of one of the arguments. Omits constant nulls.
    pub fn choices(&self) -> Vec<&Expr> {
        let ExprNode::Call(call) = &self.node else { return Vec::new() };
        let (skipped, taken) = match call.name() {
            // The first argument is the condition.
            "$cond" => (1, usize::MAX),
            "$arrayElemAt" | "$slice" => (0, 1),
            _ => (0, usize::MAX),
        };
        let arguments = call.arguments().skip(skipped).take(taken);
        arguments.filter(|argument| !matches!(argument.node, ExprNode::Constant(Value::Null))).collect()
    }

    /// Returns the fields of the object that the expression builds, or `None` if the expression does not build an
    /// object.
    pub fn fields(&self) -> Option<&[(Arc<str>, Expr)]> {
        match &self.node {
            ExprNode::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// Visits the paths that the expression reads from the row. The empty path denotes the whole row.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        match &self.node {
            ExprNode::Path(path) => visit(path),
            ExprNode::Array(items) => items.iter().for_each(|item| item.visit_paths(visit)),
            ExprNode::Object(fields) => fields.iter().for_each(|(_, field)| field.visit_paths(visit)),
            ExprNode::Call(call) => call.arguments().for_each(|argument| argument.visit_paths(visit)),
            ExprNode::Constant(_) | ExprNode::Missing | ExprNode::Variable(..) | ExprNode::System(..) => {}
        }
    }

    /// Returns whether the expression or one of the expressions inside it passes the test.
    fn any(&self, test: &dyn Fn(&ExprNode) -> bool) -> bool {
        test(&self.node)
            || match &self.node {
                ExprNode::Array(items) => items.iter().any(|item| item.any(test)),
                ExprNode::Object(fields) => fields.iter().any(|(_, field)| field.any(test)),
                ExprNode::Call(call) => call.arguments().any(|argument| argument.any(test)),
                ExprNode::Constant(_)
                | ExprNode::Missing
                | ExprNode::Path(_)
                | ExprNode::Variable(..)
                | ExprNode::System(..) => false,
            }
    }

    /// Returns whether the expression reads the time or one of the first `variables` user variables, or uses random
    /// numbers. The value of such an expression is known only when the pipeline runs.
    pub fn depends_on_run(&self, variables: usize) -> bool {
        let reads = |node: &ExprNode| match node {
            ExprNode::Variable(variable, _) => variable.outer < variables,
            ExprNode::System(System::Now, _) => true,
            _ => false,
        };
        self.draws() || self.any(&reads)
    }

    /// Returns whether the expression reads a user variable whose number is in `numbers`. The outermost variable has
    /// the number 0.
    pub fn reads_variables(&self, numbers: &Range<usize>) -> bool {
        self.any(&|node| matches!(node, ExprNode::Variable(variable, _) if numbers.contains(&variable.outer)))
    }

    /// Returns whether the expression uses random numbers. The value of such an expression depends on the random
    /// numbers that were drawn before.
    pub fn draws(&self) -> bool {
        self.any(&|node| matches!(node, ExprNode::Call(call) if call.name() == operator::RANDOM))
    }

    /// Returns `true` only if the evaluation returns the same value for a row each time and cannot fail. An evaluation
    /// that exceeds a limit of the query fails nevertheless.
    pub fn never_fails(&self) -> bool {
        const INFALLIBLE: [&str; 15] = [
            "$and",
            "$cmp",
            "$cond",
            "$eq",
            "$gt",
            "$gte",
            "$ifNull",
            "$isArray",
            "$isNumber",
            "$lt",
            "$lte",
            "$ne",
            "$not",
            "$or",
            "$type",
        ];
        !self.any(&|node| matches!(node, ExprNode::Call(call) if !INFALLIBLE.contains(&call.name())))
    }

    /// Returns whether a value counts as true. `false`, zero, null and a missing value count as false.
    pub fn truthy(value: Option<&Value>) -> bool {
        match value {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(Value::Int(number)) => *number != 0,
            Some(Value::Double(number)) => *number != 0.0,
            Some(Value::Decimal(number)) => !number.is_zero(),
            Some(_) => true,
        }
    }
}

fn system_value(system: System, path: &FieldPath, env: &Env) -> Answer {
    let query = env.query;
    match system {
        System::Now => path.eval(&Value::Date(query.now_ms), query),
        System::User => path.eval(&query.user, query),
        System::Workspace => path.eval(&query.workspace, query),
    }
}

fn eval_array(items: &[Expr], env: &Env) -> Answer {
    env.query.charge(items.len() * size_of::<Value>())?;
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(item.eval(env)?.unwrap_or_default());
    }
    some(values)
}

fn eval_object(fields: &[(Arc<str>, Expr)], env: &Env) -> Answer {
    env.query.charge(fields.len() * size_of::<(Arc<str>, Value)>())?;
    let mut object = Object::with_capacity(fields.len());
    for (name, field) in fields {
        if let Some(value) = field.eval(env)? {
            object.push(name.clone(), value);
        }
    }
    some(object)
}
