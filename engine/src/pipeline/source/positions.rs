//! Computes the range of log positions in which a filter over events can match.

use crate::model::value::{Object, Value};
use crate::pipeline::expression::filter::{Comparison, Filter, FilterNode, Test};

/// The range of log positions, including the first and the last, in which events may match a filter. Events outside the
/// range do not match the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    pub first: u64,
    pub last: u64,
}

impl Positions {
    pub const ALL: Positions = Positions { first: 1, last: u64::MAX };

    /// Returns the range in which a filter over event rows can match.
    pub fn of(filter: Option<&Filter>) -> Positions {
        filter.map_or(Positions::ALL, |filter| Positions::ALL.narrowed(filter.node()))
    }

    /// Returns the description of the range for `explain`.
    pub fn describe(self) -> Object {
        let number = |position: u64| Value::Int(i64::try_from(position).unwrap_or(i64::MAX));
        let mut object = Object::from_iter([("first", number(self.first))]);
        if self.last != Positions::ALL.last {
            object.push("last", number(self.last));
        }
        object
    }

    fn narrowed(self, node: &FilterNode) -> Positions {
        match node {
            FilterNode::And(nodes) => nodes.iter().fold(self, Positions::narrowed),
            FilterNode::Field(path, test) if &**path.text() == "position" => match test {
                Test::Compare(comparison, operand) => self.compared(*comparison, operand),
                Test::In(members) => {
                    let bounds = members.values().map(|member| Positions::ALL.compared(Comparison::Eq, member));
                    let all = bounds.reduce(|one, other| Positions {
                        first: one.first.min(other.first),
                        last: one.last.max(other.last),
                    });
                    all.map_or(self, |all| self.within(all))
                }
                _ => self,
            },
            _ => self,
        }
    }

    fn compared(self, comparison: Comparison, operand: &Value) -> Positions {
        // Only integers and doubles narrow the range. Comparisons with other operands are left to the filter.
        let (floor, is_whole) = match operand {
            Value::Int(number) => (*number, true),
            // The conversion from a double saturates at the limits of `i64`.
            Value::Double(number) if !number.is_nan() => (number.floor() as i64, number.floor() == *number),
            _ => return self,
        };
        let position = |number: i64| u64::try_from(number).unwrap_or(0);
        let from = |first: i64| Positions { first: position(first), ..Positions::ALL };
        let up_to = |last: i64| Positions { last: position(last), ..Positions::ALL };
        self.within(match comparison {
            Comparison::Eq => Positions { first: position(floor), last: position(floor) },
            Comparison::Gte if is_whole => from(floor),
            Comparison::Gt | Comparison::Gte => from(floor.saturating_add(1)),
            Comparison::Lt if is_whole => up_to(floor.saturating_sub(1)),
            Comparison::Lt | Comparison::Lte => up_to(floor),
        })
    }

    fn within(self, other: Positions) -> Positions {
        Positions { first: self.first.max(other.first), last: self.last.min(other.last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::expression::expr::ParseScope;
    use crate::pipeline::value::context::Context;

    fn of(condition: serde_json::Value) -> (u64, u64) {
        let filter = Filter::parse(&Value::from(condition), &ParseScope::root(&Context::new(0, 0, &|| 0, 1, i64::MAX)))
            .expect("a filter");
        let Positions { first, last } = Positions::of(Some(&filter));
        (first, last)
    }

    #[test]
    fn conditions_on_positions_restrict_the_positions_to_read() {
        let all = (1, u64::MAX);
        let cases = [
            (serde_json::json!({"position": 7}), (7, 7)),
            (serde_json::json!({"position": {"$gte": 7}}), (7, u64::MAX)),
            (serde_json::json!({"position": {"$gt": 7, "$lte": 9}}), (8, 9)),
            (serde_json::json!({"position": {"$gte": 6.5, "$lt": 9.5}}), (7, 9)),
            (serde_json::json!({"position": {"$gt": 6.5, "$lt": 9.0}}), (7, 8)),
            (serde_json::json!({"position": {"$in": [9, 3, 5]}}), (3, 9)),
            (serde_json::json!({"position": {"$in": [9, "x"]}}), all),
            (
                serde_json::json!({"$and": [{"position": {"$gt": 2}}, {"position": {"$gt": 4}}, {"version": 1}]}),
                (5, u64::MAX),
            ),
            (serde_json::json!({"$or": [{"position": 2}, {"position": 4}]}), all),
            (serde_json::json!({"position": {"$not": {"$gt": 4}}}), all),
            (serde_json::json!({"position": {"$gt": "4"}}), all),
            (serde_json::json!({"position": {"$lt": -4}}), (1, 0)),
            (serde_json::json!({"payload.position": 4}), all),
        ];
        for (condition, bounds) in cases {
            assert_eq!(of(condition.clone()), bounds, "{condition}");
        }
    }
}
