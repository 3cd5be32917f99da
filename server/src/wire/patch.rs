//! The fields of requests that change a resource. An absent field does not change. Null clears a field that may be
//! empty, and is an error for other fields.

use foldwork_engine::Error;
use poem_openapi::types::MaybeUndefined;

/// Returns the new value of a field that cannot be empty, or `None` if the field is absent and does not change. Fails
/// if the field is null.
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

/// Returns the new value of a field that may be empty, or `None` if the field is absent and does not change. Null makes
/// the field empty.
pub fn clearable<T: Default>(field: MaybeUndefined<T>) -> Option<T> {
    match field {
        MaybeUndefined::Undefined => None,
        MaybeUndefined::Value(value) => Some(value),
        MaybeUndefined::Null => Some(T::default()),
    }
}
