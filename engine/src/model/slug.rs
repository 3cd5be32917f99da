//! Slugs: names of articles and projects that fit into URLs.

use super::id;

/// The name of the state field by which an aggregate can be addressed within its type and project.
pub const SLUG: &str = "slug";
/// The description of valid slugs (see [`is_valid`]) for error messages.
pub const EXPECTED: &str = "expected 1 to 200 of the characters a-z, A-Z, 0-9, '-', '_' and '.'";
/// The maximum length of a slug, in bytes.
const MAX_BYTES: usize = 200;
/// The maximum length of a slug that is derived from a text, in bytes. A slug to which a number is appended is first
/// cut to this length.
const MAX_STEM_BYTES: usize = 120;

/// Returns whether a slug is valid in an event of an article. The operations that create projects, and those that
/// create or change articles, also reject upper-case letters.
pub fn is_valid(slug: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !slug.is_empty() && slug.len() <= MAX_BYTES && slug.bytes().all(allowed)
}

/// Derives a slug from a text. The result may be empty.
pub fn slugify(text: &str) -> String {
    let mut slug: String = slug::slugify(text);
    slug.truncate(MAX_STEM_BYTES);
    debug_assert!(slug.is_empty() || id::is_valid_id(&slug));
    slug.trim_matches('-').to_owned()
}

/// Returns a valid slug for any text: the text itself if it is valid, otherwise the slug derived from the text, or
/// `fallback` if no slug can be derived.
pub fn valid(text: &str, fallback: &str) -> String {
    if is_valid(text) { text.to_owned() } else { derived(text, fallback) }
}

/// Returns the slug derived from a text, or `fallback` if the text has no character for a slug.
pub fn derived(text: &str, fallback: &str) -> String {
    Some(slugify(text)).filter(|slug| !slug.is_empty()).unwrap_or_else(|| fallback.to_owned())
}

/// Returns the slugs to try for a valid slug: the slug itself, then its first [`MAX_STEM_BYTES`] bytes followed by
/// `-2`, `-3` and so on.
pub fn numbered(slug: &str) -> impl Iterator<Item = String> + '_ {
    std::iter::once(slug.to_owned()).chain((2u64..).map(move |number| format!("{}-{number}", stem(slug))))
}

/// Returns whether `slug` is `base`, or the first [`MAX_STEM_BYTES`] bytes of `base` with a hyphen and a number.
pub fn is_numbered(slug: &str, base: &str) -> bool {
    let number = slug.strip_prefix(stem(base)).and_then(|rest| rest.strip_prefix('-'));
    slug == base || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the first [`MAX_STEM_BYTES`] bytes of a valid slug, so that a number can be appended.
fn stem(slug: &str) -> &str {
    slug.get(..MAX_STEM_BYTES).unwrap_or(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_slugs_are_valid_and_recognized() {
        for base in ["a".to_owned(), "a-2".to_owned(), "x".repeat(MAX_BYTES)] {
            let some: Vec<String> = numbered(&base).take(12).collect();
            assert_eq!(some[0], base);
            assert!(some.iter().all(|slug| is_valid(slug) && is_numbered(slug, &base)), "{some:?}");
        }
        assert_eq!(numbered("a").nth(1).as_deref(), Some("a-2"));
        for other in ["b", "ab", "a-", "a-x", "a-2x", ""] {
            assert!(!is_numbered(other, "a"), "{other}");
        }
    }

    #[test]
    fn any_text_has_a_valid_slug() {
        for (text, slug) in [("a.b_c-1", "a.b_c-1"), ("Über uns", "uber-uns"), ("!", "article"), ("", "article")] {
            assert_eq!(valid(text, "article"), slug);
        }
        assert!(is_valid(&valid(&"A ".repeat(1_000), "article")));
    }
}
