//! Operators on objects and their fields.

use std::sync::Arc;

use super::operator::ArgumentForm::{AnyNumber, Exactly, Own};
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named};
use super::{Answer, Env, Expr, NULL, ParseScope, parse, some};
use crate::model::excerpt::excerpt;
use crate::model::object::FieldIndex;
use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, Result, err};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the value of a field by its name, which may contain dots and dollar signs.
    "$getField"("field: string, input?: object") [r#"{"$getField":"a.b"}"#, r#"{"a.b":1}"#, "1"]:
        Own(parse_get_field), get_field;
    /// Merges the objects into one; later fields replace earlier ones.
    "$mergeObjects"("object...") [r#"{"$mergeObjects":["$a",{"y":2}]}"#, r#"{"a":{"x":1,"y":1}}"#, r#"{"x":1,"y":2}"#]:
        AnyNumber, merge_objects;
    /// Returns the fields as an array of `{k, v}` objects.
    "$objectToArray"("object") [r#"{"$objectToArray":"$a"}"#, r#"{"a":{"x":1}}"#, r#"[{"k":"x","v":1}]"#]:
        Exactly(1), object_to_array;
    /// Returns the object with a field set to a value; the value `$$REMOVE` removes the field.
    "$setField"("field: string, input: object, value: any")
        [r#"{"$setField":{"field":"b","input":"$$ROOT","value":2}}"#, r#"{"a":1}"#, r#"{"a":1,"b":2}"#]:
        Own(|spec, scope| parse_field_change("$setField", &SET_FIELD, spec, scope)),
        |call, env| change_field(call, env, call.field(2, env)?);
    /// Returns the object without a field.
    "$unsetField"("field: string, input: object")
        [r#"{"$unsetField":{"field":"a","input":"$$ROOT"}}"#, r#"{"a":1,"b":2}"#, r#"{"b":2}"#]:
        Own(|spec, scope| parse_field_change("$unsetField", &UNSET_FIELD, spec, scope)),
        |call, env| change_field(call, env, None);
};

static GET_FIELD: NamedArguments = NamedArguments {
    not_object: 3_041_701,
    unknown: 3_041_701,
    fields: &[("field", Some(3_041_702)), ("input", Some(3_041_703))],
};

fn parse_get_field(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let is_long = match spec {
        Value::Object(object) => object.keys().next().is_none_or(|name| !name.starts_with('$')),
        _ => false,
    };
    let values = if is_long {
        named("$getField", &GET_FIELD, spec, scope)?
    } else {
        vec![Some(parse(spec, scope)?), Some(parse(&Value::from("$$CURRENT"), scope)?)]
    };
    if let Some(value) = values[0].as_ref().and_then(Expr::constant) {
        field_name(value)?;
    }
    Ok(values.into())
}

fn field_name(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| {
        let found = value.type_name();
        Error::new(3_041_704, format!("$getField requires 'field' to evaluate to type String, but got {found}"))
    })
}

fn get_field(call: &OperatorCall, env: &Env) -> Answer {
    let field = call.value(0, env)?;
    let field = field_name(&field)?;
    Ok(match call.field(1, env)? {
        Some(Value::Null) => Some(Value::Null),
        Some(Value::Object(object)) => object.get(field).cloned(),
        _ => None,
    })
}

fn merge_objects(call: &OperatorCall, env: &Env) -> Answer {
    let mut merged: Option<Arc<Object>> = None;
    let mut fields = FieldIndex::default();
    for index in 0..call.len() {
        match call.value(index, env)? {
            // The items of a single array argument count as the arguments.
            Value::Array(items) if call.len() == 1 => {
                for item in items.iter() {
                    env.query.tick()?;
                    merge(&mut merged, &mut fields, item.clone(), env)?;
                }
            }
            value => merge(&mut merged, &mut fields, value, env)?,
        }
    }
    some(Value::Object(merged.unwrap_or_default()))
}

fn merge(merged: &mut Option<Arc<Object>>, index: &mut FieldIndex, value: Value, env: &Env) -> Result<()> {
    match (value, merged) {
        (Value::Null, _) => {}
        (Value::Object(object), merged @ None) => *merged = Some(object),
        (Value::Object(object), Some(merged)) => {
            let copied = if Arc::strong_count(merged) > 1 { merged.len() } else { 0 };
            env.query.charge((copied + object.len()) * 48)?;
            let merged = Arc::make_mut(merged);
            for (name, value) in object.iter() {
                index.insert(merged, name.clone(), value.clone());
            }
        }
        (other, _) => {
            let found = other.type_name();
            let message =
                format!("$mergeObjects requires object inputs, but input {} is of type {found}", excerpt(&other));
            return Err(Error::new(40400, message));
        }
    }
    Ok(())
}

fn object_to_array(call: &OperatorCall, env: &Env) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        Value::Object(object) => {
            env.query.charge(object.len() * 120)?;
            let (key, value): (Arc<str>, Arc<str>) = ("k".into(), "v".into());
            let pair = |(name, item): (&Arc<str>, &Value)| {
                let mut pair = Object::with_capacity(2);
                pair.push(key.clone(), name.clone());
                pair.push(value.clone(), item.clone());
                Value::from(pair)
            };
            some(object.iter().map(pair).collect::<Vec<_>>())
        }
        other => err!(40390, "$objectToArray requires a document input, found: {}", other.type_name()),
    }
}

static SET_FIELD: NamedArguments = NamedArguments {
    not_object: 4_161_100,
    unknown: 4_161_101,
    fields: &[("field", Some(4_161_102)), ("input", Some(4_161_109)), ("value", Some(4_161_103))],
};

static UNSET_FIELD: NamedArguments = NamedArguments {
    not_object: 4_161_100,
    unknown: 4_161_101,
    fields: &[("field", Some(4_161_102)), ("input", Some(4_161_109))],
};

/// Parses the arguments of `$setField` and `$unsetField`. Rejects a field name that is not a constant string, or that
/// contains a null character.
fn parse_field_change(
    name: &str,
    form: &NamedArguments,
    spec: &Value,
    scope: &ParseScope,
) -> Result<OperatorArguments> {
    let values = named(name, form, spec, scope)?;
    let refuse = |code, why: &str| err!(code, "{name} requires 'field' to evaluate to {why}");
    let is_computed = match spec.get("field") {
        Some(Value::Array(_)) => true,
        Some(Value::Object(object)) => object.keys().next().is_some_and(|key| !matches!(&**key, "$literal" | "$const")),
        Some(Value::String(path)) if path.starts_with('$') => {
            return refuse(4_161_108, "a constant, not to a field path; use $literal for a name with a dollar sign");
        }
        _ => false,
    };
    if is_computed {
        return refuse(4_161_106, "a constant, but got a non-constant argument");
    }
    match values[0].as_ref().and_then(Expr::constant) {
        Some(Value::String(field)) if field.contains('\0') => refuse(9_534_700, "a name without null characters"),
        Some(Value::String(_)) => Ok(values.into()),
        _ => refuse(4_161_107, "type String"),
    }
}

/// Sets the field of an object to a value, or removes the field if there is no value.
fn change_field(call: &OperatorCall, env: &Env, value: Option<Value>) -> Answer {
    let mut object = match call.value(1, env)? {
        Value::Null => return NULL,
        Value::Object(object) => object,
        other => {
            let (name, found) = (call.name(), other.type_name());
            return err!(4_161_105, "{name} requires 'input' to evaluate to type Object, but got {found}");
        }
    };
    let Some(Value::String(field)) = call.expr(0).and_then(Expr::constant) else {
        return NULL;
    };
    env.query.charge((object.len() + 1) * 40)?;
    let fields = Arc::make_mut(&mut object);
    match value {
        Some(value) => fields.insert(field.clone(), value),
        None => fields.remove(field),
    };
    some(Value::Object(object))
}
