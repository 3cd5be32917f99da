//! Parses a `$jsonSchema`, in the form of JSON Schema draft 4 that MongoDB supports.

use super::schema::{Dependency, FilterSchema, Items, Keyword, Properties, SchemaRest, natural};
use super::types::TypeSet;
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};
use crate::pipeline::value::regex::Regex;

/// The maximum depth of nested schemas.
const MAX_DEPTH: usize = 60;

const KEYWORDS: [&str; 29] = [
    "type",
    "bsonType",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "dependencies",
    "title",
    "description",
];

const UNSUPPORTED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// The context in which a schema is parsed.
#[derive(Clone, Copy)]
struct SchemaContext<'q> {
    /// The query whose time and memory limits apply to the parsing.
    query: &'q Context<'q>,
    depth: usize,
}

impl SchemaContext<'_> {
    fn deeper(self) -> Self {
        SchemaContext { depth: self.depth + 1, ..self }
    }
}

impl FilterSchema {
    pub fn parse(spec: &Value, query: &Context) -> Result<FilterSchema> {
        match spec {
            Value::Object(object) => schema(object, SchemaContext { query, depth: 0 }),
            _ => Err(Error::new(14, "$jsonSchema must be an object")),
        }
    }
}

fn schema(object: &Object, at: SchemaContext) -> Result<FilterSchema> {
    if at.depth >= MAX_DEPTH {
        return err!(9, "$jsonSchema is nested deeper than {MAX_DEPTH} levels");
    }
    if object.contains("type") && object.contains("bsonType") {
        return Err(failed("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'"));
    }
    at.query.tick_many(object.len())?;
    let mut keywords = Vec::new();
    for (name, value) in object.iter() {
        keywords.extend(keyword(name, value, object, at)?);
    }
    Ok(FilterSchema { keywords })
}

fn keyword(name: &str, value: &Value, all: &Object, at: SchemaContext) -> Result<Option<Keyword>> {
    Ok(Some(match name {
        "type" | "bsonType" => Keyword::Type(types(name, value)?),
        "enum" => Keyword::Enum(distinct("enum", value)?),
        "allOf" => Keyword::AllOf(schemas(name, value, at)?),
        "anyOf" => Keyword::AnyOf(schemas(name, value, at)?),
        "oneOf" => Keyword::OneOf(schemas(name, value, at)?),
        "not" => Keyword::Not(nested(name, "an object", value, at)?),
        "minimum" => Keyword::Minimum { bound: number(name, value)?, exclusive: flag("exclusiveMinimum", all)? },
        "maximum" => Keyword::Maximum { bound: number(name, value)?, exclusive: flag("exclusiveMaximum", all)? },
        "exclusiveMinimum" | "exclusiveMaximum" => {
            flag(name, all)?;
            let bound = if name == "exclusiveMinimum" { "minimum" } else { "maximum" };
            if !all.contains(bound) {
                return Err(failed(format!("$jsonSchema keyword '{bound}' must be a present if {name} is present")));
            }
            return Ok(None);
        }
        "multipleOf" => {
            let divisor = number(name, value)?;
            if divisor <= Value::Int(0) {
                return Err(failed("$jsonSchema keyword 'multipleOf' must have a positive value"));
            }
            Keyword::MultipleOf(divisor)
        }
        "minLength" => Keyword::MinLength(length(name, value)?),
        "maxLength" => Keyword::MaxLength(length(name, value)?),
        "minItems" => Keyword::MinItems(length(name, value)?),
        "maxItems" => Keyword::MaxItems(length(name, value)?),
        "minProperties" => Keyword::MinProperties(length(name, value)?),
        "maxProperties" => Keyword::MaxProperties(length(name, value)?),
        "pattern" => match value {
            Value::String(pattern) => Keyword::Pattern(Regex::new(pattern, "", at.query)?),
            _ => return Err(mistyped(name, "a string")),
        },
        "uniqueItems" => match flag(name, all)? {
            true => Keyword::UniqueItems,
            false => return Ok(None),
        },
        "items" => Keyword::Items(items(value, all, at)?),
        "additionalItems" => {
            rest(name, all, at)?;
            return Ok(None);
        }
        "required" => Keyword::Required(names(name, value)?),
        "properties" => Keyword::Properties(properties(all, at)?),
        "patternProperties" if !all.contains("properties") => Keyword::Properties(properties(all, at)?),
        "additionalProperties" if !all.contains("properties") && !all.contains("patternProperties") => {
            Keyword::Properties(properties(all, at)?)
        }
        // These keywords are parsed together with `properties`, or with `patternProperties` if the schema has no
        // `properties`.
        "patternProperties" | "additionalProperties" => return Ok(None),
        "dependencies" => Keyword::Dependencies(dependencies(value, at)?),
        "title" | "description" => match value {
            Value::String(_) => return Ok(None),
            _ => return Err(mistyped(name, "a string")),
        },
        unsupported if UNSUPPORTED.contains(&unsupported) => {
            return Err(failed(format!("$jsonSchema keyword '{unsupported}' is not currently supported")));
        }
        unknown => {
            let error = failed(format!("Unknown $jsonSchema keyword: {unknown}"));
            return Err(error.suggesting(unknown, KEYWORDS));
        }
    }))
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(9, message)
}

fn mistyped(name: &str, expected: &str) -> Error {
    Error::new(14, format!("$jsonSchema keyword '{name}' must be {expected}"))
}

/// Parses a schema inside the keyword `name`. `expected` is the allowed value of the keyword, for the error message.
fn nested(name: &str, expected: &str, value: &Value, at: SchemaContext) -> Result<FilterSchema> {
    match value {
        Value::Object(object) => schema(object, at.deeper()),
        _ => Err(mistyped(name, expected)),
    }
}

fn schemas(name: &str, value: &Value, at: SchemaContext) -> Result<Vec<FilterSchema>> {
    match value {
        Value::Array(items) if items.is_empty() => err!(2, "'{name}' must be a non-empty array"),
        Value::Array(items) => items.iter().map(|item| nested(name, "an array of objects", item, at)).collect(),
        _ => Err(mistyped(name, "an array")),
    }
}

fn strings<'v>(name: &str, value: &'v Value) -> Result<Vec<&'v str>> {
    match value {
        Value::String(one) => Ok(vec![one]),
        Value::Array(items) if items.is_empty() => {
            Err(failed(format!("$jsonSchema keyword '{name}' must name at least one type")))
        }
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().ok_or_else(|| mistyped(name, "an array of strings"))).collect()
        }
        _ => Err(mistyped(name, "either a string or an array of strings")),
    }
}

/// Parses the types of the keyword `type`, which accepts the names of JSON Schema except `integer`, or of `bsonType`,
/// which accepts MongoDB's names.
fn types(keyword: &str, value: &Value) -> Result<TypeSet> {
    let mut types = TypeSet::default();
    for name in strings(keyword, value)? {
        types.add_name(match (keyword, name) {
            (_, "integer") => {
                let text = format!("$jsonSchema type 'integer' is not currently supported in '{keyword}'");
                return Err(failed(text).with_hint("use bsonType 'int' or 'long'"));
            }
            ("bsonType", _) | (_, "string" | "object" | "array" | "number" | "null") => name,
            (_, "boolean") => "bool",
            (_, other) => return err!(2, "Unknown type name alias: {other}"),
        })?;
    }
    Ok(types)
}

fn distinct(name: &str, value: &Value) -> Result<Vec<Value>> {
    let Value::Array(items) = value else { return Err(mistyped(name, "an array")) };
    if items.is_empty() {
        return Err(failed(format!("$jsonSchema keyword '{name}' cannot be an empty array")));
    }
    let mut sorted: Vec<&Value> = items.iter().collect();
    sorted.sort();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(failed(format!("$jsonSchema keyword '{name}' array cannot contain duplicate values")));
    }
    Ok(items.to_vec())
}

fn names(name: &str, value: &Value) -> Result<Vec<String>> {
    let Value::Array(items) = value else { return Err(mistyped(name, "an array")) };
    if items.iter().any(|item| item.as_str().is_none()) {
        return Err(mistyped(name, "an array of strings"));
    }
    Ok(distinct(name, value)?.iter().filter_map(Value::as_str).map(String::from).collect())
}

fn number(name: &str, value: &Value) -> Result<Value> {
    if value.is_number() { Ok(value.clone()) } else { Err(mistyped(name, "a number")) }
}

fn length(name: &str, value: &Value) -> Result<usize> {
    if !value.is_number() {
        return Err(mistyped(name, "a number"));
    }
    natural(value).ok_or_else(|| {
        failed(format!("$jsonSchema keyword '{name}' must be a non-negative integer: {}", excerpt(value)))
    })
}

fn flag(name: &str, all: &Object) -> Result<bool> {
    match all.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(mistyped(name, "a boolean")),
    }
}

fn rest(name: &str, all: &Object, at: SchemaContext) -> Result<SchemaRest> {
    match all.get(name) {
        None | Some(Value::Bool(true)) => Ok(SchemaRest::Allowed),
        Some(Value::Bool(false)) => Ok(SchemaRest::Refused),
        Some(Value::Object(object)) => Ok(SchemaRest::Like(schema(object, at.deeper())?)),
        Some(_) => Err(mistyped(name, "either an object or a boolean")),
    }
}

fn items(value: &Value, all: &Object, at: SchemaContext) -> Result<Items> {
    match value {
        Value::Object(object) => Ok(Items::Each(schema(object, at.deeper())?)),
        Value::Array(schemas) => {
            let item = |item| nested("items", "an object or an array of objects", item, at);
            let schemas: Result<Vec<FilterSchema>> = schemas.iter().map(item).collect();
            Ok(Items::Positional(schemas?, rest("additionalItems", all, at)?))
        }
        _ => Err(mistyped("items", "an array or an object")),
    }
}

fn properties(all: &Object, at: SchemaContext) -> Result<Properties> {
    let mut properties = Properties { rest: rest("additionalProperties", all, at)?, ..Properties::default() };
    if let Some(value) = all.get("properties") {
        let named = value.as_object().ok_or_else(|| mistyped("properties", "an object"))?;
        for (name, value) in named.iter() {
            properties.named.push((name.to_string(), nested(&format!("properties.{name}"), "an object", value, at)?));
        }
    }
    if let Some(value) = all.get("patternProperties") {
        let patterns = value.as_object().ok_or_else(|| mistyped("patternProperties", "an object"))?;
        for (pattern, value) in patterns.iter() {
            let regex = Regex::new(pattern, "", at.query).map_err(|error| match error.code {
                PipelineErrorCode::Number(2 | 51091) => Error::new(
                    2,
                    format!("Invalid regular expression in $jsonSchema keyword 'patternProperties': {error}"),
                ),
                // The query has exceeded a limit.
                _ => error,
            })?;
            properties.patterns.push((regex, nested(&format!("patternProperties.{pattern}"), "an object", value, at)?));
        }
    }
    Ok(properties)
}

fn dependencies(value: &Value, at: SchemaContext) -> Result<Vec<(String, Dependency)>> {
    let object = value.as_object().ok_or_else(|| mistyped("dependencies", "an object"))?;
    object
        .iter()
        .map(|(name, value)| {
            let dependency = match value {
                Value::Object(object) => Dependency::Like(schema(object, at.deeper())?),
                Value::Array(_) => Dependency::Names(names(&format!("dependencies.{name}"), value)?),
                _ => return Err(mistyped("dependencies", "an object whose values are objects or arrays")),
            };
            Ok((name.to_string(), dependency))
        })
        .collect()
}
