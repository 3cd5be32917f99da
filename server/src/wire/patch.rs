//! The fields of requests that change a resource. A field that is absent from the request leaves the value in the
//! resource unchanged. Null clears a field that may be empty. For a field that cannot be empty, null is an error.

use foldwork_engine::Error;
use poem_openapi::types::MaybeUndefined;

/// Returns the new value of a field that cannot be empty, or `None` if the field is absent. Fails if the field is null.
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

/// Returns the new value of a field that may be empty, or `None` if the field is absent. If the field is null, returns
/// the empty value.
pub fn clearable<T: Default>(field: MaybeUndefined<T>) -> Option<T> {
    match field {
        MaybeUndefined::Undefined => None,
        MaybeUndefined::Value(value) => Some(value),
        MaybeUndefined::Null => Some(T::default()),
    }
}
