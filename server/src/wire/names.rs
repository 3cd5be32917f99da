//! Checks of the names in a request: the fields of a body, or the parameters of a query.

use foldwork_engine::Error;
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::model::value::Object;
use foldwork_engine::model::violation::{Violations, segment};
use foldwork_engine::pipeline::hint::did_you_mean;

/// The maximum number of unknown names in one error.
const MAX_SHOWN: usize = 20;

/// Fails if an object has a field whose name is not in `allowed`.
pub fn only(fields: &Object, allowed: &[&str]) -> Result<(), Error> {
    let mut wrong = Violations::default();
    add_unknown(fields, allowed, &mut wrong);
    Ok(wrong.finish(())?)
}

/// Adds a violation for each field whose name is not in `allowed`.
pub fn add_unknown(fields: &Object, allowed: &[&str], wrong: &mut Violations) {
    for name in fields.keys().filter(|name| !allowed.contains(&&***name)).take(MAX_SHOWN) {
        wrong.add(format!("/{}", segment(&excerpt_of(name))), unknown("field", name, allowed));
    }
}

/// Returns the error message for an unknown name, with the most similar known name and all known names. `what` is the
/// kind of the name, such as `field`.
pub fn unknown(what: &str, name: &str, allowed: &[&str]) -> String {
    let hint = did_you_mean(name, allowed.iter().copied()).map(|hint| format!("{hint} ")).unwrap_or_default();
    let expected = match allowed {
        [] => format!("no {what} is allowed"),
        allowed => format!("allowed: {}", allowed.join(", ")),
    };
    format!("unknown {what}; {hint}{expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_an_error_with_the_names_allowed() {
        let fields = Object::from_iter([("comment", "c"), ("expectedVersion", "1"), ("a/b", "1")]);
        let error = only(&fields, &["comment", "expected_version"]).expect_err("unknown names").to_string();
        let expected = "/expectedVersion: unknown field; did you mean 'expected_version'? allowed: comment, \
                        expected_version; /a~1b: unknown field; allowed: comment, expected_version";
        assert_eq!(error, expected);
        assert!(only(&fields, &["comment", "expectedVersion", "a/b"]).is_ok());
    }
}
