//! Reads and checks products, the result of the hook `work`.

use foldwork_engine::model::facts::{Artifact, Product};
use foldwork_engine::model::value::Value;

use super::{ResultFields, event};

const MAX_ARTIFACTS: usize = 20;
const MAX_PARTS: usize = 20;
/// The fields that can contain the content of a part.
const CONTENTS: [&str; 3] = ["text", "data", "file"];

const FIELDS: [&str; 5] = ["artifacts", "message", "review", "does_not_apply", "declines"];
/// A function that creates a product from a reason.
type OfReason = fn(&str) -> Product;

/// The fields that contain a reason, each with the function that creates the product from the reason. A result with one
/// of these fields must have no other field.
const EXCLUSIVE_FIELDS: [(&str, OfReason); 2] = [("does_not_apply", not_applicable), ("declines", declined)];

/// The default message for a task that does not apply to the plugin.
const NOT_APPLICABLE: &str = "The plugin has nothing to do for this task.";

/// Reads the result of the hook `work`: `#{artifacts, message, review}`, in which each field is optional. If the result
/// is `()` or `#{does_not_apply}`, the plugin has nothing to do for the task. With `#{declines}`, the plugin declines
/// the task, which then waits for another assignee.
pub(in crate::script) fn read(value: &Value, aggregate_type: Option<&str>) -> Result<Product, String> {
    if value.is_null() {
        return Ok(not_applicable(NOT_APPLICABLE));
    }
    let fields = ResultFields::of("product".into(), value, &FIELDS)?;
    for (name, product) in EXCLUSIVE_FIELDS {
        if let Some(reason) = fields.text(name)? {
            return match fields.object.len() {
                1 if reason.trim().is_empty() => Err(format!("{} is empty", fields.path(name))),
                1 => Ok(product(reason)),
                _ => Err(format!("{} must be the only field", fields.path(name))),
            };
        }
    }
    Ok(Product {
        artifacts: fields.list("artifacts", MAX_ARTIFACTS, |path, item| artifact(path, item, aggregate_type))?,
        message: fields.text("message")?.map(str::to_owned),
        review: fields.flag("review")?,
        declined: None,
    })
}

/// Returns a product that ends the task with a message and without a review.
fn not_applicable(reason: &str) -> Product {
    Product { message: Some(reason.to_owned()), ..Product::default() }
}

/// Returns a product that declines the task, which then waits for another assignee.
fn declined(reason: &str) -> Product {
    Product { declined: Some(reason.to_owned()), ..Product::default() }
}

/// Reads an artifact `#{name, parts, effect}`.
fn artifact(path: String, value: &Value, aggregate_type: Option<&str>) -> Result<Artifact, String> {
    let fields = ResultFields::of(path, value, &["name", "parts", "effect"])?;
    let parts = fields.list("parts", MAX_PARTS, part)?;
    if parts.is_empty() {
        return Err(format!("{} needs at least one part", fields.path("parts")));
    }
    let effect = fields.get("effect").map(|effect| event(fields.path("effect"), effect, aggregate_type)).transpose()?;
    Ok(Artifact { name: fields.needed_text("name")?.to_owned(), parts, effect })
}

/// Reads a part `#{text | data | file, media_type}`.
fn part(path: String, value: &Value) -> Result<Value, String> {
    let fields = ResultFields::of(path, value, &["text", "data", "file", "media_type"])?;
    fields.text("media_type")?;
    fields.text("text")?;
    match CONTENTS.into_iter().filter(|name| fields.get(name).is_some()).count() {
        1 => Ok(value.clone()),
        given => Err(format!("{} needs exactly one of `{}`, but has {given}", fields.path, CONTENTS.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_json;
    use super::*;

    #[test]
    fn the_result_for_a_task_that_does_not_apply_to_the_plugin_contains_only_a_message() {
        let parsed = |json: &str| read(&of_json(json), Some("article"));
        assert_eq!(parsed("null"), Ok(not_applicable(NOT_APPLICABLE)));
        assert_eq!(parsed(r#"{"does_not_apply": "It has no text."}"#), Ok(not_applicable("It has no text.")));
        assert_eq!(
            parsed(r#"{"does_not_apply": "It has no text.", "review": true}"#),
            Err("product.does_not_apply must be the only field".to_owned())
        );
    }

    #[test]
    fn the_result_of_a_plugin_that_declines_a_task_contains_only_a_reason() {
        let parsed = |json: &str| read(&of_json(json), None);
        assert_eq!(parsed(r#"{"declines": "Too long for me."}"#), Ok(declined("Too long for me.")));
        assert_eq!(
            parsed(r#"{"declines": "No.", "message": "x"}"#),
            Err("product.declines must be the only field".to_owned())
        );
        assert_eq!(parsed(r#"{"declines": " "}"#), Err("product.declines is empty".to_owned()));
    }

    #[test]
    fn mistakes_are_reported_with_their_paths() {
        let refused = |json: &str| read(&of_json(json), Some("article")).expect_err("refused");
        assert_eq!(refused("7"), "product is an integer, not a map");
        assert_eq!(refused(r#"{"review": "yes"}"#), "product.review is a string, not a boolean");
        assert_eq!(
            refused(r#"{"artifacts": [{"name": "a", "parts": [{"text": "x", "data": {}}]}]}"#),
            "product.artifacts[0].parts[0] needs exactly one of `text`, `data`, `file`, but has 2"
        );
        assert_eq!(refused(r#"{"artifacts": [{"name": "a"}]}"#), "product.artifacts[0].parts needs at least one part");
        assert_eq!(
            refused(
                r#"{"artifacts": [{"name": "a", "parts": [{"text": "x"}], "effect": {"event_type": "enriched"}}]}"#
            ),
            "product.artifacts[0].effect.event_type is 'enriched', not <type>.<verb> with names that match \
             [a-z][a-z0-9_-]{0,63}"
        );
    }
}
