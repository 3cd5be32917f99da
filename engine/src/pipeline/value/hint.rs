//! "Did you mean": the nearest known name to one that is not known.

/// The candidate nearest to `name`, if one is near enough to have been meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long names cost quadratic time, and nothing known is that long.
    if name.len() > 64 {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint's text for `name`, if a candidate is near.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean '{candidate}'?"))
}

/// Edits between two names: insertions, removals, replacements; letter case counts as no edit.
fn distance(a: &str, b: &str) -> usize {
    strsim::levenshtein(&a.to_lowercase(), &b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let known = ["$match", "$group", "$sort"];
        assert_eq!(nearest("$mach", known), Some("$match"));
        assert_eq!(nearest("$SORT", known), Some("$sort"));
        assert_eq!(nearest("$graphLookup", known), None);
    }
}
