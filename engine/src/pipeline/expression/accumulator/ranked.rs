//! Accumulators that keep the first so many values of an order.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use super::{Direction, End, Kind, collect};
use crate::model::value::Value;
use crate::pipeline::error::{Code, Error, Result};
use crate::pipeline::expr::{Env, Expr};
use crate::pipeline::path::FieldPath;
use crate::pipeline::sort_key::{Order, SortKey};

/// An order, and the paths that it reads.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Sort {
    paths: Arc<[FieldPath]>,
    order: Order,
}

/// Reads `{a: 1, b: -1}`.
pub(in crate::pipeline) fn parse_sort(spec: &Value, code: i32) -> Result<Sort> {
    let Value::Object(object) = spec else {
        let message = format!("expected 'sortBy' to be an object, found: {}", spec.type_name());
        return Err(Error::new(code, message));
    };
    if object.is_empty() {
        return Err(Error::new(15976, "$sort stage must have at least one sort key"));
    }
    let (mut paths, mut keys) = (Vec::with_capacity(object.len()), Vec::with_capacity(object.len()));
    for (name, direction) in object.iter() {
        let Some(number) = direction.as_f64() else {
            return Err(Error::new(15974, format!("Illegal key in $sort specification: {name}: {direction}")));
        };
        if number.abs().trunc() != 1.0 {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::new(15975, message));
        }
        paths.push(FieldPath::parse(name)?);
        keys.push((&**name, number < 0.0));
    }
    Ok(Sort { paths: paths.into(), order: Order::new(keys) })
}

impl Sort {
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        self.paths.iter().for_each(visit);
    }

    /// What a row is sorted by.
    pub fn key(&self, row: &Value) -> Result<SortKey> {
        self.order.key(row)
    }

    /// The keys' values as they are, arrays compared whole; a missing one is null.
    pub fn plain_key(&self, row: &Value) -> SortKey {
        let read = |path: &FieldPath| path.segments().iter().try_fold(row, |value, name| value.get(name)).cloned();
        self.paths.iter().map(|path| Some(read(path).unwrap_or_default())).collect()
    }

    pub fn compare(&self, a: &SortKey, b: &SortKey) -> Ordering {
        self.order.compare(a, b)
    }
}

/// Values kept so far, at most as many as asked for.
#[derive(Debug)]
pub(super) struct Bounded {
    limit: usize,
    items: VecDeque<(SortKey, Value)>,
}

impl Bounded {
    /// Keeps as many as `count` says; one where it was not written.
    pub fn new(count: Option<&Expr>, env: &Env) -> Result<Bounded> {
        let limit = match count {
            Some(count) => group_count(&count.eval(env)?.unwrap_or_default())?,
            None => 1,
        };
        Ok(Bounded { limit, items: VecDeque::new() })
    }
}

/// How many values are wanted.
pub(in crate::pipeline) fn parse_count(value: &Value) -> Result<usize> {
    if !value.is_number() {
        let message = format!("Value for 'n' must be of integral type, but found {value}");
        return Err(Error::new(5_787_902, message));
    }
    let Some(count) = crate::pipeline::expr::whole(value) else {
        return Err(Error::new(5_787_903, format!("Value for 'n' must be of integral type, but found {value}")));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(5_787_908, format!("'n' must be greater than 0, found {count}"))),
    }
}

/// As [`parse_count`], under the one code that `$group` has for it.
pub(super) fn group_count(value: &Value) -> Result<usize> {
    parse_count(value).map_err(|error| Error { code: Code::Number(7_548_606), ..error })
}

pub(super) fn add(kind: &Kind, input: &Expr, bounded: &mut Bounded, env: &Env) -> Result<()> {
    let limit = bounded.limit;
    match kind {
        Kind::Edge(End::Front, _) if bounded.items.len() == limit => Ok(()),
        Kind::Edge(..) => {
            let value = input.eval(env)?.unwrap_or_default();
            if bounded.items.len() == limit {
                bounded.items.pop_front();
            }
            keep(bounded, bounded.items.len(), Vec::new(), value, env)
        }
        Kind::ExtremeN(direction, _) => {
            let Some(value) = input.eval(env)?.filter(|value| !value.is_null()) else { return Ok(()) };
            let place = bounded.items.partition_point(|(_, kept)| match direction {
                Direction::Least => *kept <= value,
                Direction::Greatest => *kept >= value,
            });
            if place < limit {
                keep(bounded, place, Vec::new(), value, env)?;
                bounded.items.truncate(limit);
            }
            Ok(())
        }
        Kind::Ranked(end, sort, _) => {
            let key = sort.key(env.root)?;
            let place = bounded.items.partition_point(|(kept, _)| sort.compare(kept, &key).is_le());
            match end {
                End::Front if place < limit => {
                    keep(bounded, place, key, input.eval(env)?.unwrap_or_default(), env)?;
                    bounded.items.truncate(limit);
                }
                End::Back if place > 0 || bounded.items.len() < limit => {
                    keep(bounded, place, key, input.eval(env)?.unwrap_or_default(), env)?;
                    if bounded.items.len() > limit {
                        bounded.items.pop_front();
                    }
                }
                _ => {}
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn keep(bounded: &mut Bounded, place: usize, key: SortKey, value: Value, env: &Env) -> Result<()> {
    env.query.charge(collect::weight(&value) + size_of_val(key.as_slice()))?;
    bounded.items.insert(place, (key, value));
    Ok(())
}

pub(super) fn finish(kind: &Kind, bounded: Bounded) -> Value {
    let mut values = bounded.items.into_iter().map(|(_, value)| value);
    match kind {
        Kind::Ranked(_, _, None) => values.next().unwrap_or_default(),
        _ => values.collect::<Vec<_>>().into(),
    }
}
