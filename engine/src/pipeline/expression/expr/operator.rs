//! What an operator is: a row with its name, its arguments, its function and an example that runs.

use std::fmt;

use super::{Answer, Env, Expr, Scope, parse};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::word::Word;

/// One expression operator.
pub struct Operator {
    /// Its name and the like; the example's parts are expression, input document and result.
    pub word: Word,
    form: Form,
    eval: fn(&Call, &Env) -> Answer,
    volatile: bool,
}

/// How the arguments are written.
pub(super) enum Form {
    /// So many arguments, in an array or alone.
    Exactly(usize),
    Between(usize, usize),
    AnyNumber,
    /// An object with named arguments.
    Named(&'static Named),
    /// Read by the operator itself.
    Own(fn(&Value, &Scope) -> Result<Arguments>),
}

/// Arguments in the operator's order, and what was prepared from them.
pub(super) struct Arguments {
    pub values: Vec<Option<Expr>>,
    pub prepared: Option<Prepared>,
}

impl From<Vec<Option<Expr>>> for Arguments {
    fn from(values: Vec<Option<Expr>>) -> Arguments {
        Arguments { values, prepared: None }
    }
}

/// Work done at parse, so that evaluation need not repeat it.
pub(super) type Prepared = Box<dyn std::any::Any + Send + Sync>;

/// Named arguments with MongoDB's codes for what can be wrong with them.
pub(super) struct Named {
    pub not_object: i32,
    pub unknown: i32,
    /// Name, and the code of its absence where it is required.
    pub fields: &'static [(&'static str, Option<i32>)],
}

impl Operator {
    pub(super) const fn new(
        name: &'static str,
        arguments: &'static str,
        summary: &'static str,
        form: Form,
        eval: fn(&Call, &Env) -> Answer,
        example: [&'static str; 3],
    ) -> Operator {
        Operator { word: Word::new(name, arguments, summary, example), form, eval, volatile: false }
    }

    /// The value depends on more than the arguments.
    pub(super) const fn volatile(self) -> Operator {
        Operator { volatile: true, ..self }
    }

    /// What MongoDB's users will not expect.
    pub(super) const fn remark(self, remark: &'static str) -> Operator {
        Operator { word: self.word.remark(remark), ..self }
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.name)
    }
}

/// The operator whose value is drawn by chance.
pub(super) const RANDOM: &str = "$rand";
/// Bytes or items of an argument that the query's time is asked for.
const LARGE: usize = 256;

/// An operator with its arguments.
pub(super) struct Call {
    operator: &'static Operator,
    arguments: Box<[Option<Expr>]>,
    prepared: Option<Prepared>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.operator.word.name).field(&self.arguments).finish()
    }
}

impl Call {
    pub fn name(&self) -> &'static str {
        self.operator.word.name
    }

    pub fn eval(&self, env: &Env) -> Answer {
        (self.operator.eval)(self, env)
    }

    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether the argument was written.
    pub fn given(&self, index: usize) -> bool {
        self.expr(index).is_some()
    }

    pub fn expr(&self, index: usize) -> Option<&Expr> {
        self.arguments.get(index)?.as_ref()
    }

    /// An argument's value; `None` where it is missing or was not written.
    pub fn field(&self, index: usize, env: &Env) -> Answer {
        let Some(argument) = self.expr(index) else { return Ok(None) };
        let value = argument.eval(env)?;
        // Whoever asks for it looks at all of it.
        match &value {
            Some(Value::String(text)) if text.len() >= LARGE => env.query.tick_bytes(text.len())?,
            Some(Value::Array(items)) if items.len() >= LARGE => env.query.tick_many(items.len())?,
            _ => {}
        }
        Ok(value)
    }

    /// An argument's value, missing read as null.
    pub fn value(&self, index: usize, env: &Env) -> Result<Value> {
        Ok(self.field(index, env)?.unwrap_or_default())
    }

    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().flatten()
    }

    pub fn prepared<T: 'static>(&self) -> Option<&T> {
        self.prepared.as_ref()?.downcast_ref()
    }

    /// What `$and` and `$or` give whatever their other arguments are, where a constant decides.
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
        let is_constant = |argument: &Expr| matches!(argument.node, super::Node::Constant(_) | super::Node::Missing);
        !self.operator.volatile && self.arguments().all(is_constant)
    }
}

/// Reads an operator's arguments.
pub(super) fn parse_call(operator: &'static Operator, spec: &Value, scope: &Scope) -> Result<Call> {
    let Arguments { values, prepared } = match &operator.form {
        Form::Exactly(count) => {
            let values = positional(spec, scope)?;
            exact_count(operator.word.name, *count, values.len())?;
            values.into()
        }
        Form::Between(min, max) => {
            let values = positional(spec, scope)?;
            if !(*min..=*max).contains(&values.len()) {
                return Err(range_error(operator.word.name, *min, *max, values.len()));
            }
            values.into()
        }
        Form::AnyNumber => positional(spec, scope)?.into(),
        Form::Named(form) => named(operator.word.name, form, spec, scope)?.into(),
        Form::Own(read) => read(spec, scope)?,
    };
    Ok(Call { operator, arguments: values.into(), prepared })
}

pub(super) fn exact_count(name: &str, count: usize, given: usize) -> Result<()> {
    if given == count {
        return Ok(());
    }
    let message = format!("Expression {name} takes exactly {count} arguments. {given} were passed in.");
    Err(Error::new(16020, message))
}

fn range_error(name: &str, min: usize, max: usize, given: usize) -> Error {
    let message =
        format!("Expression {name} takes at least {min} arguments, and at most {max}, but {given} were passed in.");
    Error::new(28667, message)
}

/// An array's items, or the lone argument.
pub(super) fn positional(spec: &Value, scope: &Scope) -> Result<Vec<Option<Expr>>> {
    match spec {
        Value::Array(items) => items.iter().map(|item| parse(item, scope).map(Some)).collect(),
        alone => Ok(vec![Some(parse(alone, scope)?)]),
    }
}

/// The arguments of an object, in the order of `form`.
pub(super) fn named(name: &str, form: &Named, spec: &Value, scope: &Scope) -> Result<Vec<Option<Expr>>> {
    let fields = named_specs(name, form, spec)?;
    fields.into_iter().map(|field| field.map(|field| parse(field, scope)).transpose()).collect()
}

/// As [`named`], not yet read.
pub(super) fn named_specs<'s>(name: &str, form: &Named, spec: &'s Value) -> Result<Vec<Option<&'s Value>>> {
    let Value::Object(object) = spec else {
        let found = spec.type_name();
        let message = format!("{name} only supports an object as its argument, found: {found}");
        return Err(Error::new(form.not_object, message));
    };
    for field in object.keys() {
        if !form.fields.iter().any(|(known, _)| *known == &**field) {
            let error = Error::new(form.unknown, format!("Unrecognized argument to {name}: {field}"));
            let known = form.fields.iter().map(|(known, _)| *known);
            return Err(match crate::pipeline::value::hint::did_you_mean(field, known) {
                Some(hint) => error.with_hint(hint),
                None => error,
            });
        }
    }
    let mut specs = Vec::with_capacity(form.fields.len());
    for (field, required) in form.fields {
        let given = object.get(field);
        if let (None, Some(code)) = (given, required) {
            return Err(Error::new(*code, format!("Missing '{field}' parameter to {name}")));
        }
        specs.push(given);
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
    fn the_deepest_expression_fits_a_small_stack() {
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
                let parsed = parse(&spec, &Scope::root(&query)).expect("it is not too deep");
                parsed.eval(&Env::new(&query, &row)).expect("it has a value");
            }
            let mut deep = Value::from("$a");
            for _ in 0..10_000 {
                deep = Value::from(vec![deep]);
            }
            assert!(parse(&deep, &Scope::root(&query)).is_err());
            // Dropping so deep a value is not what is tested.
            std::mem::forget(deep);
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread").join().expect("no overflow");
    }
}
