//! Fields of a change: a field is absent, null, or has a value. Null clears what may be empty, and is an error elsewhere.

use foldwork_engine::Error;
use poem_openapi::types::MaybeUndefined;

/// Returns the new value of a field that always has one. An absent field does not change.
pub fn required<T>(field: MaybeUndefined<T>, name: &str, expected: &str) -> Result<Option<T>, Error> {
    match field {
        MaybeUndefined::Undefined => Ok(None),
        MaybeUndefined::Value(value) => Ok(Some(value)),
        MaybeUndefined::Null => {
            let message = format!("expected {expected}, found null; a field that is left out does not change");
            Err(Error::invalid_at(format!("/{name}"), message))
        }
    }
}

/// Returns the new value of a field, which null makes empty. An absent field does not change.
pub fn clearable<T: Default>(field: MaybeUndefined<T>) -> Option<T> {
    match field {
        MaybeUndefined::Undefined => None,
        MaybeUndefined::Value(value) => Some(value),
        MaybeUndefined::Null => Some(T::default()),
    }
}
