//! Generates random pipelines and arbitrary JSON. Some of the pipelines can be executed over columns or by a store. The
//! interpreter must execute the other pipelines.

use foldwork_engine::model::value::{Object, Value};
use proptest::prelude::*;
use serde_json::json;

use super::states::{date_text, decimal, number, scalar, text, value};
use super::windows;

/// Generates a path that all, some or no states have.
pub fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "n",
        "n",
        "m",
        "s",
        "s",
        "t",
        "t",
        "a",
        "b",
        "a.x",
        "a.x.y",
        "b.0",
        "t.0",
        "d",
        "c",
        "c",
        "_id",
        "aggregate_type",
        "project_id",
        "_version",
        "_position",
        "_created_at",
        "none",
    ])
}

/// Returns an object with the given fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Object::from_iter(fields).into()
}

/// Generates an expression that reads one path.
pub fn reference() -> impl Strategy<Value = Value> {
    path().prop_map(|path| Value::from(format!("${path}")))
}

fn pattern() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["^a", "b$", "é"]).prop_map(Value::from)
}

/// Returns a regular expression as an extended JSON value.
fn regular(pattern: Value) -> Value {
    object([("$regularExpression", object([("pattern", pattern), ("options", "i".into())]))])
}

/// Generates a condition on one field.
fn test() -> impl Strategy<Value = Value> {
    let compared = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
    let operand = prop_oneof![3 => number(), 2 => text(), 2 => value(), 1 => decimal(), 1 => date_text()];
    prop_oneof![
        4 => (compared, operand).prop_map(|(name, value)| object([(name, value)])),
        2 => (prop::sample::select(vec!["$in", "$nin"]), prop::collection::vec(scalar(), 0..4))
            .prop_map(|(name, values)| object([(name, values.into())])),
        1 => any::<bool>().prop_map(|exists| object([("$exists", exists.into())])),
        1 => prop::sample::select(vec!["int", "long", "double", "string", "array", "null", "number", "date"])
            .prop_map(|name| object([("$type", name.into())])),
        1 => (0i64..3).prop_map(|size| object([("$size", size.into())])),
        1 => Just(object([("$mod", vec![2.into(), 0.into()].into())])),
        1 => pattern().prop_map(|regex| object([("$regex", regex)])),
        1 => (prop::sample::select(vec!["$in", "$nin"]), pattern(), scalar())
            .prop_map(|(name, regex, value)| object([(name, vec![regular(regex), value].into())])),
        1 => (number(), number())
            .prop_map(|(low, high)| object([("$gte", low), ("$lt", high)])),
        1 => number().prop_map(|number| object([("$not", object([("$gt", number)]))])),
        1 => text().prop_map(|text| object([("$all", vec![text].into())])),
        1 => text().prop_map(|text| object([("$elemMatch", object([("$eq", text)]))])),
    ]
}

fn filter() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        3 => (path(), test()).prop_map(|(path, test)| object([(path, test)])),
        1 => (path(), scalar()).prop_map(|(path, value)| object([(path, value)])),
        1 => (path(), test(), path(), test()).prop_map(|(a, b, c, d)| object([(a, b), (c, d)])),
        1 => (reference(), reference())
            .prop_map(|(a, b)| object([("$expr", object([("$gt", vec![a, b].into())]))])),
        1 => expression().prop_map(|expression| object([("$expr", expression)])),
        1 => (path(), test(), expression())
            .prop_map(|(path, test, expression)| object([("$expr", expression), (path, test)])),
        1 => Just(object([("$sampleRate", Value::Double(0.5))])),
    ];
    plain.prop_recursive(2, 6, 3, |inner| {
        (prop::sample::select(vec!["$and", "$or", "$nor"]), prop::collection::vec(inner, 1..4))
            .prop_map(|(name, parts)| object([(name, parts.into())]))
    })
}

/// Generates an expression over paths. Some expressions fail for some values.
pub fn expression() -> impl Strategy<Value = Value> {
    let pair = |name| (reference(), reference()).prop_map(move |(a, b)| object([(name, vec![a, b].into())]));
    prop_oneof![
        3 => reference().prop_map(|a| object([("$ifNull", vec![a, "none".into()].into())])),
        2 => reference().prop_map(|a| object([("$type", a)])),
        1 => reference().prop_map(|a| object([("$toString", a)])),
        1 => Just(object([("$add", vec!["$c".into(), "$n".into(), "$m".into()].into())])),
        1 => (reference(), prop_oneof![decimal(), date_text()]).prop_map(|(a, b)| object([("$gte", vec![a, b].into())])),
        1 => reference().prop_map(|a| object([("$multiply", vec![a, 2.into()].into())])),
        2 => pair("$gt"),
        1 => pair("$mergeObjects"),
        1 => (reference(), reference(), reference())
            .prop_map(|(a, b, c)| object([("$cond", vec![object([("$eq", vec![a, b.clone()].into())]), b, c].into())])),
        1 => reference().prop_map(|a| vec![a, 1.into()].into()),
        1 => reference().prop_map(|a| object([("deep", object([("er", a)]))])),
        1 => Just(object([("$rand", Object::new().into())])),
        1 => Just(Value::from("$$ROOT")),
    ]
}

fn key() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => reference(),
        1 => Just(Value::Null),
        2 => (reference(), reference()).prop_map(|(a, b)| object([("k", a), ("l", b)])),
        1 => reference().prop_map(|a| object([("k", a), ("c", 1.into())])),
        2 => expression(),
        1 => (reference(), expression()).prop_map(|(a, b)| object([("k", a), ("l", b)])),
    ]
}

/// Generates a stage that computes a field, and a `$group` by this field.
fn computed_group() -> impl Strategy<Value = Vec<Value>> {
    let stage = prop::sample::select(vec!["$set", "$project"]);
    let name = prop::sample::select(vec!["z", "z", "z", "n", "a"]);
    (stage, name, expression(), path(), accumulated()).prop_map(|(stage, name, of, kept, field)| {
        let mut computed = Object::from_iter([(name, of)]);
        if stage == "$project" && kept != name {
            computed.push(kept, 1);
        }
        let key = object([("k", Value::from(format!("${name}"))), ("l", Value::from(format!("${kept}")))]);
        let group = Object::from_iter([("_id", key), ("x", field)]);
        vec![object([(stage, computed.into())]), object([("$group", group.into())])]
    })
}

/// Generates an accumulator with its input.
pub fn accumulated() -> impl Strategy<Value = Value> {
    let names = vec!["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$stdDevPop", "$sum"];
    let input = prop_oneof![3 => reference(), 1 => Just(Value::Int(1)), 1 => Just(Value::Double(0.5))];
    prop_oneof![
        8 => (prop::sample::select(names), input).prop_map(|(name, input)| object([(name, input)])),
        1 => Just(object([("$count", Object::new().into())])),
        1 => reference().prop_map(|a| object([("$sum", object([("$size", object([("$ifNull", vec![a, Vec::new().into()].into())]))]))])),
        2 => (prop::sample::select(vec!["$sum", "$min", "$push", "$first"]), expression())
            .prop_map(|(name, of)| object([(name, of)])),
        1 => reference().prop_map(|a| object([("$mergeObjects", a)])),
        1 => (prop::sample::select(vec!["$top", "$bottom"]), path(), expression()).prop_map(|(name, by, output)| {
            object([(name, object([("sortBy", object([(by, 1.into())])), ("output", output)]))])
        }),
        1 => (prop::sample::select(vec!["$maxN", "$firstN"]), reference()).prop_map(|(name, input)| {
            object([(name, object([("n", 2.into()), ("input", input)]))])
        }),
    ]
}

/// Generates a `$group`.
pub fn group() -> impl Strategy<Value = Value> {
    (key(), prop::collection::vec(accumulated(), 0..3)).prop_map(|(id, fields)| {
        let mut group = Object::from_iter([("_id", id)]);
        for (name, field) in ["x", "y", "z"].into_iter().zip(fields) {
            group.push(name, field);
        }
        object([("$group", group.into())])
    })
}

fn sort() -> impl Strategy<Value = Value> {
    let key = (path(), any::<bool>()).prop_map(|(path, up)| (path, Value::Int(if up { 1 } else { -1 })));
    prop::collection::btree_map("[a-z]", key, 1..3).prop_map(|keys| {
        let keys: Object = keys.into_values().collect();
        object([("$sort", keys.into())])
    })
}

fn unwind() -> impl Strategy<Value = Value> {
    let path = prop::sample::select(vec!["$t", "$t", "$a", "$b", "$a.x", "$n"]);
    (path, any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(path, preserve, index)| {
        let mut unwind = Object::from_iter([("path", Value::from(path))]);
        unwind.push("preserveNullAndEmptyArrays", preserve);
        if index {
            unwind.push("includeArrayIndex", "i");
        }
        object([("$unwind", unwind.into())])
    })
}

fn lookup() -> impl Strategy<Value = Value> {
    let from = prop::sample::select(vec!["thing", "other"]);
    (from, path(), path(), prop::option::of(filter())).prop_map(|(from, local, foreign, filter)| {
        let mut lookup =
            Object::from_iter([("from", from), ("localField", local), ("foreignField", foreign), ("as", "j")]);
        if let Some(filter) = filter {
            let project = object([("n", 1.into()), ("s", 1.into())]);
            let inner = vec![object([("$match", filter)]), object([("$project", project)])];
            lookup.push("pipeline", inner);
        }
        object([("$lookup", lookup.into())])
    })
}

fn stage() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        5 => filter().prop_map(|filter| vec![object([("$match", filter)])]),
        5 => group().prop_map(|group| vec![group]),
        2 => (unwind(), group()).prop_map(|(unwind, group)| vec![unwind, group]),
        2 => computed_group(),
        3 => windows::stages(),
        3 => sort().prop_map(|sort| vec![sort]),
        2 => (sort(), 1i64..6).prop_map(|(sort, rows)| vec![sort, object([("$limit", rows.into())])]),
        1 => (sort(), 0i64..4, 1i64..6).prop_map(|(sort, skipped, rows)| {
            vec![sort, object([("$skip", skipped.into())]), object([("$limit", rows.into())])]
        }),
        1 => (1i64..6).prop_map(|rows| vec![object([("$limit", rows.into())])]),
        1 => (0i64..6).prop_map(|rows| vec![object([("$skip", rows.into())])]),
        1 => Just(vec![object([("$count", "c".into())])]),
        1 => unwind().prop_map(|unwind| vec![unwind]),
        1 => reference().prop_map(|by| vec![object([("$sortByCount", by)])]),
        1 => lookup().prop_map(|lookup| vec![lookup]),
        1 => (path(), path()).prop_map(|(a, b)| {
            let both = Object::from_iter([(a, Value::Int(1)), (b, Value::Int(1))]);
            vec![object([("$project", both.into())])]
        }),
        1 => reference().prop_map(|of| vec![object([("$set", object([("z", of)]))])]),
        1 => (prop::sample::select(vec!["b.y", "a.x", "t.q", "n.z"]), expression())
            .prop_map(|(path, of)| vec![object([("$project", object([(path, of)]))])]),
    ]
}

/// Generates a pipeline over states.
pub fn pipeline() -> impl Strategy<Value = Value> {
    let before = prop::option::of(prop::sample::select(vec![
        json!({"aggregate_type": "thing"}),
        json!({"aggregate_type": {"$in": ["thing", "other"]}}),
        json!({"aggregate_type": {"$ne": "other"}}),
        json!({"aggregate_id": {"$in": ["i1", "i2", "i3"]}}),
    ]));
    let stages = prop::collection::vec(stage(), 0..4);
    (before, any::<bool>(), stages).prop_map(|(before, deleted, stages)| {
        let before = before.map(|filter| object([("$match", filter.into())]));
        let fold = object([("$fold", object([("deleted", deleted.into())]))]);
        let stages: Vec<Value> = before.into_iter().chain([fold]).chain(stages.into_iter().flatten()).collect();
        stages.into()
    })
}

/// Generates JSON that may resemble a pipeline.
pub fn anything() -> impl Strategy<Value = serde_json::Value> {
    let names = [
        "$match",
        "$fold",
        "$group",
        "$sort",
        "$limit",
        "$project",
        "$unwind",
        "$lookup",
        "$sum",
        "$expr",
        "$in",
        "$or",
        "$gt",
        "$not",
        "$map",
        "$cond",
        "$dateTrunc",
        "$count",
        "_id",
        "path",
        "from",
        "as",
        "pipeline",
        "a",
        "a.b",
        "",
        "$facet",
        "$bucket",
        "$setWindowFields",
        "$elemMatch",
        "$regex",
        "$switch",
        "input",
        "$documents",
        "$slice",
    ];
    let name = prop::sample::select(names.map(str::to_owned).to_vec());
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-3i64..4).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,6}".prop_map(Into::into),
        prop::sample::select(vec!["$a", "$$ROOT", "$$NOW", "$_id", "$a.b", "article", "$$x"]).prop_map(Into::into),
    ];
    let inner = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((name.clone(), inner), 0..3)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    });
    prop_oneof![1 => inner.clone(), 4 => prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::from)]
}
