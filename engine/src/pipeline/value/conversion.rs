//! Replaces the parts of a value that a conversion has changed.

use crate::model::value::{Object, Value};

/// Returns the object with the converted values. Returns `None` if no value changes.
pub fn fields(object: &Object, converted: Vec<Option<Value>>) -> Option<Value> {
    converted.iter().any(Option::is_some).then(|| {
        let mut fields = Object::with_capacity(object.len());
        for ((name, value), converted) in object.iter().zip(converted) {
            fields.push(name.clone(), converted.unwrap_or_else(|| value.clone()));
        }
        fields.into()
    })
}

/// Returns the array with the converted items. Returns `None` if no item changes.
pub fn items(items: &[Value], converted: Vec<Option<Value>>) -> Option<Value> {
    converted.iter().any(Option::is_some).then(|| {
        let items = items.iter().zip(converted).map(|(item, converted)| converted.unwrap_or_else(|| item.clone()));
        items.collect::<Vec<_>>().into()
    })
}
