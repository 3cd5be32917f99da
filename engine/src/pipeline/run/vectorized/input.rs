//! What the parts of a grouping read: constants, paths, items of an array that is unwound, and what expressions make
//! of these.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::column::can_keep;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::projection::{Field, Projection};
use crate::pipeline::language::ast;
use crate::pipeline::value::path::FieldPath;

/// What one part reads.
#[derive(Debug)]
pub enum Input {
    Constant(Value),
    Path(Arc<str>),
    /// The item of the array that is unwound, or what a path reads in it.
    Item(Option<FieldPath>),
    Computed(Box<(Expr, Row)>),
}

/// A row of nothing but what an expression reads.
#[derive(Debug)]
pub struct Row {
    pub inputs: Vec<Input>,
    pub shape: Shape,
}

/// Where the inputs stand in a row.
#[derive(Debug)]
pub enum Shape {
    Input(usize),
    Object(Vec<(Arc<str>, Shape)>),
}

/// The step between the scan and the grouping.
pub enum Before<'p> {
    Nothing,
    /// `$unwind` of this path.
    Unwind(&'p str),
    Project(&'p Projection),
}

impl<'p> Before<'p> {
    /// `None` where the fields that the projection computes are more than its expressions' values, or would not all be
    /// computed: an error in one must be found.
    pub fn projection(projection: &'p Projection, group: &ast::Group) -> Option<Before<'p>> {
        let mut read = Vec::new();
        group.visit_paths(&mut |path| read.extend(path.segments().first().cloned()));
        let is_simple = projection.root.fields.iter().all(|(name, field)| match field {
            Field::Keep | Field::Drop => true,
            Field::Computed(expr) => read.contains(name) && !expr.draws(),
            Field::Branch(_) => false,
        });
        is_simple.then_some(Before::Project(projection))
    }

    /// What an expression reads; `None` where columns cannot stand for that.
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

    /// A row with the paths that are shown.
    pub fn row(&self, show: impl FnOnce(&mut dyn FnMut(&FieldPath))) -> Option<Row> {
        let mut paths = Vec::new();
        show(&mut |path| paths.push(path.clone()));
        // What stands further up holds all that is below it.
        paths.sort_by_key(|path| path.segments().len());
        let mut row = Row { inputs: Vec::new(), shape: Shape::Object(Vec::new()) };
        for path in paths {
            let path = self.readable(path)?;
            if row.shape.put(path.segments(), row.inputs.len()) {
                row.inputs.push(self.path(&path)?);
            }
        }
        Some(row)
    }

    /// The path, or the field above it that is computed. The whole row has neither.
    fn readable(&self, path: FieldPath) -> Option<FieldPath> {
        let first = path.segments().first()?;
        match self.computed(first) {
            Some(_) => FieldPath::parse(first).ok(),
            None => Some(path),
        }
    }

    fn computed(&self, field: &str) -> Option<&'p Expr> {
        let Before::Project(projection) = self else { return None };
        match projection.root.fields.get(field) {
            Some(Field::Computed(expr)) => Some(expr),
            _ => None,
        }
    }

    fn path(&self, path: &FieldPath) -> Option<Input> {
        let text = path.segments().join(".");
        match self {
            Before::Nothing => can_keep(&text).then(|| Input::Path(text.into())),
            Before::Project(projection) => match (self.computed(&text), projection.leaves_alone(&text)) {
                (Some(expr), _) => Before::Nothing.input(expr),
                (None, true) => Before::Nothing.path(path),
                (None, false) => None,
            },
            Before::Unwind(unwound) if text == **unwound => Some(Input::Item(None)),
            Before::Unwind(unwound) => {
                if let Some(rest) = text.strip_prefix(unwound).and_then(|rest| rest.strip_prefix('.')) {
                    return Some(Input::Item(Some(FieldPath::parse(rest).ok()?)));
                }
                // What surrounds the array is another object in each row.
                let surrounds = unwound.strip_prefix(&*text).is_some_and(|rest| rest.starts_with('.'));
                if surrounds { None } else { Before::Nothing.path(path) }
            }
        }
    }
}

impl Input {
    /// Shows the paths that columns are wanted of.
    pub fn visit_paths<'i>(&'i self, visit: &mut dyn FnMut(&'i Arc<str>)) {
        match self {
            Input::Path(path) => visit(path),
            Input::Computed(computed) => computed.1.visit_paths(visit),
            Input::Constant(_) | Input::Item(_) => {}
        }
    }

    /// Whether reading it may fail.
    pub fn is_computed(&self) -> bool {
        matches!(self, Input::Computed(_))
    }
}

impl Row {
    /// Shows the paths that columns are wanted of.
    pub fn visit_paths<'r>(&'r self, visit: &mut dyn FnMut(&'r Arc<str>)) {
        self.inputs.iter().for_each(|input| input.visit_paths(visit));
    }
}

impl Shape {
    /// Makes room for an input; `false` where another one holds it already. Shorter paths come first.
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
