//! Compares window functions with a naive evaluation: a `$group` over exactly the rows of each window.

use proptest::prelude::*;

use crate::model::json;
use crate::model::value::{Object, Value};
use crate::pipeline::context::Context;
use crate::pipeline::{Options, Table, prepare};

/// Accumulators that return the same result in a `$group` and in a window.
const FUNCTIONS: [&str; 16] = [
    r#"{"$sum":"$v"}"#,
    r#"{"$avg":"$v"}"#,
    r#"{"$min":"$v"}"#,
    r#"{"$max":"$v"}"#,
    r#"{"$push":"$v"}"#,
    r#"{"$addToSet":"$v"}"#,
    r#"{"$count":{}}"#,
    r#"{"$mergeObjects":"$o"}"#,
    r#"{"$median":{"input":"$v","method":"approximate"}}"#,
    r#"{"$percentile":{"input":"$v","p":[0.1,0.9],"method":"approximate"}}"#,
    r#"{"$minN":{"input":"$v","n":2}}"#,
    r#"{"$maxN":{"input":"$v","n":3}}"#,
    r#"{"$firstN":{"input":"$v","n":2}}"#,
    r#"{"$lastN":{"input":"$v","n":2}}"#,
    r#"{"$topN":{"n":2,"sortBy":{"v":1},"output":"$t"}}"#,
    r#"{"$bottomN":{"n":2,"sortBy":{"v":1},"output":"$t"}}"#,
];

fn run(stages: Vec<Value>) -> Vec<Value> {
    let elapsed = || 0;
    let query = Context::new(0, 1, &elapsed, u64::MAX, 64 << 20);
    let prepared = prepare(&stages.into(), &Options::default(), &query).expect("a pipeline");
    let none: Vec<Value> = Vec::new();
    let tables: Vec<&dyn Table> = prepared.scans().iter().map(|_| &none as &dyn Table).collect();
    prepared.run(&tables, &query).expect("rows").rows
}

fn parsed(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("JSON")
}

fn object(fields: Vec<(&str, Value)>) -> Value {
    Object::from_iter(fields).into()
}

/// Returns rows whose sort values ascend. The numbers are multiples of 0.5, so that their sums are exact.
fn rows() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        4 => (-6i64..7).prop_map(|number| Some(Value::Int(number))),
        3 => (-9i64..10).prop_map(|half| Some(Value::Double(half as f64 / 2.0))),
        1 => Just(Some(Value::Null)),
        1 => Just(None),
        1 => Just(Some(Value::from("x"))),
    ];
    let row = (0i64..3, value, 0usize..3);
    proptest::collection::vec(row, 0..24).prop_map(|rows| {
        let mut place = 0;
        let row = |(distance, value, name): (i64, Option<Value>, usize)| {
            place += distance;
            let mut row =
                vec![("t", Value::Int(place)), ("o", object(vec![(["a", "b", "c"][name], Value::Int(place))]))];
            row.extend(value.map(|value| ("v", value)));
            object(row)
        };
        rows.into_iter().map(row).collect()
    })
}

/// Returns the rows in the window of the row at `index`.
fn window(rows: &[Value], index: usize, is_range: bool, lower: i64, upper: i64) -> Vec<Value> {
    let place = |row: &Value| row.get("t").and_then(Value::as_int).expect("a place");
    let is_within = |(other, row): &(usize, &Value)| {
        let distance = match is_range {
            true => place(row) - place(&rows[index]),
            false => *other as i64 - index as i64,
        };
        (lower..=upper).contains(&distance)
    };
    rows.iter().enumerate().filter(is_within).map(|(_, row)| row.clone()).collect()
}

proptest! {
    #[test]
    fn a_window_and_a_group_of_the_same_rows_return_the_same_values(
        rows in rows(), function in 0..FUNCTIONS.len(), is_range: bool, lower in -4i64..4, width in 0i64..5,
    ) {
        let (upper, function) = (lower + width, parsed(FUNCTIONS[function]));
        let name = if is_range { "range" } else { "documents" };
        let bounds = object(vec![(name, vec![Value::Int(lower), Value::Int(upper)].into())]);
        let mut output = function.as_object().cloned().expect("a function");
        output.insert("window", bounds);
        let found = run(vec![
            object(vec![("$documents", rows.clone().into())]),
            object(vec![("$setWindowFields", object(vec![
                ("sortBy", parsed(r#"{"t":1}"#)),
                ("output", object(vec![("found", output.into())])),
            ]))]),
        ]);
        prop_assert_eq!(found.len(), rows.len());
        for (index, row) in found.iter().enumerate() {
            let inside = window(&rows, index, is_range, lower, upper);
            if inside.is_empty() {
                continue;
            }
            let group = object(vec![("_id", Value::Null), ("found", function.clone())]);
            let groups = run(vec![object(vec![("$documents", inside.into())]), object(vec![("$group", group)])]);
            let shown = |row: &Value| row.get("found").map(json::text);
            prop_assert_eq!(shown(row), shown(&groups[0]), "row {}", index);
        }
    }
}
