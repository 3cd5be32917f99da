//! The `sortBy` argument of operators: paths, each with a direction.

use std::cmp::Ordering;
use std::sync::Arc;

use super::error::{Error, Result, err};
use super::path::FieldPath;
use super::query_path::index;
use super::sort_key::{SortKey, SortOrder};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;

/// A sort order, and the paths of its keys.
#[derive(Debug, Clone)]
pub struct SortSpec {
    paths: Arc<[FieldPath]>,
    order: SortOrder,
}

/// Parses an order such as `{a: 1, b: -1}`. `code` is the error code for a value that is not an object.
pub fn parse_sort(spec: &Value, code: i32) -> Result<SortSpec> {
    let Value::Object(object) = spec else {
        return err!(code, "expected 'sortBy' to be an object, found: {}", spec.type_name());
    };
    if object.is_empty() {
        return Err(Error::new(15976, "$sort stage must have at least one sort key"));
    }
    let (mut paths, mut keys) = (Vec::with_capacity(object.len()), Vec::with_capacity(object.len()));
    for (name, direction) in object.iter() {
        let Some(number) = direction.as_f64() else {
            return err!(15974, "Illegal key in $sort specification: {name}: {}", excerpt(direction));
        };
        if number.abs().trunc() != 1.0 {
            return err!(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
        }
        paths.push(FieldPath::parse(name)?);
        keys.push((&**name, number < 0.0));
    }
    Ok(SortSpec { paths: paths.into(), order: SortOrder::new(keys) })
}

impl SortSpec {
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        self.paths.iter().for_each(visit);
    }

    /// Returns the sort key of a row.
    pub fn key(&self, row: &Value) -> Result<SortKey> {
        self.order.key(row)
    }

    /// Returns the sort key of a row. An array counts as one value, and a missing value counts as null. A name in a
    /// path may be the index of an item in an array.
    pub fn plain_key(&self, row: &Value) -> SortKey {
        let read = |path: &FieldPath| path.segments().iter().try_fold(row, |value, name| step(value, name)).cloned();
        self.paths.iter().map(|path| Some(read(path).unwrap_or_default())).collect()
    }

    pub fn compare(&self, a: &SortKey, b: &SortKey) -> Ordering {
        self.order.compare(a, b)
    }
}

/// Returns the field of an object, or the item of an array, that a name denotes.
fn step<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(index(name)?),
        _ => value.get(name),
    }
}
