//! Copies single fields of a folded state into responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::value::Value;

/// Returns the text in a field of an aggregate's state, or `None` if the field is absent or not a string.
pub fn text(aggregate: &Aggregate, name: &str) -> Option<String> {
    aggregate.state.get(name).and_then(Value::as_str).map(str::to_owned)
}
