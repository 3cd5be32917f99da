//! Parses the specifications of `$project`, `$set` and `$unset`.

use std::sync::Arc;

use super::{Branch, ProjectedField, Projection, ProjectionKind};
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::{Expr, ParseScope};
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};
use crate::pipeline::value::path::FieldPath;

/// Parses the projection of a `$project`.
pub fn projection(spec: &Value, scope: &ParseScope) -> Result<Projection> {
    let Value::Object(object) = spec else { return Err(Error::new(15969, "$project specification must be an object")) };
    if object.is_empty() {
        return Err(within("$project", Error::new(51272, "projection specification must have at least one field")));
    }
    let mut reader = ProjectionParser { kind: None, id: None, root: Branch::default() };
    reader.fields(object, &mut Vec::new(), scope).map_err(|error| within("$project", error))?;
    Ok(reader.finish())
}

/// Returns the projection of an `$unset` of these paths.
pub fn exclusion(paths: &[&str]) -> Result<Projection> {
    let mut root = Branch::default();
    for path in paths {
        let path = FieldPath::parse(path).map_err(|error| within("$unset", error))?;
        insert(&mut root, path.segments(), ProjectedField::Drop)
            .map_err(|error| within("$unset", error.in_projection(&path)))?;
    }
    Ok(Projection { kind: ProjectionKind::Exclusion, root })
}

/// Parses the projection of a `$set`. `stage` is the stage name that the client wrote.
pub fn set(stage: &'static str, spec: &Value, scope: &ParseScope) -> Result<Projection> {
    let Value::Object(object) = spec else {
        let text = format!("{stage} specification stage must be an object, got {}", spec.type_name());
        return Err(Error::new(40272, text));
    };
    let mut root = Branch::default();
    set_fields(object, &mut Vec::new(), &mut root, scope).map_err(|error| within(stage, error))?;
    Ok(Projection { kind: ProjectionKind::Set, root })
}

/// Adds the name of the stage to an error.
fn within(stage: &str, error: Error) -> Error {
    Error { message: format!("Invalid {stage} :: caused by :: {}", error.message), ..error }
}

/// The reason why two paths of a projection conflict.
enum Collision {
    /// The projection already contains the path, or a longer path that begins with the path.
    Same,
    /// A prefix of the path is already a field of the projection. The number counts the segments of the prefix.
    Below(usize),
}

impl Collision {
    fn in_projection(self, path: &FieldPath) -> Error {
        let text = path.segments().join(".");
        match self {
            Collision::Same => Error::new(31250, format!("Path collision at {text}")),
            Collision::Below(taken) => {
                let rest = path.segments()[taken..].join(".");
                Error::new(31249, format!("Path collision at {text} remaining portion {rest}"))
            }
        }
    }
}

fn insert(root: &mut Branch, segments: &[Arc<str>], field: ProjectedField) -> Result<(), Collision> {
    let Some((last, parents)) = segments.split_last() else { return Err(Collision::Same) };
    let computes = matches!(field, ProjectedField::Computed(_));
    let mut branch = root;
    branch.computes |= computes;
    for (taken, name) in parents.iter().enumerate() {
        match branch.fields.entry(name.clone()).or_insert_with(|| ProjectedField::Branch(Branch::default())) {
            ProjectedField::Branch(deeper) => branch = deeper,
            ProjectedField::Keep | ProjectedField::Drop | ProjectedField::Computed(_) => {
                return Err(Collision::Below(taken + 1));
            }
        }
        branch.computes |= computes;
    }
    if branch.fields.contains_key(last) {
        return Err(Collision::Same);
    }
    branch.fields.insert(last.clone(), field);
    Ok(())
}

/// A parser that reads the fields of a `$project` one by one. The first field determines whether the projection keeps
/// or drops fields. A kept or dropped `_id` does not count as the first field.
struct ProjectionParser {
    kind: Option<ProjectionKind>,
    /// Whether to keep the whole `_id`; `None` if the specification neither keeps nor drops the whole `_id`. Both kinds
    /// of projection may keep or drop the `_id`.
    id: Option<bool>,
    root: Branch,
}

impl ProjectionParser {
    fn fields(&mut self, object: &Object, above: &mut Vec<Arc<str>>, scope: &ParseScope) -> Result<()> {
        for (name, value) in object.iter() {
            let depth = above.len();
            let parsed = FieldPath::parse(name).and_then(|path| {
                above.extend(path.segments().iter().cloned());
                self.field(value, above, scope)
            });
            parsed.map_err(|error| error.within(name.clone()))?;
            above.truncate(depth);
        }
        Ok(())
    }

    fn field(&mut self, value: &Value, path: &mut Vec<Arc<str>>, scope: &ParseScope) -> Result<()> {
        let keeps = match value {
            Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Decimal(_) => Expr::truthy(Some(value)),
            Value::Object(object) if object.is_empty() => {
                return err!(51270, "An empty sub-projection is not a valid value. Found empty object at path");
            }
            Value::Object(object) if !starts_expression(object) => {
                // The path of a nested object is checked with the paths of the fields in the object.
                return self.fields(object, path, scope);
            }
            Value::Null | Value::Date(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return self.computed(value, path, scope);
            }
        };
        if let [only] = path.as_slice()
            && &**only == "_id"
        {
            if self.id.is_some() || self.root.fields.contains_key("_id") {
                return Err(Error::new(31250, "Path collision at _id"));
            }
            self.id = Some(keeps);
            return Ok(());
        }
        let text = path.join(".");
        match (self.kind, keeps) {
            (Some(ProjectionKind::Inclusion | ProjectionKind::Set), false) => {
                err!(31254, "Cannot do exclusion on field {text} in inclusion projection")
            }
            (Some(ProjectionKind::Exclusion), true) => {
                err!(31253, "Cannot do inclusion on field {text} in exclusion projection")
            }
            (_, true) => self.insert(path, ProjectionKind::Inclusion, ProjectedField::Keep),
            (_, false) => self.insert(path, ProjectionKind::Exclusion, ProjectedField::Drop),
        }
    }

    fn computed(&mut self, value: &Value, path: &[Arc<str>], scope: &ParseScope) -> Result<()> {
        let expr = expression(value, scope)?;
        if self.kind == Some(ProjectionKind::Exclusion) {
            return Err(match value {
                Value::Object(_) => Error::new(31252, "Cannot use expression other than $meta in exclusion projection"),
                _ => Error::new(
                    31310,
                    format!(
                        "Cannot use an expression {}: {} in an exclusion projection",
                        excerpt(value),
                        path.join(".")
                    ),
                ),
            });
        }
        self.insert(path, ProjectionKind::Inclusion, ProjectedField::Computed(expr))
    }

    fn insert(&mut self, path: &[Arc<str>], kind: ProjectionKind, field: ProjectedField) -> Result<()> {
        self.kind = Some(kind);
        let whole = FieldPath::parse(&path.join("."))?;
        if self.id.is_some() && whole.segments().first().is_some_and(|first| &**first == "_id") {
            return Err(Collision::Same.in_projection(&whole));
        }
        insert(&mut self.root, whole.segments(), field).map_err(|collision| collision.in_projection(&whole))
    }

    /// Completes the projection. `_id` stays unless the specification excludes it.
    fn finish(mut self) -> Projection {
        let kind = self.kind.unwrap_or(if self.id == Some(false) {
            ProjectionKind::Exclusion
        } else {
            ProjectionKind::Inclusion
        });
        let field = match (kind, self.id) {
            (ProjectionKind::Inclusion | ProjectionKind::Set, Some(true) | None) => Some(ProjectedField::Keep),
            (ProjectionKind::Exclusion, Some(false)) => Some(ProjectedField::Drop),
            (ProjectionKind::Exclusion, _) | (ProjectionKind::Inclusion | ProjectionKind::Set, Some(false)) => None,
        };
        if let Some(field) = field
            && !self.root.fields.contains_key("_id")
        {
            self.root.fields.shift_insert(0, "_id".into(), field);
        }
        Projection { kind, root: self.root }
    }
}

fn starts_expression(object: &Object) -> bool {
    object.keys().next().is_some_and(|name| name.starts_with('$'))
}

/// Parses an expression in a `$project`. As in MongoDB, the error for an unknown operator differs from the error in
/// other stages.
fn expression(value: &Value, scope: &ParseScope) -> Result<Expr> {
    expr::parse(value, scope).map_err(|error| {
        let operator = value.as_object().and_then(|object| object.keys().next());
        match operator {
            Some(name)
                if error.code == PipelineErrorCode::Number(168)
                    && &**name != "$elemMatch"
                    && error.message.ends_with(&format!("'{name}'")) =>
            {
                Error { code: PipelineErrorCode::Number(31325), message: format!("Unknown expression {name}"), ..error }
            }
            _ => error,
        }
    })
}

fn set_fields(object: &Object, above: &mut Vec<Arc<str>>, root: &mut Branch, scope: &ParseScope) -> Result<()> {
    for (name, value) in object.iter() {
        let depth = above.len();
        set_field(name, value, above, root, scope).map_err(|error| error.within(name.clone()))?;
        above.truncate(depth);
    }
    Ok(())
}

fn set_field(
    name: &str,
    value: &Value,
    above: &mut Vec<Arc<str>>,
    root: &mut Branch,
    scope: &ParseScope,
) -> Result<()> {
    if !above.is_empty() && name.contains('.') {
        let text = format!("FieldPath field names may not contain '.' in a nested object: '{name}'");
        return Err(Error::new(40183, text));
    }
    let path = FieldPath::parse(name)?;
    above.extend(path.segments().iter().cloned());
    match value {
        Value::Object(nested) if !nested.is_empty() && !starts_expression(nested) => {
            return set_fields(nested, above, root, scope);
        }
        _ => {}
    }
    let whole = FieldPath::parse(&above.join("."))?;
    let field = ProjectedField::Computed(expr::parse(value, scope)?);
    insert(root, whole.segments(), field).map_err(|collision| {
        let text = whole.segments().join(".");
        let other = match collision {
            Collision::Same => text.clone(),
            Collision::Below(taken) => whole.segments()[..taken].join("."),
        };
        let text = format!("specification contains two conflicting paths. Cannot specify both '{text}' and '{other}'");
        Error::new(40176, text)
    })
}
