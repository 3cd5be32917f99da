//! The function that reads nested values by their path.

use rhai::{Dynamic, Engine};

use super::registration::function;

pub(super) fn register(engine: &mut Engine) {
    function(
        "get",
        &["value: map", "path: string", "?"],
        "Returns the value at a path of field names and array indices, or `()` if there is none.",
        r#"get(#{a: #{b: [7, 8]}}, "a.b.1") == 8 && get(#{a: 1}, "a.x") == ()"#,
    )
    .register_into_engine(engine, |value: &mut rhai::Map, path: &str| {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        value.get(first).and_then(|inner| follow(inner, rest)).unwrap_or(Dynamic::UNIT)
    });
}

fn follow(value: &Dynamic, path: Option<&str>) -> Option<Dynamic> {
    let Some(path) = path else { return Some(value.clone().flatten()) };
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    if let Ok(map) = value.as_map_ref() {
        return follow(map.get(first)?, rest);
    }
    follow(value.as_array_ref().ok()?.get(first.parse::<usize>().ok()?)?, rest)
}
