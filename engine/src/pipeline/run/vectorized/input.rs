//! The inputs of groupings and windows: constants, paths, items of an unwound array, and values that are computed from
//! these inputs.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::column::can_keep;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::projection::{ProjectedField, Projection};
use crate::pipeline::value::path::FieldPath;

/// One input of a grouping or of windows.
#[derive(Debug)]
pub enum Input {
    Constant(Value),
    Path(Arc<str>),
    /// The item of the unwound array or, with a path, the value at this path in the item.
    Item(Option<FieldPath>),
    Computed(Box<(Expr, RowInput)>),
}

/// A row that contains only the paths that an expression reads.
#[derive(Debug)]
pub struct RowInput {
    pub inputs: Vec<Input>,
    pub shape: Shape,
}

/// The structure of a row. A leaf is the index of the input that provides the value.
#[derive(Debug)]
pub enum Shape {
    Input(usize),
    Object(Vec<(Arc<str>, Shape)>),
}

/// The step between the scan and the grouping or the windows.
pub enum IntermediateStep<'p> {
    Nothing,
    /// An `$unwind` of this path.
    Unwind(&'p str),
    Project(&'p Projection),
}

impl<'p> IntermediateStep<'p> {
    /// Creates the step for a projection. `read` contains the fields that the next step reads from every row.
    ///
    /// Returns `None` in these cases:
    /// - The projection does more than keep, drop or compute top-level fields.
    /// - An expression draws random numbers.
    /// - `read` lacks a computed field. The expression of this field may fail, so the expression must be evaluated
    ///   although the next step does not read the field.
    pub fn projection(projection: &'p Projection, read: &[Arc<str>]) -> Option<IntermediateStep<'p>> {
        let is_simple = projection.root.fields.iter().all(|(name, field)| match field {
            ProjectedField::Keep | ProjectedField::Drop => true,
            ProjectedField::Computed(expr) => read.contains(name) && !expr.draws(),
            ProjectedField::Branch(_) => false,
        });
        is_simple.then_some(IntermediateStep::Project(projection))
    }

    /// Returns the input for an expression, or `None` if columns cannot provide the input.
    pub fn input(&self, expr: &Expr) -> Option<Input> {
        if let Some(value) = expr.constant() {
            return Some(Input::Constant(value.clone()));
        }
        if let Some(input) = expr.plain_path().and_then(|path| self.path(path)) {
            return Some(input);
        }
        if expr.draws() {
            return None;
        }
        let row = self.row(|visit| expr.visit_paths(visit))?;
        Some(Input::Computed(Box::new((expr.clone(), row))))
    }

    /// Returns a row with the paths that `show` visits, or `None` if columns cannot provide the paths.
    pub fn row(&self, show: impl FnOnce(&mut dyn FnMut(&FieldPath))) -> Option<RowInput> {
        let mut paths = Vec::new();
        show(&mut |path| paths.push(path.clone()));
        // The value at a path contains the values at all longer paths that begin with the path.
        paths.sort_by_key(|path| path.segments().len());
        let mut row = RowInput { inputs: Vec::new(), shape: Shape::Object(Vec::new()) };
        for path in paths {
            let path = self.readable(path)?;
            if row.shape.put(path.segments(), row.inputs.len()) {
                row.inputs.push(self.path(&path)?);
            }
        }
        Some(row)
    }

    /// Returns the path, or only its first segment if this segment names a computed field. Returns `None` for the path
    /// of the whole row.
    fn readable(&self, path: FieldPath) -> Option<FieldPath> {
        let first = path.segments().first()?;
        match self.computed(first) {
            Some(_) => FieldPath::parse(first).ok(),
            None => Some(path),
        }
    }

    fn computed(&self, field: &str) -> Option<&'p Expr> {
        let IntermediateStep::Project(projection) = self else { return None };
        match projection.root.fields.get(field) {
            Some(ProjectedField::Computed(expr)) => Some(expr),
            _ => None,
        }
    }

    /// Returns the input for a path, or `None` if columns cannot provide the input.
    pub fn path(&self, path: &FieldPath) -> Option<Input> {
        let text = path.segments().join(".");
        match self {
            IntermediateStep::Nothing => can_keep(&text).then(|| Input::Path(text.into())),
            IntermediateStep::Project(projection) => match (self.computed(&text), projection.preserves(&text)) {
                (Some(expr), _) => IntermediateStep::Nothing.input(expr),
                (None, true) => IntermediateStep::Nothing.path(path),
                (None, false) => None,
            },
            IntermediateStep::Unwind(unwound) if text == **unwound => Some(Input::Item(None)),
            IntermediateStep::Unwind(unwound) => {
                if let Some(rest) = text.strip_prefix(unwound).and_then(|rest| rest.strip_prefix('.')) {
                    return Some(Input::Item(Some(FieldPath::parse(rest).ok()?)));
                }
                // An object that contains the unwound array differs in each unwound row.
                let surrounds = unwound.strip_prefix(&*text).is_some_and(|rest| rest.starts_with('.'));
                if surrounds { None } else { IntermediateStep::Nothing.path(path) }
            }
        }
    }
}

impl Input {
    /// Visits the paths for which columns are needed.
    pub fn visit_paths<'i>(&'i self, visit: &mut dyn FnMut(&'i Arc<str>)) {
        match self {
            Input::Path(path) => visit(path),
            Input::Computed(computed) => computed.1.visit_paths(visit),
            Input::Constant(_) | Input::Item(_) => {}
        }
    }

    /// Returns whether reading the input may fail.
    pub fn is_computed(&self) -> bool {
        matches!(self, Input::Computed(_))
    }
}

impl RowInput {
    /// Visits the paths for which columns are needed.
    pub fn visit_paths<'r>(&'r self, visit: &mut dyn FnMut(&'r Arc<str>)) {
        self.inputs.iter().for_each(|input| input.visit_paths(visit));
    }
}

impl Shape {
    /// Adds an input at a path. If another input already contains the value at the path, adds nothing and returns
    /// `false`. Callers must add shorter paths before longer paths.
    fn put(&mut self, path: &[Arc<str>], input: usize) -> bool {
        let (Shape::Object(fields), Some((first, rest))) = (self, path.split_first()) else { return false };
        match fields.iter_mut().find(|(name, _)| name == first) {
            Some((_, below)) => below.put(rest, input),
            None => {
                fields.push((first.clone(), Shape::below(rest, input)));
                true
            }
        }
    }

    fn below(path: &[Arc<str>], input: usize) -> Shape {
        match path.split_first() {
            None => Shape::Input(input),
            Some((first, rest)) => Shape::Object(vec![(first.clone(), Shape::below(rest, input))]),
        }
    }
}
