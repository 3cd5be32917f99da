//! What somebody may have meant who wrote a name that is not known.

/// The candidate that is closest to a name, where one is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + name.chars().count().max(candidate.chars().count()) / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_close_is_meant() {
        assert_eq!(nearest("slugfy", ["slugify", "sha256"]), Some("slugify"));
        assert_eq!(nearest("wieght", ["kind", "weight"]), Some("weight"));
        assert_eq!(nearest("frobnicate", ["slugify", "sha256"]), None);
    }
}
