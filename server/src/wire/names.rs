//! Checks the names in a request: the fields of a body, or the parameters of a query.

use foldwork_engine::Error;
pub use foldwork_engine::model::hint::{add_unknown, unknown};
use foldwork_engine::model::value::Object;
use foldwork_engine::model::violation::Violations;

/// Fails if an object contains a field whose name is not in `allowed`.
pub fn only(fields: &Object, allowed: &[&str]) -> Result<(), Error> {
    let mut wrong = Violations::default();
    add_unknown(fields, allowed, "", &mut wrong);
    Ok(wrong.finish(())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_an_unknown_name_lists_the_allowed_names() {
        let fields = Object::from_iter([("comment", "c"), ("expectedVersion", "1"), ("a/b", "1")]);
        let error = only(&fields, &["comment", "expected_version"]).expect_err("unknown names").to_string();
        let expected = "/expectedVersion: unknown field; did you mean 'expected_version'? allowed: comment, \
                        expected_version; /a~1b: unknown field; allowed: comment, expected_version";
        assert_eq!(error, expected);
        assert!(only(&fields, &["comment", "expectedVersion", "a/b"]).is_ok());
    }
}
