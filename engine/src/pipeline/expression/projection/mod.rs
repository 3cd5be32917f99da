//! Projections, which keep, drop or compute fields of a row for `$project`, `$set` and `$unset`.

mod parse;

use std::sync::Arc;

use indexmap::IndexMap;

pub use parse::{exclusion, projection, set};

use super::expr::{Env, Expr};
use crate::model::object::FieldIndex;
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{self, own_bytes};

/// The size of a field of an object, without the data that its name and its value point to.
const FIELD_BYTES: usize = size_of::<(Arc<str>, Value)>();

/// A compiled projection.
#[derive(Debug)]
pub struct Projection {
    pub kind: ProjectionKind,
    pub root: Branch,
}

/// The kind of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionKind {
    /// Keeps or computes the named fields and drops all other fields.
    Inclusion,
    /// Drops the named fields and keeps all other fields.
    Exclusion,
    /// Keeps every field and computes the named fields.
    Set,
}

/// The fields of a projection at one level, in the order of the specification. As an exception, if a `$project` keeps
/// or drops the whole `_id`, the top level begins with `_id`.
#[derive(Debug, Default)]
pub struct Branch {
    pub fields: IndexMap<Arc<str>, ProjectedField>,
    computes: bool,
}

/// The treatment of one field by a projection.
#[derive(Debug)]
pub enum ProjectedField {
    Keep,
    Drop,
    Computed(Expr),
    Branch(Branch),
}

impl Projection {
    /// Applies the projection to the root of `env`. Returns a root that is not an object unchanged.
    pub fn apply(&self, env: &Env) -> Result<Value> {
        let Value::Object(row) = env.root else { return Ok(env.root.clone()) };
        let mut object = match self.kind {
            ProjectionKind::Inclusion => self.root.included(row, true, env.query)?,
            ProjectionKind::Exclusion => self.root.excluded(row, env.query)?,
            ProjectionKind::Set => row.clone_with_room(self.root.fields.len()),
        };
        self.root.compute(&mut object, env)?;
        Ok(object.into())
    }

    /// Returns whether the projection leaves the first field of the path unchanged, including the fields inside the
    /// first field.
    pub fn preserves(&self, path: &str) -> bool {
        // At deeper levels, the projection may shorten or fill arrays, so a path through an array may read other
        // values. The result therefore depends only on the first name of the path.
        let first = path.split('.').next().unwrap_or(path);
        match self.root.fields.get(first) {
            Some(ProjectedField::Keep) => true,
            Some(ProjectedField::Drop | ProjectedField::Computed(_) | ProjectedField::Branch(_)) => false,
            None => self.kind != ProjectionKind::Inclusion,
        }
    }

    /// Visits every path that an expression of the projection reads, and every path that the projection names and
    /// keeps.
    pub fn visit_reads(&self, visit: &mut dyn FnMut(&str)) {
        self.root.visit_paths(false, visit);
    }

    /// Visits every path that an expression of the projection reads, and every path that the projection names and
    /// keeps. Also visits every nested path to which the projection writes a computed field.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) {
        self.root.visit_paths(true, visit);
    }
}

impl Branch {
    fn included(&self, object: &Object, top: bool, query: &Context) -> Result<Object> {
        let mut out = Object::with_capacity(self.fields.len());
        if top && let (Some(ProjectedField::Keep), Some(id)) = (self.fields.get("_id"), object.get("_id")) {
            out.push("_id", id.clone());
        }
        for (name, value) in object.iter() {
            match self.fields.get(name) {
                Some(ProjectedField::Keep) if top && &**name == "_id" => {}
                Some(ProjectedField::Keep) => out.push(name.clone(), value.clone()),
                Some(ProjectedField::Branch(branch)) => {
                    if let Some(value) = branch.included_value(value, query)? {
                        out.push(name.clone(), value);
                    }
                }
                Some(ProjectedField::Drop | ProjectedField::Computed(_)) | None => {}
            }
        }
        query.charge(out.len() * FIELD_BYTES)?;
        Ok(out)
    }

    /// Returns the included part of an object or array. Returns `None` for a scalar, because a scalar has no fields. If
    /// the branch computes no fields, the result of an array omits the scalar items. If the branch computes fields, the
    /// result contains null for each scalar item, because every item later receives the computed fields.
    fn included_value(&self, value: &Value, query: &Context) -> Result<Option<Value>> {
        Ok(match value {
            Value::Object(object) => Some(self.included(object, false, query)?.into()),
            Value::Array(items) => {
                query.tick_many(items.len())?;
                query.charge(own_bytes(value))?;
                let mut kept = Vec::new();
                for item in items.iter() {
                    kept.extend(self.included_value(item, query)?.or_else(|| self.computes.then_some(Value::Null)));
                }
                Some(kept.into())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Date(_)
            | Value::String(_) => None,
        })
    }

    fn excluded(&self, object: &Object, query: &Context) -> Result<Object> {
        let mut out = Object::with_capacity(object.len());
        for (name, value) in object.iter() {
            match self.fields.get(name) {
                Some(ProjectedField::Drop) => {}
                Some(ProjectedField::Branch(branch)) => out.push(name.clone(), branch.excluded_value(value, query)?),
                Some(ProjectedField::Keep | ProjectedField::Computed(_)) | None => {
                    out.push(name.clone(), value.clone())
                }
            }
        }
        query.charge(out.len() * FIELD_BYTES)?;
        Ok(out)
    }

    fn excluded_value(&self, value: &Value, query: &Context) -> Result<Value> {
        Ok(match value {
            Value::Object(object) => self.excluded(object, query)?.into(),
            Value::Array(items) => {
                query.tick_many(items.len())?;
                query.charge(own_bytes(value))?;
                items.iter().map(|item| self.excluded_value(item, query)).collect::<Result<Vec<_>>>()?.into()
            }
            scalar => scalar.clone(),
        })
    }

    /// Writes the computed fields, and removes the computed fields whose values are missing. Every expression reads the
    /// original row.
    fn compute(&self, out: &mut Object, env: &Env) -> Result<()> {
        if !self.computes {
            return Ok(());
        }
        let mut index = FieldIndex::default();
        let mut absent: Vec<&str> = Vec::new();
        for (name, field) in &self.fields {
            env.query.tick()?;
            match field {
                ProjectedField::Computed(expr) => match expr.eval(env)? {
                    Some(value) => {
                        memory::check_depth(&value, env.query)?;
                        index.insert(out, name.clone(), value);
                    }
                    None => absent.push(name),
                },
                ProjectedField::Branch(branch) if branch.computes => {
                    let before = index.find(out, name).and_then(|at| out.at_mut(at));
                    let value = branch.computed_value(before.as_deref(), env)?;
                    index.insert(out, name.clone(), value);
                }
                ProjectedField::Branch(_) | ProjectedField::Keep | ProjectedField::Drop => {}
            }
        }
        if !absent.is_empty() {
            out.remove_all(&absent);
        }
        Ok(())
    }

    /// Returns the value with the computed fields. An object receives the fields. In an array, each item receives the
    /// fields. Any other value is replaced with a new object.
    fn computed_value(&self, value: Option<&Value>, env: &Env) -> Result<Value> {
        match value {
            Some(array @ Value::Array(items)) => {
                env.query.tick_many(items.len())?;
                env.query.charge(own_bytes(array))?;
                let items = items.iter().map(|item| self.computed_value(Some(item), env));
                Ok(items.collect::<Result<Vec<Value>>>()?.into())
            }
            value => {
                let mut object = value.and_then(Value::as_object).cloned().unwrap_or_default();
                env.query.charge((object.len() + self.fields.len()) * FIELD_BYTES)?;
                self.compute(&mut object, env)?;
                Ok(object.into())
            }
        }
    }

    /// Visits every path that expressions read and every path that is kept by name. With `with_targets`, also visits
    /// every nested path that a computed field is written to.
    fn visit_paths(&self, with_targets: bool, visit: &mut dyn FnMut(&str)) {
        self.visit_fields("", &mut |path, field| match field {
            ProjectedField::Keep => visit(path),
            ProjectedField::Computed(expr) => {
                expr.visit_paths(&mut |path| visit(&path.segments().join(".")));
                // A nested computed field is written into the objects and arrays that exist in the row.
                if with_targets && path.contains('.') {
                    visit(path);
                }
            }
            ProjectedField::Drop | ProjectedField::Branch(_) => {}
        });
    }

    /// Visits the fields at every level with their paths.
    fn visit_fields(&self, prefix: &str, visit: &mut dyn FnMut(&str, &ProjectedField)) {
        for (name, field) in &self.fields {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            visit(&path, field);
            if let ProjectedField::Branch(branch) = field {
                branch.visit_fields(&path, visit);
            }
        }
    }
}
