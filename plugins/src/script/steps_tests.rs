//! Tests that the shipped scripts take few steps for bodies of any size, so that each call stays within the default
//! deadline.

use serde_json::json;

use super::{Script, case, guard};
use crate::PluginFolder;
use crate::limits::CallLimits;

/// The maximum number of steps of one call. A step of a release build takes about 100 ns, so a call takes at most about
/// half of the default deadline of 250 ms.
const MAX_STEPS: u64 = 1_250_000;
const BODY_BYTES: usize = 900_000;
/// The size of a body that exceeds the maximum size of a script's texts. An import may append such a body.
const LARGE_BODY_BYTES: usize = 3 << 20;

/// The parts from which the tests build bodies. A test repeats one part until the body has the required size. Each part
/// slows down a different function.
const PARTS: [&str; 20] = [
    "x",
    "word ",
    "a\n\n",
    "# h\n\n",
    "- i\n",
    "[l](t/p.md) ",
    "[",
    "t/p.md ",
    "a/",
    "1.md.",
    "*a* `b`\n",
    "|a|b|\n|-|-|\n",
    "東京都庁へ。",
    "&amp;\\_\r\n",
    "[[n|t]] ",
    "[[",
    "[a]({{< ref \"b\" >}}) ",
    "{{",
    "{% link ",
    "<a href='b'> ",
];

/// Hooks that read bodies. Each pair contains the name of a shipped plugin and the name of a hook of this plugin.
const HOOKS: [(&str, &str); 4] =
    [("reading_stats", "enrich"), ("linker", "enrich"), ("linker", "work"), ("structured_data", "work")];

/// Calls a hook with a body. Returns the number of steps, and a message that contains the result of the hook. To get
/// this message, the function runs a test case that expects an error: the hook returns no error, so the case fails, and
/// its failure contains the result.
fn steps(plugin: &str, hook: &str, path: &str, body: &str) -> (u64, String) {
    let related: Vec<_> =
        (0..200).map(|number| json!({"id": format!("n-{number}"), "label": format!("wor{number}")})).collect();
    let case = json!({"case": [{
        "name": "a large body", "hook": hook, "state": {"title": "Large", "body": body, "path": path},
        "related": if hook == "work" { related } else { Vec::new() }, "error": "none",
    }]});
    let cases = toml::to_string(&case).expect("TOML");
    let folder = PluginFolder { cases, ..PluginFolder::shipped(plugin).expect("shipped") };
    let script = Script::load(&folder, CallLimits::default()).expect("a script");
    let outcome = case::run(&script, &folder).expect("a case").remove(0);
    (guard::steps(), outcome.failure.expect("a case that expects a failure").to_string())
}

fn check(part: &str, bytes: usize) {
    let body = part.repeat(bytes / part.len());
    for (plugin, hook) in HOOKS {
        // If an article has a path, the hook reads the links in another way.
        let paths = if (plugin, hook) == ("linker", "enrich") { &["", "docs/large.md"][..] } else { &[""] };
        for path in paths {
            let (steps, result) = steps(plugin, hook, path, &body);
            assert!(result.contains("but the hook returned"), "{plugin} {hook} {path:?} {part:?}: {result:.500}");
            assert!((1..=MAX_STEPS).contains(&steps), "{plugin} {hook} {path:?} {part:?}: {steps} steps");
        }
    }
}

#[test]
fn shipped_scripts_stay_within_a_step_limit_for_a_large_body() {
    PARTS.iter().for_each(|part| check(part, BODY_BYTES));
}

#[test]
fn shipped_scripts_stay_within_a_step_limit_for_a_body_over_the_text_limit() {
    check("word ", LARGE_BODY_BYTES);
}
