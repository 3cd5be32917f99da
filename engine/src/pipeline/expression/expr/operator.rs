//! Expression operators. Each operator has a name, arguments, a function and an example.

use std::fmt;
use std::sync::Arc;

use super::parse::parse_items;
use super::{Answer, Env, Expr, NULL, ParseScope, parse};
use crate::model::value::Value;
use crate::pipeline::value::documentation::NameDocumentation;
pub(super) use crate::pipeline::value::documentation::name_table;
use crate::pipeline::value::error::{Error, Result, err};

/// The table entry of an expression operator.
pub struct ExprOperator {
    /// The name and the documentation. The example consists of the expression, the input document and the result.
    pub word: NameDocumentation,
    form: ArgumentForm,
    eval: fn(&OperatorCall, &Env) -> Answer,
    volatile: bool,
}

/// The notation of the arguments.
pub(super) enum ArgumentForm {
    /// A fixed number of arguments in an array. A single argument may also be given without an array.
    Exactly(usize),
    Between(usize, usize),
    AnyNumber,
    /// An object with named arguments.
    Named(&'static NamedArguments),
    /// A special notation, with the function that parses the arguments.
    Own(fn(&Value, &ParseScope) -> Result<OperatorArguments>),
}

/// Arguments in the operator's order, and data prepared from the arguments.
pub(super) struct OperatorArguments {
    pub values: Vec<Option<Expr>>,
    pub prepared: Option<PreparedData>,
}

impl From<Vec<Option<Expr>>> for OperatorArguments {
    fn from(values: Vec<Option<Expr>>) -> OperatorArguments {
        OperatorArguments { values, prepared: None }
    }
}

/// Data computed once during parsing and reused by each evaluation.
pub(super) type PreparedData = Box<dyn std::any::Any + Send + Sync>;

/// Named arguments, with MongoDB's codes for their errors.
pub(super) struct NamedArguments {
    pub not_object: i32,
    pub unknown: i32,
    /// The arguments. Each entry contains the name of an argument, and the error code if the argument is missing. The
    /// code is `None` if the argument is optional.
    pub fields: &'static [(&'static str, Option<i32>)],
}

impl ExprOperator {
    pub(super) const fn new(
        word: NameDocumentation,
        form: ArgumentForm,
        eval: fn(&OperatorCall, &Env) -> Answer,
    ) -> ExprOperator {
        ExprOperator { word, form, eval, volatile: false }
    }

    /// Marks an operator whose result depends on more than its arguments, for example on the time.
    pub(super) const fn volatile(self) -> ExprOperator {
        ExprOperator { volatile: true, ..self }
    }

    /// Adds a remark about behavior that MongoDB users may not expect.
    pub(super) const fn remark(self, remark: &'static str) -> ExprOperator {
        ExprOperator { word: self.word.remark(remark), ..self }
    }
}

impl fmt::Debug for ExprOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.name)
    }
}

/// The name of the operator that returns random numbers.
pub(super) const RANDOM: &str = "$rand";
/// Reading an argument of at least this size counts as work of the query. The size of a string is in bytes, and the
/// size of an array is in items.
const METERED_SIZE: usize = 256;

/// An operator with its arguments.
pub(super) struct OperatorCall {
    operator: &'static ExprOperator,
    arguments: Box<[Option<Expr>]>,
    prepared: Option<PreparedData>,
}

impl fmt::Debug for OperatorCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.operator.word.name).field(&self.arguments).finish()
    }
}

impl OperatorCall {
    pub fn name(&self) -> &'static str {
        self.operator.word.name
    }

    pub fn eval(&self, env: &Env) -> Answer {
        (self.operator.eval)(self, env)
    }

    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Returns whether the specification contains the argument.
    pub fn has_argument(&self, index: usize) -> bool {
        self.expr(index).is_some()
    }

    pub fn expr(&self, index: usize) -> Option<&Expr> {
        self.arguments.get(index)?.as_ref()
    }

    /// Returns the value of an argument, or `None` if the argument is absent or its value is missing.
    pub fn field(&self, index: usize, env: &Env) -> Answer {
        let Some(argument) = self.expr(index) else { return Ok(None) };
        let value = argument.eval(env)?;
        // A large size counts as work of the query, because operators read the whole argument.
        match &value {
            Some(Value::String(text)) if text.len() >= METERED_SIZE => env.query.tick_bytes(text.len())?,
            Some(Value::Array(items)) if items.len() >= METERED_SIZE => env.query.tick_many(items.len())?,
            _ => {}
        }
        Ok(value)
    }

    /// Returns the value of an argument, or null if the value is missing.
    pub fn value(&self, index: usize, env: &Env) -> Result<Value> {
        Ok(self.field(index, env)?.unwrap_or_default())
    }

    /// Applies a function to the values of the first two arguments. The result is null if one of the values is null or
    /// missing. The function borrows the values, because returning both values would take longer than computing a
    /// `$mod`.
    #[inline]
    pub fn of_pair(&self, env: &Env, apply: impl FnOnce(&Value, &Value) -> Answer) -> Answer {
        let (first, second) = (self.value(0, env)?, self.value(1, env)?);
        if first.is_null() || second.is_null() {
            return NULL;
        }
        apply(&first, &second)
    }

    /// Evaluates an argument that is an array. Returns `None` if the argument is null or missing. The error for any
    /// other value consists of `complaint` and the name of the type.
    pub fn array(
        &self,
        index: usize,
        code: i32,
        complaint: impl fmt::Display,
        env: &Env,
    ) -> Result<Option<Arc<Vec<Value>>>> {
        match self.value(index, env)? {
            Value::Null => Ok(None),
            Value::Array(items) => Ok(Some(items)),
            other => err!(code, "{complaint} {}", other.type_name()),
        }
    }

    /// Evaluates an argument that is a string. Returns `None` if the argument is null or missing. The error for any
    /// other value consists of `complaint` and the name of the type.
    pub fn text(&self, index: usize, code: i32, complaint: impl fmt::Display, env: &Env) -> Result<Option<Arc<str>>> {
        match self.value(index, env)? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            other => err!(code, "{complaint} {}", other.type_name()),
        }
    }

    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().flatten()
    }

    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        self.prepared.as_ref()?.downcast_ref()
    }

    /// Returns the result of `$and` or `$or`, if a constant argument decides the result regardless of the other
    /// arguments.
    pub fn decided(&self) -> Option<bool> {
        let deciding = match self.operator.word.name {
            "$and" => false,
            "$or" => true,
            _ => return None,
        };
        let decides = |argument: &Expr| argument.constant().is_some_and(|value| Expr::truthy(Some(value)) == deciding);
        self.arguments().any(decides).then_some(deciding)
    }

    pub fn is_foldable(&self) -> bool {
        let is_constant =
            |argument: &Expr| matches!(argument.node, super::ExprNode::Constant(_) | super::ExprNode::Missing);
        !self.operator.volatile && self.arguments().all(is_constant)
    }
}

/// Parses the arguments of an operator.
pub(super) fn parse_call(operator: &'static ExprOperator, spec: &Value, scope: &ParseScope) -> Result<OperatorCall> {
    let OperatorArguments { values, prepared } = match &operator.form {
        ArgumentForm::Exactly(count) => {
            let values = positional(spec, scope)?;
            exact_count(operator.word.name, *count, values.len())?;
            values.into()
        }
        ArgumentForm::Between(min, max) => {
            let values = positional(spec, scope)?;
            if !(*min..=*max).contains(&values.len()) {
                return Err(range_error(operator.word.name, *min, *max, values.len()));
            }
            values.into()
        }
        ArgumentForm::AnyNumber => positional(spec, scope)?.into(),
        ArgumentForm::Named(form) => named(operator.word.name, form, spec, scope)?.into(),
        ArgumentForm::Own(read) => read(spec, scope)?,
    };
    Ok(OperatorCall { operator, arguments: values.into(), prepared })
}

pub(super) fn exact_count(name: &str, count: usize, actual: usize) -> Result<()> {
    if actual == count {
        return Ok(());
    }
    err!(16020, "Expression {name} takes exactly {count} arguments. {actual} were passed in.")
}

fn range_error(name: &str, min: usize, max: usize, actual: usize) -> Error {
    let message =
        format!("Expression {name} takes at least {min} arguments, and at most {max}, but {actual} were passed in.");
    Error::new(28667, message)
}

/// Parses the items of an array, or a single argument.
pub(super) fn positional(spec: &Value, scope: &ParseScope) -> Result<Vec<Option<Expr>>> {
    match spec {
        Value::Array(items) => Ok(parse_items(items, scope)?.into_iter().map(Some).collect()),
        alone => Ok(vec![Some(parse(alone, scope)?)]),
    }
}

/// Parses the named arguments in an object. Returns the arguments in the order of `form`.
pub(super) fn named(name: &str, form: &NamedArguments, spec: &Value, scope: &ParseScope) -> Result<Vec<Option<Expr>>> {
    let fields = named_specs(name, form, spec)?;
    let names = form.fields.iter().map(|(name, _)| *name);
    let parsed = |(name, field): (&'static str, Option<&Value>)| {
        field.map(|field| parse(field, scope).map_err(|error| error.within(name))).transpose()
    };
    names.zip(fields).map(parsed).collect()
}

/// Returns the unparsed arguments in an object, in the order of `form`.
pub(super) fn named_specs<'s>(name: &str, form: &NamedArguments, spec: &'s Value) -> Result<Vec<Option<&'s Value>>> {
    let Value::Object(object) = spec else {
        return err!(form.not_object, "{name} only supports an object as its argument, found: {}", spec.type_name());
    };
    for field in object.keys() {
        if !form.fields.iter().any(|(known, _)| *known == &**field) {
            let error = Error::new(form.unknown, format!("Unrecognized argument to {name}: {field}"));
            let error = error.within(field.clone());
            let known = form.fields.iter().map(|(known, _)| *known);
            return Err(error.suggesting(field, known));
        }
    }
    let mut specs = Vec::with_capacity(form.fields.len());
    for (field, required) in form.fields {
        let field_spec = object.get(field);
        if let (None, Some(code)) = (field_spec, required) {
            return err!(*code, "Missing '{field}' parameter to {name}");
        }
        specs.push(field_spec);
    }
    Ok(specs)
}

#[cfg(test)]
mod tests {
    use super::super::parse::MAX_DEPTH;
    use super::*;
    use crate::model::json;
    use crate::pipeline::value::context::Context;

    #[test]
    fn the_deepest_expressions_fit_a_small_stack_and_deeper_expressions_are_rejected() {
        let wrap = |depth: usize, open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let forms = [
            (r#"{"$not":"#, "}"),
            (r#"{"$add":["$a","#, "]}"),
            (r#"{"x":"#, "}"),
            (r#"["$a","#, "]"),
            (r#"{"$map":{"input":["$a"],"in":"#, "}}"),
            (r#"{"$switch":{"branches":[{"case":"$a","then":"#, "}]}}"),
            (r#"{"$let":{"vars":{"x":"$a"},"in":"#, "}}"),
            (r#"{"$reduce":{"input":["$a"],"initialValue":0,"in":"#, "}}"),
        ];
        let run = move || {
            let elapsed = || 0;
            let query = Context::new(0, 0, &elapsed, u64::MAX, 1 << 24);
            let row = json::parse(br#"{"a":1}"#).expect("JSON");
            for (open, close) in forms {
                let json_levels = open.matches(['{', '[']).count() - open.matches(['}', ']']).count();
                let depth = (json::MAX_DEPTH / json_levels).min(MAX_DEPTH) - 1;
                let spec = json::parse(wrap(depth, open, close).as_bytes()).expect("JSON");
                let parsed = parse(&spec, &ParseScope::root(&query)).expect("an expression within the depth limit");
                parsed.eval(&Env::new(&query, &row)).expect("an expression that evaluates");
            }
            let mut deep = Value::from("$a");
            for _ in 0..10_000 {
                deep = Value::from(vec![deep]);
            }
            assert!(parse(&deep, &ParseScope::root(&query)).is_err());
            // Dropping a value this deep would overflow the stack. The test does not cover the drop.
            std::mem::forget(deep);
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread").join().expect("no overflow");
    }
}
