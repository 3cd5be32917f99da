//! Suggests known names that are similar to an unknown name.

/// Returns the candidate that is most similar to a name, or `None` if no candidate is similar enough.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + name.chars().count().max(candidate.chars().count()) / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns a hint with the candidate that is most similar to a name, or `None` if no candidate is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean '{candidate}'?"))
}

/// Returns a hint about an unknown name: the most similar known name, or all known names if none is similar enough.
/// `quote` encloses the similar name.
pub(crate) fn hint(name: &str, known: &[&str], quote: &str) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean {quote}{nearest}{quote}?"),
        None => format!("allowed are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_unless_no_name_is_similar() {
        assert_eq!(nearest("slugfy", ["slugify", "sha256"]), Some("slugify"));
        assert_eq!(nearest("wieght", ["kind", "weight"]), Some("weight"));
        assert_eq!(nearest("frobnicate", ["slugify", "sha256"]), None);
    }
}
