//! Generates random `$setWindowFields` stages. Columns can provide the inputs of most of these stages.

use foldwork_engine::model::value::{Object, Value};
use proptest::prelude::*;
use serde_json::json;

use super::pipelines::{accumulated, expression, group, object, path, reference};

/// Generates one or two sort keys of a window. Ranks and `$linearFill` need exactly one key, so some stages fail.
fn sort_by() -> impl Strategy<Value = Object> {
    let key = (path(), any::<bool>()).prop_map(|(path, up)| (path, Value::Int(if up { 1 } else { -1 })));
    prop::collection::vec(key, 1..3).prop_map(|keys| {
        let mut object = Object::new();
        keys.into_iter().for_each(|(path, direction)| {
            object.insert(path, direction);
        });
        object
    })
}

fn bounds() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        2 => Just(None),
        2 => (-3i64..3, 0i64..4).prop_map(|(lower, width)| Some(json!({"documents": [lower, lower + width]}).into())),
        1 => Just(Some(json!({"documents": ["unbounded", "current"]}).into())),
        1 => Just(Some(json!({"range": [-1, 1]}).into())),
        1 => Just(Some(json!({"range": [-3, 0], "unit": "day"}).into())),
    ]
}

/// Generates the specification of an output field: a function and, for some accumulators, the bounds of the window.
fn output() -> impl Strategy<Value = Value> {
    let function = |text: serde_json::Value| Just(Value::from(text));
    let of_order = prop_oneof![
        function(json!({"$rank": {}})),
        function(json!({"$denseRank": {}})),
        function(json!({"$documentNumber": {}})),
        function(json!({"$locf": "$n"})),
        function(json!({"$linearFill": "$m"})),
        function(json!({"$expMovingAvg": {"input": "$n", "N": 3}})),
        (reference(), -2i64..3).prop_map(|(output, by)| {
            object([("$shift", object([("output", output), ("by", by.into()), ("default", "none".into())]))])
        }),
    ];
    let median = json!({"$median": {"input": "$n", "method": "approximate"}});
    let accumulator = prop_oneof![8 => accumulated(), 1 => function(median)];
    let accumulator = (accumulator, bounds()).prop_map(|(function, bounds)| match (function, bounds) {
        (Value::Object(function), Some(bounds)) => {
            let mut function = Object::clone(&function);
            function.push("window", bounds);
            function.into()
        }
        (function, _) => function,
    });
    prop_oneof![3 => accumulator, 1 => of_order]
}

/// Generates a `$setWindowFields`, sometimes after a stage that changes fields or before a grouping or a projection.
pub fn stages() -> impl Strategy<Value = Vec<Value>> {
    let key = prop_oneof![3 => reference(), 1 => expression(), 1 => Just(Value::from("$z"))];
    let partition = prop::option::of(key);
    let names = prop::sample::select(vec!["x", "n", "a.w"]);
    let outputs = prop::collection::vec((names, output()), 1..3);
    let computed = (prop::sample::select(vec!["z", "n", "d", "_id"]), expression())
        .prop_map(|(name, of)| object([("$set", object([(name, of)]))]));
    let before = prop_oneof![
        4 => computed,
        1 => reference().prop_map(|of| object([("$set", object([("_id", of)]))])),
        1 => Just(object([("$unset", "_id".into())])),
        1 => Just(json!({"$project": {"_id": 0, "n": 1, "s": 1, "m": 1}}).into()),
    ];
    let after = prop_oneof![2 => group(), 1 => Just(json!({"$project": {"x": 1, "s": 1, "n": 1, "m": 1}}).into())];
    let windows = (partition, prop::option::weighted(0.9, sort_by()), outputs);
    let parts = (prop::option::of(before), windows, prop::option::weighted(0.4, after));
    parts.prop_map(|(before, (partition, sort, outputs), after)| {
        let mut stage = Object::new();
        partition.into_iter().for_each(|key| stage.push("partitionBy", key));
        sort.into_iter().for_each(|keys| stage.push("sortBy", keys));
        let mut fields = Object::new();
        outputs.into_iter().for_each(|(name, output)| {
            fields.insert(name, output);
        });
        stage.push("output", fields);
        before.into_iter().chain([object([("$setWindowFields", stage.into())])]).chain(after).collect()
    })
}
