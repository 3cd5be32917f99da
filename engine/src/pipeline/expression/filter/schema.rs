//! `$jsonSchema`: checks whether a value is valid under a schema.

use rustc_hash::FxHashSet;

use super::types::TypeSet;
use crate::model::decimal;
use crate::model::number::remainder;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::expression::quantifier::all;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{measure, measure_all};
use crate::pipeline::value::number::whole_double;
use crate::pipeline::value::regex::Regex;

/// A schema. A valid value satisfies all keywords of the schema.
#[derive(Debug, Clone, Default)]
pub struct FilterSchema {
    pub keywords: Vec<Keyword>,
}

/// A keyword of a schema. A keyword that does not apply to the type of a value accepts the value.
#[derive(Debug, Clone)]
pub enum Keyword {
    Type(TypeSet),
    Enum(Vec<Value>),
    AllOf(Vec<FilterSchema>),
    AnyOf(Vec<FilterSchema>),
    OneOf(Vec<FilterSchema>),
    Not(FilterSchema),
    Minimum { bound: Value, exclusive: bool },
    Maximum { bound: Value, exclusive: bool },
    MultipleOf(Value),
    MinLength(usize),
    MaxLength(usize),
    Pattern(Regex),
    MinItems(usize),
    MaxItems(usize),
    UniqueItems,
    Items(Items),
    MinProperties(usize),
    MaxProperties(usize),
    Required(Vec<String>),
    Properties(Properties),
    Dependencies(Vec<(String, Dependency)>),
}

/// The schemas of the items of an array.
#[derive(Debug, Clone)]
pub enum Items {
    Each(FilterSchema),
    /// The schemas of the first items, one for each item, and the rule for the remaining items.
    Positional(Vec<FilterSchema>, SchemaRest),
}

/// The schemas of the fields of an object, by name and by pattern, and the rule for the other fields.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    pub named: Vec<(String, FilterSchema)>,
    pub patterns: Vec<(Regex, FilterSchema)>,
    pub rest: SchemaRest,
}

/// The rule for fields or items to which no other keyword applies.
#[derive(Debug, Clone, Default)]
pub enum SchemaRest {
    #[default]
    Allowed,
    Refused,
    Like(FilterSchema),
}

/// The requirement on an object that contains a certain field: further fields, or a schema for the object.
#[derive(Debug, Clone)]
pub enum Dependency {
    Names(Vec<String>),
    Like(FilterSchema),
}

impl FilterSchema {
    pub fn matches(&self, value: &Value, env: &Env) -> Result<bool> {
        all(&self.keywords, |keyword| {
            env.query.tick()?;
            keyword.holds(value, env)
        })
    }
}

impl Keyword {
    fn holds(&self, value: &Value, env: &Env) -> Result<bool> {
        Ok(match (self, value) {
            (Keyword::Type(types), value) => types.contains(value),
            (Keyword::Enum(values), value) => {
                let weight = 1 + measure(value, env.query)?;
                env.query.tick_many(values.len().saturating_mul(weight))?;
                values.contains(value)
            }
            (Keyword::AllOf(schemas), value) => count(schemas, value, env)? == schemas.len(),
            (Keyword::AnyOf(schemas), value) => count(schemas, value, env)? > 0,
            (Keyword::OneOf(schemas), value) => count(schemas, value, env)? == 1,
            (Keyword::Not(schema), value) => !schema.matches(value, env)?,
            (Keyword::Minimum { bound, exclusive }, number) if number.is_number() => {
                number > bound || (!exclusive && number == bound)
            }
            (Keyword::Maximum { bound, exclusive }, number) if number.is_number() => {
                number < bound || (!exclusive && number == bound)
            }
            (Keyword::MultipleOf(divisor), number) if number.is_number() => is_multiple(number, divisor),
            (Keyword::MinLength(least), Value::String(text)) => text.chars().count() >= *least,
            (Keyword::MaxLength(most), Value::String(text)) => text.chars().count() <= *most,
            (Keyword::Pattern(regex), Value::String(text)) => regex.is_match(text, env.query)?,
            (Keyword::MinItems(least), Value::Array(items)) => items.len() >= *least,
            (Keyword::MaxItems(most), Value::Array(items)) => items.len() <= *most,
            (Keyword::UniqueItems, Value::Array(items)) => {
                let mut seen = FxHashSet::default();
                measure_all(items.iter(), env.query)?;
                items.iter().all(|item| seen.insert(item))
            }
            (Keyword::Items(rule), Value::Array(items)) => rule.holds(items, env)?,
            (Keyword::MinProperties(least), Value::Object(object)) => object.len() >= *least,
            (Keyword::MaxProperties(most), Value::Object(object)) => object.len() <= *most,
            (Keyword::Required(names), Value::Object(object)) => has_all(object, names, env)?,
            (Keyword::Properties(properties), Value::Object(object)) => properties.hold(object, env)?,
            (Keyword::Dependencies(dependencies), Value::Object(object)) => all(dependencies, |(name, dependency)| {
                env.query.tick_many(object.len())?;
                Ok(!object.contains(name) || dependency.holds(value, object, env)?)
            })?,
            (
                Keyword::Minimum { .. }
                | Keyword::Maximum { .. }
                | Keyword::MultipleOf(_)
                | Keyword::MinLength(_)
                | Keyword::MaxLength(_)
                | Keyword::Pattern(_)
                | Keyword::MinItems(_)
                | Keyword::MaxItems(_)
                | Keyword::UniqueItems
                | Keyword::Items(_)
                | Keyword::MinProperties(_)
                | Keyword::MaxProperties(_)
                | Keyword::Required(_)
                | Keyword::Properties(_)
                | Keyword::Dependencies(_),
                _,
            ) => true,
        })
    }
}

/// Returns whether the object has fields with all these names. Each lookup counts as work, because a lookup may compare
/// the name with all fields.
fn has_all(object: &Object, names: &[String], env: &Env) -> Result<bool> {
    all(names, |name| {
        env.query.tick_many(object.len())?;
        Ok(object.contains(name))
    })
}

fn count(schemas: &[FilterSchema], value: &Value, env: &Env) -> Result<usize> {
    let mut matching = 0;
    for schema in schemas {
        matching += usize::from(schema.matches(value, env)?);
    }
    Ok(matching)
}

/// Returns whether a number is a multiple of the divisor, which is not 0. Treats a double as the decimal number that
/// the double's shortest text denotes, so 0.3 is a multiple of 0.1.
fn is_multiple(number: &Value, divisor: &Value) -> bool {
    let exact = match divisor {
        Value::Double(divisor) => decimal::of_double(*divisor).map(Value::Decimal),
        _ => None,
    };
    remainder(number, exact.as_ref().unwrap_or(divisor)).as_f64() == Some(0.0)
}

impl Items {
    fn holds(&self, items: &[Value], env: &Env) -> Result<bool> {
        match self {
            Items::Each(schema) => all(items, |item| schema.matches(item, env)),
            Items::Positional(schemas, rest) => {
                let is_valid = all(schemas.iter().zip(items), |(schema, item)| schema.matches(item, env))?;
                Ok(is_valid && all(items.iter().skip(schemas.len()), |item| rest.holds(item, env))?)
            }
        }
    }
}

impl Properties {
    fn hold(&self, object: &Object, env: &Env) -> Result<bool> {
        all(object.iter(), |(name, value)| {
            env.query.tick_many(1 + self.named.len())?;
            let mut is_covered = false;
            for (known, schema) in &self.named {
                if **known == **name {
                    is_covered = true;
                    if !schema.matches(value, env)? {
                        return Ok(false);
                    }
                }
            }
            for (pattern, schema) in &self.patterns {
                if pattern.is_match(name, env.query)? {
                    is_covered = true;
                    if !schema.matches(value, env)? {
                        return Ok(false);
                    }
                }
            }
            Ok(is_covered || self.rest.holds(value, env)?)
        })
    }
}

impl SchemaRest {
    fn holds(&self, value: &Value, env: &Env) -> Result<bool> {
        match self {
            SchemaRest::Allowed => Ok(true),
            SchemaRest::Refused => Ok(false),
            SchemaRest::Like(schema) => schema.matches(value, env),
        }
    }
}

impl Dependency {
    fn holds(&self, value: &Value, object: &Object, env: &Env) -> Result<bool> {
        match self {
            Dependency::Names(names) => has_all(object, names, env),
            Dependency::Like(schema) => schema.matches(value, env),
        }
    }
}

/// Returns the value as a length or count. Returns `None` if the value is negative, is too large for 64 bits, or is
/// neither an integer nor a whole double.
pub fn natural(value: &Value) -> Option<usize> {
    let number = match value {
        Value::Int(number) => *number,
        Value::Double(number) => whole_double(*number)?,
        _ => return None,
    };
    usize::try_from(number).ok()
}
