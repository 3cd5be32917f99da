//! Derives the known fields of the rows after a stage from the known fields of the rows before the stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{BaseFields, MAX_DEPTH, RowFields, ValueKind, one_of};
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::{Expr, ValueShape};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection::{self, Branch, Projection};
use crate::pipeline::language::ast::{Stage, Windows};
use crate::pipeline::source::streams::StreamFilter;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::known_types::TypeNames;
use crate::pipeline::value::path::FieldPath;

impl RowFields {
    /// Returns the known fields of the rows after a stage.
    pub fn after(self, stage: &Stage, query: &Context) -> Result<RowFields> {
        // A change may copy all known fields, because several `RowFields` may share the fields.
        query.tick_many(self.changed.len())?;
        Ok(match stage {
            Stage::Documents(_) => RowFields::new(BaseFields::Any),
            Stage::UnionWith(_, pipeline) => self.united(&pipeline.last, query)?,
            Stage::Match(filter) => self.narrowed(filter),
            Stage::Fold(_) => match self.base {
                BaseFields::Events(types) => RowFields::new(BaseFields::States(types)),
                base => RowFields { base, ..self },
            },
            Stage::Project(projection) | Stage::Set(projection) | Stage::Unset(projection) => {
                self.projected(projection, query)
            }
            Stage::Group(group) => self.grouped(&group.id, &group.fields, query),
            Stage::Bucket(bucket) => self.grouped(&bucket.by, &bucket.fields, query),
            // The key is an object with the limits of the bucket.
            Stage::BucketAuto(bucket) => self.grouped(&bucket.by, &bucket.fields, query).with("_id", ValueKind::Any),
            Stage::SortByCount(by) => self.grouped(by, &[], query).with("count", ValueKind::Number),
            Stage::Count(name) => RowFields::new(BaseFields::Empty).with(name, ValueKind::Number),
            Stage::Unwind(unwind) => match &unwind.index {
                Some(index) => self.with_path(index, ValueKind::Plain),
                None => self,
            },
            Stage::ReplaceRoot(expr) => match self.of_expr(expr, query) {
                ValueKind::Rows(rows) => RowFields::clone(&rows),
                _ => RowFields::new(BaseFields::Any),
            },
            Stage::Facet(facets) => {
                let rows = RowFields { depth: self.depth, ..RowFields::new(BaseFields::Empty) };
                facets.iter().fold(rows, |rows, (name, pipeline)| rows.with(name, pipeline.last.within()))
            }
            Stage::Lookup(lookup) => self.with_path(&lookup.target, lookup.pipeline.last.within()),
            Stage::Follow(follow) => self.with_path(&follow.target, follow.pipeline.last.within()),
            Stage::Windows(windows) => self.windowed(windows, query),
            Stage::Fill(fill) => {
                let filled = match &fill.windows {
                    Some(windows) => self.windowed(windows, query),
                    None => self,
                };
                match &fill.values {
                    Some(values) => filled.projected(values, query),
                    None => filled,
                }
            }
            Stage::GraphLookup(lookup) => {
                let found = lookup.pipeline.last.clone();
                let found = match &lookup.search.depth_field {
                    Some(path) => found.with_path(path, ValueKind::Plain),
                    None => found,
                };
                self.with_path(&lookup.search.target, found.within())
            }
            Stage::Densify(_)
            | Stage::Sort(_)
            | Stage::Limit(_)
            | Stage::Skip(_)
            | Stage::Sample(_)
            | Stage::Redact(_) => self,
        })
    }

    /// Returns the known fields of the rows that satisfy a filter. A condition for equality or `$in` on the field
    /// `aggregate_type` narrows the types of the rows.
    pub fn narrowed(mut self, filter: &Filter) -> RowFields {
        let (BaseFields::Events(types) | BaseFields::States(types)) = &mut self.base else { return self };
        let mut is_read = false;
        filter.visit_paths(&mut |path| is_read |= path == "aggregate_type");
        if !is_read || self.changed.contains_key("aggregate_type") {
            return self;
        }
        let mut streams = StreamFilter::default();
        for conjunct in filter.conjuncts() {
            streams.take_set(&conjunct, "_id");
        }
        let Some(named) = streams.aggregate_types else { return self };
        let is_possible = |name: &Arc<str>| types.as_ref().is_none_or(|types| types.contains(name));
        *types = Some(Arc::new(named.into_iter().filter(is_possible).collect()));
        self
    }

    fn projected(self, projection: &Projection, query: &Context) -> RowFields {
        use projection::{ProjectedField, ProjectionKind};
        let mut rows = match projection.kind {
            ProjectionKind::Inclusion => {
                RowFields { base: BaseFields::Empty, changed: Arc::default(), depth: self.depth }
            }
            ProjectionKind::Exclusion | ProjectionKind::Set => self.clone(),
        };
        let changed = Arc::make_mut(&mut rows.changed);
        for (name, field) in &projection.root.fields {
            let kind = match field {
                ProjectedField::Keep => match self.whole(name, query) {
                    // A projection of an unknown field has already caused a warning.
                    ValueKind::Absent => ValueKind::Any,
                    kind => kind,
                },
                ProjectedField::Drop => ValueKind::Absent,
                ProjectedField::Computed(expr) => self.of_expr(expr, query),
                ProjectedField::Branch(_) if projection.kind == ProjectionKind::Exclusion => continue,
                ProjectedField::Branch(branch) => {
                    self.branched(&self.whole(name, query), branch, projection.kind, query)
                }
            };
            changed.insert(name.clone(), kind);
        }
        rows
    }

    /// Returns the kind of a field after a projection has kept, dropped or computed fields inside the field. The
    /// projection's expressions read the whole row.
    fn branched(
        &self,
        before: &ValueKind,
        branch: &Branch,
        kind: projection::ProjectionKind,
        query: &Context,
    ) -> ValueKind {
        use projection::{ProjectedField, ProjectionKind};
        let inner = match before {
            ValueKind::Rows(rows) => RowFields::clone(rows),
            _ => RowFields::new(BaseFields::Any),
        };
        let mut rows = match kind {
            ProjectionKind::Inclusion => RowFields { depth: self.depth, ..RowFields::new(BaseFields::Empty) },
            ProjectionKind::Exclusion | ProjectionKind::Set => {
                RowFields { depth: self.depth.max(inner.depth), ..inner.clone() }
            }
        };
        for (name, field) in &branch.fields {
            let kind = match field {
                ProjectedField::Keep => match inner.whole(name, query) {
                    ValueKind::Absent => ValueKind::Any,
                    kind => kind,
                },
                ProjectedField::Drop => ValueKind::Absent,
                ProjectedField::Computed(expr) => self.of_expr(expr, query),
                ProjectedField::Branch(branch) => self.branched(&inner.whole(name, query), branch, kind, query),
            };
            rows = rows.with(name, kind);
        }
        rows.within()
    }

    /// Returns the known fields of rows to which window functions have added fields.
    fn windowed(self, windows: &Windows, query: &Context) -> RowFields {
        let kinds: Vec<ValueKind> = windows
            .outputs
            .iter()
            .map(|output| {
                let kind = output.function.returned().map_or(ValueKind::Any, |expr| self.of_expr(expr, query));
                match output.function.default_value() {
                    Some(default) => one_of(vec![kind, of_constant(default)]).unwrap_or(ValueKind::Any),
                    None => kind,
                }
            })
            .collect();
        let mut rows = self.projected(&windows.write, query);
        let changed = Arc::make_mut(&mut rows.changed);
        for (output, kind) in windows.outputs.iter().zip(kinds) {
            // Below a nested path, the kinds of the fields are unknown.
            if !output.field.contains('.') {
                changed.insert(output.field.clone(), kind);
            }
        }
        rows
    }

    fn grouped(self, id: &Expr, fields: &[(Arc<str>, Accumulator)], query: &Context) -> RowFields {
        let mut changed = BTreeMap::from([(Arc::from("_id"), self.of_expr(id, query))]);
        for (name, accumulator) in fields {
            let kind = match (accumulator.name(), accumulator.value_input()) {
                ("$min" | "$max" | "$first" | "$last" | "$push" | "$addToSet", Some(input)) => {
                    self.of_expr(input, query)
                }
                ("$mergeObjects" | "$concatArrays" | "$setUnion", _) => ValueKind::Any,
                ("$sum" | "$avg", Some(input)) => match self.of_expr(input, query) {
                    ValueKind::Decimal => ValueKind::Decimal,
                    _ => ValueKind::Number,
                },
                (_, Some(_)) => ValueKind::Plain,
                (_, None) => ValueKind::Any,
            };
            changed.insert(name.clone(), kind);
        }
        RowFields { base: BaseFields::Empty, changed: Arc::new(changed), depth: self.depth }
    }

    /// Returns the kind of an expression's values.
    pub fn of_expr(&self, expr: &Expr, query: &Context) -> ValueKind {
        match expr.outcome() {
            ValueShape::Row => self.within(),
            ValueShape::Path(path) => match self.whole(&path.segments().join("."), query) {
                ValueKind::Absent => ValueKind::Any,
                kind => kind,
            },
            ValueShape::Date => ValueKind::Date,
            ValueShape::Decimal => ValueKind::Decimal,
            ValueShape::Plain => ValueKind::Plain,
            ValueShape::Object(fields) => {
                let fields = fields.iter().map(|(name, expr)| (name.clone(), self.of_expr(expr, query)));
                RowFields { base: BaseFields::Empty, changed: Arc::new(fields.collect()), depth: self.depth }.within()
            }
            ValueShape::Any => ValueKind::Any,
            ValueShape::Choice(expr) => {
                let kinds = expr.choices().into_iter().map(|choice| self.of_expr(choice, query)).collect();
                one_of(kinds).unwrap_or(ValueKind::Any)
            }
        }
    }

    /// Returns the kind of the values at a path. The kind of a field that contains rows includes the known fields of
    /// these rows.
    pub(super) fn whole(&self, path: &str, query: &Context) -> ValueKind {
        match (self.changed.get(path), &self.base) {
            (Some(kind), _) => kind.clone(),
            (None, BaseFields::States(types)) if path == "_events" => {
                ValueKind::Rows(Arc::new(RowFields::new(BaseFields::Events(TypeNames::clone(types)))))
            }
            (None, _) => self.kind(path, query),
        }
    }

    /// Returns the kind of a field whose values are rows with these fields, or `Any` at the maximum nesting depth.
    fn within(&self) -> ValueKind {
        if self.depth >= MAX_DEPTH {
            return ValueKind::Any;
        }
        ValueKind::Rows(Arc::new(RowFields { depth: self.depth + 1, ..self.clone() }))
    }

    fn with(mut self, name: &str, kind: ValueKind) -> RowFields {
        if let ValueKind::Rows(rows) = &kind {
            self.depth = self.depth.max(rows.depth);
        }
        Arc::make_mut(&mut self.changed).insert(name.into(), kind);
        self
    }

    /// Returns the known fields after a stage has written values of the given kind at a path. For a nested path, the
    /// kind of the first field becomes unknown.
    fn with_path(self, path: &FieldPath, kind: ValueKind) -> RowFields {
        match path.segments() {
            [] => self,
            [name] => self.with(name, kind),
            [first, ..] => self.with(first, ValueKind::Any),
        }
    }
}

fn of_constant(value: &Value) -> ValueKind {
    match value {
        Value::Date(_) => ValueKind::Date,
        Value::Decimal(_) => ValueKind::Decimal,
        _ => ValueKind::Plain,
    }
}
