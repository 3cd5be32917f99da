//! Accumulators that keep the first so many values of an order.

use std::collections::VecDeque;

use super::collect;
use super::kind::{Direction, End, Kind};
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::value::error::{Code, Error, Result};
use crate::pipeline::value::memory::{look, look_at_all};
use crate::pipeline::value::number::parse_count;
use crate::pipeline::value::sort_key::SortKey;

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
            look(&value, env.query)?;
            let at = bounded.items.partition_point(|(_, kept)| match direction {
                Direction::Least => *kept <= value,
                Direction::Greatest => *kept >= value,
            });
            if at < limit {
                keep(bounded, at, Vec::new(), value, env)?;
                bounded.items.truncate(limit);
            }
            Ok(())
        }
        Kind::Ranked(end, sort, _) => {
            let key = sort.key(env.root)?;
            look_at_all(key.iter().flatten(), env.query)?;
            let at = bounded.items.partition_point(|(kept, _)| sort.compare(kept, &key).is_le());
            match end {
                End::Front if at < limit => {
                    keep(bounded, at, key, input.eval(env)?.unwrap_or_default(), env)?;
                    bounded.items.truncate(limit);
                }
                End::Back if at > 0 || bounded.items.len() < limit => {
                    keep(bounded, at, key, input.eval(env)?.unwrap_or_default(), env)?;
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

fn keep(bounded: &mut Bounded, at: usize, key: SortKey, value: Value, env: &Env) -> Result<()> {
    env.query.charge(collect::weight(&value) + size_of_val(key.as_slice()))?;
    bounded.items.insert(at, (key, value));
    Ok(())
}

pub(super) fn finish(kind: &Kind, bounded: Bounded) -> Value {
    let mut values = bounded.items.into_iter().map(|(_, value)| value);
    match kind {
        Kind::Ranked(_, _, None) => values.next().unwrap_or_default(),
        _ => values.collect::<Vec<_>>().into(),
    }
}
