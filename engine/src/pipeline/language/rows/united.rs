//! Derives the known fields of rows that come from two sources, as after `$unionWith`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{BaseFields, RowFields, STATE_FIELDS, ValueKind, one_of};
use crate::model::event::EVENT_FIELDS;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::known_types::TypeNames;

impl RowFields {
    /// Returns the known fields of rows that come from two sources: these rows and the rows of `other`.
    pub(super) fn united(&self, other: &RowFields, query: &Context) -> Result<RowFields> {
        let base = self.base.united(&other.base);
        let mut names: BTreeSet<Arc<str>> = self.changed.keys().chain(other.changed.keys()).cloned().collect();
        if matches!(base, BaseFields::Any) {
            // `BaseFields::Any` does not determine the kinds of the fields that every event or every state has.
            let fixed = self.base.fixed_fields().iter().chain(other.base.fixed_fields());
            names.extend(fixed.map(|name| Arc::<str>::from(*name)));
        }
        let mut rows = RowFields { depth: self.depth.max(other.depth), ..RowFields::new(base) };
        let changed = Arc::make_mut(&mut rows.changed);
        for name in names {
            query.tick()?;
            let kind = either(self.own_kind(&name, query), other.own_kind(&name, query));
            changed.insert(name, kind);
        }
        Ok(rows)
    }

    /// Returns the kind of a field, or [`ValueKind::Absent`] if these rows have no such field. In a union of two
    /// sources, a source without the field does not change the kind that the field has in the other source.
    fn own_kind(&self, name: &str, query: &Context) -> ValueKind {
        let is_present = match &self.base {
            _ if self.changed.contains_key(name) || name == "_id" => true,
            BaseFields::Events(_) => EVENT_FIELDS.contains(&name),
            BaseFields::States(types) => {
                STATE_FIELDS.contains(&name) || query.types.as_ref().is_some_and(|known| known.has_field(types, name))
            }
            BaseFields::Objects(..) | BaseFields::Empty | BaseFields::Any => true,
        };
        if is_present { self.whole(name, query) } else { ValueKind::Absent }
    }
}

impl BaseFields {
    fn united(&self, other: &BaseFields) -> BaseFields {
        match (self, other) {
            (BaseFields::Events(types), BaseFields::Events(others)) => BaseFields::Events(united(types, others)),
            (BaseFields::States(types), BaseFields::States(others)) => BaseFields::States(united(types, others)),
            // Rows with the base `Empty` have no fields of the base, so the fields of the other base keep their kinds.
            (BaseFields::Empty, base) | (base, BaseFields::Empty) => base.clone(),
            _ => BaseFields::Any,
        }
    }

    /// Returns the fields that rows have regardless of their types.
    fn fixed_fields(&self) -> &'static [&'static str] {
        match self {
            BaseFields::Events(_) => &EVENT_FIELDS,
            BaseFields::States(_) => &STATE_FIELDS,
            BaseFields::Objects(..) | BaseFields::Empty | BaseFields::Any => &[],
        }
    }
}

/// Returns the union of two sets of types. `None` represents all types.
fn united(types: &TypeNames, others: &TypeNames) -> TypeNames {
    let (types, others) = (types.as_ref()?, others.as_ref()?);
    // Copying a large set for each of many stages would take a long time.
    if others.is_subset(types) {
        return Some(types.clone());
    }
    Some(Arc::new(types.union(others).cloned().collect()))
}

/// Returns the kind of a field that has one kind in some rows and another kind in other rows.
fn either(one: ValueKind, other: ValueKind) -> ValueKind {
    match (one, other) {
        (ValueKind::Absent, kind) | (kind, ValueKind::Absent) => kind,
        (ValueKind::Project, ValueKind::Project) => ValueKind::Project,
        (ValueKind::Number, ValueKind::Number) => ValueKind::Number,
        (
            ValueKind::Project | ValueKind::Number | ValueKind::Field(_) | ValueKind::Plain,
            ValueKind::Project | ValueKind::Number | ValueKind::Field(_) | ValueKind::Plain,
        ) => ValueKind::Plain,
        (one, other) => one_of(vec![one, other]).unwrap_or(ValueKind::Any),
    }
}
