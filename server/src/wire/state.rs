//! Fields of a state that responses show by themselves.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::value::{Object, Value};

/// The text in a field of a state; `None` where the field is absent or holds something else.
pub fn text(aggregate: &Aggregate, name: &str) -> Option<String> {
    aggregate.state.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// An object of these fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Object {
    fields.into_iter().collect()
}
