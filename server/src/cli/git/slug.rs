//! Slugs of articles, derived from paths. No two articles have the same slug at the same time.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// The maximum length of a slug in bytes.
const MAX_LEN: usize = 200;

/// The slugs in use, each with the index of its article.
#[derive(Debug, Default)]
pub struct Slugs {
    holders: HashMap<String, usize>,
}

impl Slugs {
    /// Assigns the slug of a path to an article. If another article has the slug, a number is appended.
    pub fn take(&mut self, path: &str, article: usize) -> String {
        let base = of_path(path);
        let mut slug = base.clone();
        let mut number: u32 = 2;
        while self.holders.get(&slug).is_some_and(|&holder| holder != article) {
            slug = format!("{base}-{number}");
            number = number.saturating_add(1);
        }
        self.holders.insert(slug.clone(), article);
        slug
    }

    /// Releases a slug, so that another article can use the slug.
    pub fn release(&mut self, slug: &str) {
        self.holders.remove(slug);
    }
}

/// Returns the slug for the path of a Markdown file. The file's extension is left out.
pub fn of_path(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut slug = slugify(stem);
    slug.truncate(MAX_LEN);
    if slug.is_empty() {
        let digest = format!("{:x}", Sha256::digest(path.as_bytes()));
        return format!("article-{}", digest.get(..8).unwrap_or_default());
    }
    slug.trim_end_matches('-').to_owned()
}

/// Returns text in lower case, with a `-` in place of each sequence of characters other than ASCII letters and digits.
pub fn slugify(text: &str) -> String {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_derived_from_the_path() {
        for (path, slug) in [
            ("README.md", "readme"),
            ("docs/First Steps.markdown", "docs-first-steps"),
            ("text/0001-private.fields.md", "text-0001-private-fields"),
            ("__a__/-b-.md", "a-b"),
        ] {
            assert_eq!(of_path(path), slug);
        }
        assert!(of_path("日本.md").starts_with("article-"));
        assert_ne!(of_path("日本.md"), of_path("本日.md"));
        assert!(of_path(&"x/".repeat(500)).len() <= MAX_LEN);
    }

    #[test]
    fn two_articles_never_share_a_slug() {
        let mut slugs = Slugs::default();
        assert_eq!(slugs.take("a/b.md", 0), "a-b");
        assert_eq!(slugs.take("a-b.md", 1), "a-b-2");
        assert_eq!(slugs.take("a/b.md", 0), "a-b");
        slugs.release("a-b");
        assert_eq!(slugs.take("a b.md", 2), "a-b");
    }
}
