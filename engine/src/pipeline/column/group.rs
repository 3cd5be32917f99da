//! `$group` over columns, with the `$unwind` that may stand before it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::accumulate::Gathered;
use super::dictionary::Dictionary;
use super::keys::{Feed, Keys};
use super::select::Selection;
use super::unwind::Unwound;
use super::{Column, Columns, can_keep};
use crate::model::value::{Object, Value};
use crate::pipeline::accumulator::{Accumulator, State};
use crate::pipeline::ast;
use crate::pipeline::context::Context;
use crate::pipeline::error::Result;
use crate::pipeline::expr::Expr;
use crate::pipeline::memory;
use crate::pipeline::path::FieldPath;

/// A grouping whose expressions are paths and constants.
#[derive(Debug)]
pub struct Group {
    unwind: Option<(Arc<str>, bool)>,
    /// The key's fields; of a key that is no object, the one value.
    key: Vec<(Arc<str>, Input)>,
    is_object: bool,
    fields: Vec<(Arc<str>, Accumulator, Input)>,
}

/// What a part of a grouping reads.
#[derive(Debug, Clone)]
enum Input {
    Constant(Value),
    Path(Arc<str>),
    /// The item of the array that was unwound, or what a path reads in it.
    Item(Option<FieldPath>),
}

/// An input and the column that it reads.
enum Source<'a> {
    Constant(&'a Value),
    Column(&'a Column),
    Item(Option<&'a FieldPath>),
}

impl Group {
    /// `None` where some expression is more than a path or a constant.
    pub fn new(unwind: Option<&ast::Unwind>, group: &ast::Group) -> Option<Group> {
        let unwind = match unwind {
            Some(unwind) if unwind.index.is_none() => Some((Arc::from(joined(&unwind.path)), unwind.preserve)),
            Some(_) => return None,
            None => None,
        };
        let unwound = unwind.as_ref().map(|(path, _)| &**path);
        if !unwound.is_none_or(can_keep) {
            return None;
        }
        let (key, is_object) = match group.id.fields() {
            Some(fields) => {
                let part = |(name, expr): &(Arc<str>, Expr)| Some((name.clone(), input(expr, unwound)?));
                (fields.iter().map(part).collect::<Option<Vec<_>>>()?, true)
            }
            None => (vec![("_id".into(), input(&group.id, unwound)?)], false),
        };
        let field = |(name, accumulator): &(Arc<str>, Accumulator)| {
            let of = input(accumulator.value_input()?, unwound)?;
            Some((name.clone(), accumulator.clone(), of))
        };
        let fields = group.fields.iter().map(field).collect::<Option<Vec<_>>>()?;
        // Without fields every key is the empty object, which no column numbers.
        (!key.is_empty()).then_some(Group { unwind, key, is_object, fields })
    }

    /// The paths that columns are wanted of.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        let inputs = self.key.iter().map(|(_, input)| input).chain(self.fields.iter().map(|(_, _, input)| input));
        let paths = inputs.filter_map(|input| match input {
            Input::Path(path) => Some(path),
            Input::Constant(_) | Input::Item(_) => None,
        });
        paths.chain(self.unwind.iter().map(|(path, _)| path))
    }

    pub fn unwinds(&self) -> bool {
        self.unwind.is_some()
    }

    /// The groups' rows, and how many rows were selected and how many came out of the `$unwind`; `None` where a column
    /// is not kept, or cannot tell.
    pub fn run(&self, selection: &Selection, query: &Context, index: usize) -> Result<Option<(Vec<Value>, [u64; 2])>> {
        match Grouping::new(self, selection.columns) {
            Some(grouping) => grouping.run(selection, query, index).map(Some),
            None => Ok(None),
        }
    }
}

/// What an expression reads, if that is a path or a constant.
fn input(expr: &Expr, unwound: Option<&str>) -> Option<Input> {
    if let Some(value) = expr.constant() {
        return Some(Input::Constant(value.clone()));
    }
    let path = joined(expr.plain_path()?);
    let Some(unwound) = unwound else { return can_keep(&path).then(|| Input::Path(path.into())) };
    if path == unwound {
        return Some(Input::Item(None));
    }
    if let Some(rest) = path.strip_prefix(unwound).and_then(|rest| rest.strip_prefix('.')) {
        return Some(Input::Item(Some(FieldPath::parse(rest).ok()?)));
    }
    // What surrounds the array is another object in each row.
    let surrounds = unwound.strip_prefix(&*path).is_some_and(|rest| rest.starts_with('.'));
    (!surrounds && can_keep(&path)).then(|| Input::Path(path.into()))
}

fn joined(path: &FieldPath) -> String {
    path.segments().join(".")
}

/// A grouping under way.
struct Grouping<'a> {
    group: &'a Group,
    unwind: Option<(&'a Column, bool)>,
    key: Vec<(Source<'a>, Keys<'a>)>,
    /// One for each part of the key after the first.
    pairs: Vec<Pairs>,
    fields: Vec<(Source<'a>, Gathered)>,
    /// The groups' keys, in order.
    ids: Vec<Value>,
}

/// Numbers of pairs: of a number for the parts of the key so far, and one for the next part.
type Pairs = FxHashMap<(u32, u32), u32>;

/// Of what holds no column.
static NO_TEXTS: std::sync::LazyLock<Dictionary> = std::sync::LazyLock::new(Dictionary::default);

impl<'a> Grouping<'a> {
    fn new(group: &'a Group, columns: &'a dyn Columns) -> Option<Grouping<'a>> {
        let column = |path: &str| columns.column(path).filter(|column| column.is_clear());
        let source = |input: &'a Input| match input {
            Input::Constant(value) => Some(Source::Constant(value)),
            Input::Path(path) => column(path).map(Source::Column),
            Input::Item(path) => Some(Source::Item(path.as_ref())),
        };
        let unwind = match &group.unwind {
            Some((path, preserve)) => Some((column(path)?, *preserve)),
            None => None,
        };
        let texts = |source: &Source<'a>| texts_of(source, unwind);
        let key: Vec<(Source, Keys)> = group
            .key
            .iter()
            .map(|(_, input)| {
                let source = source(input)?;
                let keys = Keys::new(texts(&source), group.is_object);
                Some((source, keys))
            })
            .collect::<Option<_>>()?;
        let fields = group
            .fields
            .iter()
            .map(|(_, accumulator, input)| source(input).map(|source| (source, Gathered::new(accumulator))));
        let fields = fields.collect::<Option<_>>()?;
        let pairs = key.iter().skip(1).map(|_| Pairs::default()).collect();
        Some(Grouping { group, unwind, key, pairs, fields, ids: Vec::new() })
    }

    fn run(mut self, selection: &Selection, query: &Context, index: usize) -> Result<(Vec<Value>, [u64; 2])> {
        let mut counts = [0u64; 2];
        let (mut rows, mut groups, mut next) = (Vec::new(), Vec::new(), Vec::new());
        let mut unwound = Unwound::default();
        for segment in 0..selection.segments() {
            selection.mask(segment)?.write_rows(&mut rows);
            counts[0] += rows.len() as u64;
            let mut rows = rows.as_slice();
            if let Some((column, preserve)) = self.unwind {
                let Some(segment) = column.segments().get(segment) else { continue };
                unwound.fill(column, segment, rows, preserve);
                rows = &unwound.rows;
                query.tick_many(rows.len())?;
            }
            counts[1] += rows.len() as u64;
            if rows.is_empty() {
                continue;
            }
            self.number(segment, rows, &unwound, (&mut groups, &mut next));
            self.make_groups(segment, rows, &groups, &unwound, query).map_err(|error| error.at_stage(index))?;
            for ((source, gathered), (_, accumulator, _)) in self.fields.iter_mut().zip(&self.group.fields) {
                let mut read = Vec::new();
                let feed = feed(source, segment, &unwound, &mut read);
                gathered.widen(self.ids.len(), accumulator);
                gathered
                    .add(accumulator, feed, (rows, &groups), texts_of(source, self.unwind), query)
                    .map_err(|error| error.at_stage(index))?;
            }
        }
        Ok((self.finish(query).map_err(|error| error.at_stage(index))?, counts))
    }

    /// Writes the group of each row.
    fn number(
        &mut self,
        segment: usize,
        rows: &[u32],
        unwound: &Unwound,
        (groups, next): (&mut Vec<u32>, &mut Vec<u32>),
    ) {
        for (place, (source, keys)) in self.key.iter_mut().enumerate() {
            let mut read = Vec::new();
            let feed = feed(source, segment, unwound, &mut read);
            let Some(before) = place.checked_sub(1) else {
                keys.number(feed, rows, groups);
                continue;
            };
            keys.number(feed, rows, next);
            let pairs = &mut self.pairs[before];
            groups.iter_mut().zip(next.iter()).for_each(|(group, part)| {
                *group = {
                    let next = pairs.len() as u32;
                    *pairs.entry((*group, *part)).or_insert(next)
                }
            });
        }
    }

    /// Makes the groups whose first rows are among these. Equal keys may show differently: the first row's is shown.
    fn make_groups(
        &mut self,
        segment: usize,
        rows: &[u32],
        groups: &[u32],
        unwound: &Unwound,
        query: &Context,
    ) -> Result<()> {
        let count = self.pairs.last().map(FxHashMap::len).or(self.key.first().map(|(_, keys)| keys.count()));
        if count.is_none_or(|count| count == self.ids.len()) {
            return Ok(());
        }
        let mut firsts = Vec::new();
        for (place, group) in groups.iter().enumerate() {
            if *group as usize == self.ids.len() + firsts.len() {
                firsts.push(place);
            }
        }
        let mut parts = Vec::with_capacity(self.key.len());
        for (source, _) in &self.key {
            let mut read = Vec::new();
            let feed = feed(source, segment, unwound, &mut read);
            let texts = texts_of(source, self.unwind);
            let values = firsts.iter().map(|place| feed.value(*place, rows[*place], texts));
            parts.push(values.collect::<Vec<_>>().into_iter());
        }
        for _ in firsts {
            let id = self.id(parts.iter_mut().map(|part| part.next().flatten()));
            memory::hold(&id, query)?;
            query.charge(self.fields.len() * size_of::<State>())?;
            self.ids.push(id);
        }
        Ok(())
    }

    /// A key of its parts.
    fn id(&self, mut parts: impl Iterator<Item = Option<Value>>) -> Value {
        if !self.group.is_object {
            return parts.next().flatten().unwrap_or_default();
        }
        let named = self.group.key.iter().zip(parts);
        named.filter_map(|((name, _), value)| Some((name.clone(), value?))).collect::<Object>().into()
    }

    fn finish(mut self, query: &Context) -> Result<Vec<Value>> {
        let fields = std::mem::take(&mut self.fields);
        let mut columns = Vec::with_capacity(fields.len());
        for ((_, mut gathered), (_, accumulator, _)) in fields.into_iter().zip(&self.group.fields) {
            gathered.widen(self.ids.len(), accumulator);
            columns.push(gathered.finish(accumulator, query)?.into_iter());
        }
        let mut rows = Vec::with_capacity(self.ids.len());
        for id in self.ids {
            let mut row = Object::with_capacity(columns.len() + 1);
            row.push("_id", id);
            for ((name, _, _), values) in self.group.fields.iter().zip(&mut columns) {
                let value = values.next().unwrap_or_default();
                memory::check_depth(&value, query)?;
                row.push(name.clone(), value);
            }
            rows.push(row.into());
        }
        Ok(rows)
    }
}

/// The texts that the numbers in a source stand for.
fn texts_of<'a>(source: &Source<'a>, unwind: Option<(&'a Column, bool)>) -> &'a Dictionary {
    match (source, unwind) {
        (Source::Column(column), _) => column.texts(),
        (Source::Item(None), Some((column, _))) => column.texts(),
        _ => &NO_TEXTS,
    }
}

fn feed<'f>(source: &Source<'f>, segment: usize, unwound: &'f Unwound, read: &'f mut Vec<Option<Value>>) -> Feed<'f> {
    match source {
        Source::Constant(value) => Feed::Constant(Some(value)),
        Source::Column(column) => match column.segments().get(segment) {
            Some(segment) => Feed::Segment(segment),
            None => Feed::Constant(None),
        },
        Source::Item(None) => unwound.items(),
        Source::Item(Some(path)) => {
            *read = unwound.read(path);
            Feed::Values(read)
        }
    }
}
