//! Limits the length of task titles from clients, plugins and the program.

use std::sync::Arc;

/// The maximum length of a title, in characters.
const MAX_CHARS: usize = 500;
/// The last character of a title that was cut.
const ELLIPSIS: char = '…';

/// Checks a title from a request or a plugin. The error describes the allowed titles.
pub fn check(title: &str) -> Result<(), String> {
    let title = title.trim();
    let fits = !title.is_empty() && title.chars().nth(MAX_CHARS).is_none();
    if fits { Ok(()) } else { Err(format!("expected 1 to {MAX_CHARS} characters, not only white space")) }
}

/// Returns a text as a title, cut with an ellipsis if it is too long.
pub fn cut(text: &Arc<str>) -> Arc<str> {
    if text.char_indices().nth(MAX_CHARS).is_none() {
        return text.clone();
    }
    text.chars().take(MAX_CHARS - 1).chain([ELLIPSIS]).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_not_blank_and_has_at_most_500_characters() {
        assert_eq!(check(&"ß".repeat(500)), Ok(()));
        for title in ["", " \n", &"x".repeat(501)] {
            assert_eq!(check(title), Err("expected 1 to 500 characters, not only white space".to_owned()));
        }
    }

    #[test]
    fn a_title_over_the_limit_is_cut_and_ends_with_an_ellipsis() {
        let whole: Arc<str> = "ß".repeat(500).into();
        assert_eq!(cut(&whole), whole);
        let title = cut(&"ß".repeat(100_000).into());
        assert_eq!((title.chars().count(), title.chars().last()), (500, Some('…')));
        assert_eq!(cut(&title), title);
    }
}
