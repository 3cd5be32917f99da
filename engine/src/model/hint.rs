//! Errors about unknown names. The error message contains the list of all known names. If a known name is similar
//! enough to the unknown name, the message also suggests the most similar known name ("did you mean").

use super::excerpt::excerpt_of;
use super::value::Object;
use super::violation::{Violations, segment};

/// The maximum number of unknown names that are reported for one object.
const MAX_SHOWN: usize = 20;

/// Returns the candidate that is most similar to `name`, if `name` may be a misspelling of this candidate.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing names takes quadratic time, and few known names are longer than 64 bytes.
    if name.len() > 64 {
        return None;
    }
    // The distance is the number of insertions, removals, replacements and swaps of adjacent characters, ignoring case.
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the text of the hint for `name`, if a candidate is similar enough.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean '{candidate}'?"))
}

/// Returns the error message for an unknown name, with all known names, and with the most similar known name if this
/// name is similar enough. `what` is the kind of the unknown name, such as `field`.
pub fn unknown(what: &str, name: &str, allowed: &[&str]) -> String {
    let hint = did_you_mean(name, allowed.iter().copied()).map(|hint| format!("{hint} ")).unwrap_or_default();
    let expected = match allowed {
        [] => format!("no {what} is allowed"),
        allowed => format!("allowed: {}", allowed.join(", ")),
    };
    format!("unknown {what}; {hint}{expected}")
}

/// Adds a violation for each unknown field of an object, up to [`MAX_SHOWN`] violations. A field is unknown if
/// `allowed` does not contain the name of the field. `at` is the pointer of the object.
pub fn add_unknown(fields: &Object, allowed: &[&str], at: &str, violations: &mut Violations) {
    for name in fields.keys().filter(|name| !allowed.contains(&&***name)).take(MAX_SHOWN) {
        violations.add(format!("{at}/{}", segment(&excerpt_of(name))), unknown("field", name, allowed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_suggests_only_a_similar_name() {
        let known = ["$match", "$group", "$sort"];
        assert_eq!(nearest("$mach", known), Some("$match"));
        assert_eq!(nearest("$SORT", known), Some("$sort"));
        assert_eq!(nearest("$graphLookup", known), None);
    }
}
