//! `$group`: returns one row for each key, in the order of the keys' first rows.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::value::{Object, Value};
use crate::pipeline::expression::accumulator::{Accumulator, AccumulatorState};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// The operator of `$group`.
pub struct GroupOperator {
    pub group: ast::Group,
    pub owner: RowOwner,
}

/// The accumulator states of one group, one for each computed field.
pub struct GroupStates {
    states: Vec<AccumulatorState>,
}

/// The names of the computed fields, each with its accumulator.
pub type Fields = [(Arc<str>, Accumulator)];

impl GroupStates {
    /// Creates the states for the group with this key.
    pub fn new(fields: &Fields, id: &Value, env: &Env) -> Result<GroupStates> {
        env.query.charge(fields.len() * size_of::<AccumulatorState>())?;
        let states = fields.iter().map(|(_, accumulator)| accumulator.start(id, env));
        Ok(GroupStates { states: states.collect::<Result<_>>()? })
    }

    /// Adds the row of `env`, which belongs to `owner`.
    pub fn add(&mut self, fields: &Fields, owner: RowOwner, env: &Env) -> Result<()> {
        for ((_, accumulator), state) in fields.iter().zip(&mut self.states) {
            accumulator.add(state, owner.built_bytes(), env)?;
        }
        Ok(())
    }

    /// Returns the output row of the group with the key `id`. Gives back the memory that the query was charged for the
    /// values in the states. If an operator keeps the row, this operator charges the query for the row.
    pub fn finish(self, id: Value, fields: &Fields, query: &Context) -> Result<Value> {
        query.give_back(self.states.iter().map(AccumulatorState::kept_bytes).sum());
        let mut row = Object::with_capacity(fields.len() + 1);
        row.push("_id", id);
        for ((name, accumulator), state) in fields.iter().zip(self.states) {
            let value = accumulator.finish(state);
            memory::check_depth(&value, query)?;
            row.push(name.clone(), value);
        }
        Ok(row.into())
    }
}

impl Operator for GroupOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let ast::Group { id, fields } = &self.group;
        let mut numbers: FxHashMap<Value, usize> = FxHashMap::default();
        let mut groups: Vec<(Value, GroupStates)> = Vec::new();
        for row in input {
            let row = row?;
            let env = run.env(&row);
            let key = self.group.key(run.query.uncharged(|| id.eval(&env))?);
            memory::measure(&key, run.query)?;
            let number = match numbers.get(&key) {
                Some(number) => *number,
                None => {
                    memory::hold(&key, run.query)?;
                    groups.push((key.clone(), GroupStates::new(fields, &key, &env)?));
                    numbers.insert(key, groups.len() - 1);
                    groups.len() - 1
                }
            };
            groups[number].1.add(fields, self.owner, &env)?;
        }
        Ok(Box::new(groups.into_iter().map(move |(id, gathering)| gathering.finish(id, fields, run.query))))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}
