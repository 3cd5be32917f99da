//! Lists every name of the pipeline language for documentation and clients, from the tables that the parsers use.

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::parse;
use crate::model::closed_set::closed_set;
use crate::pipeline::expression::{accumulator, expr, filter, window};
use crate::pipeline::value::documentation::NameDocumentation;

/// A position in which a name is allowed. Some names are allowed in several positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum NameKind {
    Stage,
    Query,
    Accumulator,
    /// A function of `$setWindowFields` that is not an accumulator.
    Window,
    Expression,
    Variable,
}

closed_set!(NameKind);

/// A name of the pipeline language, with its kind and its documentation.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueEntry {
    pub kind: NameKind,
    pub word: &'static NameDocumentation,
}

/// One argument of a stage or operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    pub name: &'static str,
    pub type_name: &'static str,
    pub required: bool,
    /// Whether the argument may occur any number of times.
    pub repeated: bool,
}

impl CatalogueEntry {
    pub fn arguments(&self) -> impl Iterator<Item = Argument> + use<> {
        self.word.arguments.split(", ").filter(|text| !text.is_empty()).map(argument)
    }

    /// Returns the example as a JSON pipeline that includes the example's rows. The example of `$fold` reads events
    /// instead, and the example of `$documents` contains its own rows.
    pub fn pipeline(&self) -> String {
        let [written, input, _] = self.word.example;
        let rows = if input.starts_with('[') { input.to_owned() } else { format!("[{input}]") };
        let documents = format!(r#"{{"$documents":{rows}}}"#);
        match self.kind {
            NameKind::Stage if matches!(self.word.name, "$fold" | "$documents") => format!("[{written}]"),
            NameKind::Stage => format!("[{documents},{written}]"),
            NameKind::Query => format!(r#"[{documents},{{"$match":{written}}}]"#),
            NameKind::Accumulator => {
                format!(r#"[{documents},{{"$group":{{"_id":null,"result":{written}}}}},{{"$project":{{"_id":0}}}}]"#)
            }
            NameKind::Window => format!(
                r#"[{documents},{{"$setWindowFields":{{"sortBy":{{"t":1}},"output":{{"result":{written}}}}}}},{{"$group":{{"_id":null,"result":{{"$push":"$result"}}}}}},{{"$project":{{"_id":0}}}}]"#
            ),
            NameKind::Variable if matches!(self.word.name, "$$DESCEND" | "$$PRUNE" | "$$KEEP") => {
                format!(r#"[{documents},{{"$redact":{written}}}]"#)
            }
            NameKind::Expression | NameKind::Variable => {
                format!(r#"[{documents},{{"$project":{{"_id":0,"result":{written}}}}}]"#)
            }
        }
    }
}

fn argument(text: &'static str) -> Argument {
    let (name, type_name) = text.split_once(": ").unwrap_or((text, ""));
    let (name, required) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
    let (name, repeated) = name.strip_suffix("...").map_or((name, false), |name| (name, true));
    Argument { name, type_name: if type_name.is_empty() { name } else { type_name }, required, repeated }
}

/// Returns all entries, grouped by kind.
pub fn catalogue() -> impl Iterator<Item = CatalogueEntry> {
    let stages = parse::STAGES.iter().map(|word| CatalogueEntry { kind: NameKind::Stage, word });
    let queries = filter::words().map(|word| CatalogueEntry { kind: NameKind::Query, word });
    let accumulators =
        accumulator::catalogue().map(|known| CatalogueEntry { kind: NameKind::Accumulator, word: &known.word });
    let expressions =
        expr::catalogue::catalogue().map(|known| CatalogueEntry { kind: NameKind::Expression, word: &known.word });
    let variables = expr::VARIABLES.iter().map(|word| CatalogueEntry { kind: NameKind::Variable, word });
    let windows = window::catalogue().map(|known| CatalogueEntry { kind: NameKind::Window, word: &known.word });
    stages.chain(queries).chain(accumulators).chain(windows).chain(expressions).chain(variables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;
    use crate::model::value::{Object, Value};
    use crate::pipeline::plan::options::Options;
    use crate::pipeline::value::context::Context;
    use crate::pipeline::{Table, prepare};

    #[test]
    fn every_example_that_needs_no_log_returns_its_documented_result() {
        let elapsed = || 0;
        let mut query = Context::new(1_700_000_000_000, 7, &elapsed, u64::MAX, 64 << 20);
        query.user = Object::from_iter([("id", "someone")]).into();
        query.workspace = query.user.clone();
        let read = |text: &str| json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        // The example of `$fold` needs a log, so another test runs that example.
        for entry in catalogue().filter(|entry| entry.word.name != "$fold") {
            let name = entry.word.name;
            assert!(entry.word.example[0].contains(name), "{name} does not occur in its example");
            let prepared = prepare(&read(&entry.pipeline()), &Options::default(), &query);
            let prepared = prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
            let none: Vec<Value> = Vec::new();
            let tables: Vec<&dyn Table> = prepared.scans().iter().map(|_| &none as &dyn Table).collect();
            let rows = prepared.run(&tables, &query).unwrap_or_else(|error| panic!("{name}: {error}")).rows;
            let found = match rows.as_slice() {
                [row] if entry.pipeline().contains(r#""result":"#) => row.get("result").cloned().unwrap_or_default(),
                rows => Value::from(rows.to_vec()),
            };
            assert_eq!(json::text(&found), json::text(&read(entry.word.example[2])), "{} {name}", entry.kind.name());
        }
    }

    #[test]
    fn names_of_a_kind_are_unique_and_their_documentation_is_well_formed() {
        let mut names: Vec<(&str, &str)> = catalogue().map(|entry| (entry.kind.name(), entry.word.name)).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for entry in catalogue() {
            let NameDocumentation { name, summary, remark, .. } = entry.word;
            assert!(summary.ends_with('.') && (remark.is_empty() || remark.ends_with('.')), "{name}");
            for argument in entry.arguments() {
                let known = ["any", "number", "integer", "string", "boolean", "date", "object", "array"];
                let mut types = argument.type_name.split(" | ");
                assert!(types.all(|type_name| known.contains(&type_name)), "{name}: {}", argument.type_name);
            }
        }
    }
}
