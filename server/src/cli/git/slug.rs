//! Slugs of articles, derived from front matter and paths. No two articles have the same slug at the same time.

use std::collections::{BTreeSet, HashMap};

use foldwork_engine::model::slug as rules;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The maximum length of a slug in bytes.
const MAX_LEN: usize = 200;

/// The slugs in use, each with the number of its article.
#[derive(Debug, Default)]
pub struct Slugs {
    holders: HashMap<String, usize>,
    /// The released slugs that have not yet been offered to the files that wait for a slug.
    released: BTreeSet<String>,
}

/// The files that wait for the slug in their front matter.
#[derive(Debug, Default)]
pub struct SlugQueue {
    /// Maps the path of each file to the slug that the file waits for.
    slugs: HashMap<String, String>,
    /// Maps each slug to the paths of the files that wait for the slug.
    paths: HashMap<String, BTreeSet<String>>,
}

impl Slugs {
    /// Assigns a slug to the article of a file. `wanted` is the slug in the file's front matter. If `wanted` is `None`
    /// or not free, assigns the slug of the path.
    pub fn assign(&mut self, wanted: Option<&str>, path: &str, article: usize) -> String {
        match wanted.filter(|slug| self.is_free(slug, article)) {
            Some(slug) => {
                self.holders.insert(slug.to_owned(), article);
                slug.to_owned()
            }
            None => self.take(path, article),
        }
    }

    /// Assigns the slug of a path to an article. If another article has the slug, a number is appended.
    pub fn take(&mut self, path: &str, article: usize) -> String {
        let base = of_path(path);
        let mut slug = base.clone();
        let mut number: u32 = 2;
        while !self.is_free(&slug, article) {
            let ending = format!("-{number}");
            // Shortens the base, so that the slug with its number does not exceed the maximum length.
            let stem = base.get(..MAX_LEN - ending.len()).unwrap_or(&base);
            slug = format!("{stem}{ending}");
            number = number.saturating_add(1);
        }
        self.holders.insert(slug.clone(), article);
        slug
    }

    /// Returns whether a slug is free for an article: no other article has the slug.
    pub fn is_free(&self, slug: &str, article: usize) -> bool {
        self.holders.get(slug).is_none_or(|&holder| holder == article)
    }

    /// Records the slug that an article has.
    pub fn hold(&mut self, slug: &str, article: usize) {
        self.holders.insert(slug.to_owned(), article);
    }

    /// Releases a slug, so that another article can use the slug.
    pub fn release(&mut self, slug: &str) {
        if self.holders.remove(slug).is_some() {
            self.released.insert(slug.to_owned());
        }
    }

    /// Removes and returns the alphabetically first of the released slugs. An article may have taken this slug since
    /// the release.
    pub fn next_released(&mut self) -> Option<String> {
        self.released.pop_first()
    }
}

impl SlugQueue {
    pub fn insert(&mut self, path: &str, slug: &str) {
        self.remove(path);
        self.slugs.insert(path.to_owned(), slug.to_owned());
        self.paths.entry(slug.to_owned()).or_default().insert(path.to_owned());
    }

    pub fn remove(&mut self, path: &str) {
        let Some(slug) = self.slugs.remove(path) else { return };
        if let Some(paths) = self.paths.get_mut(&slug) {
            paths.remove(path);
            if paths.is_empty() {
                self.paths.remove(&slug);
            }
        }
    }

    /// Returns the sorted paths of the files that wait for a slug.
    pub fn of(&self, slug: &str) -> impl Iterator<Item = &String> {
        self.paths.get(slug).into_iter().flatten()
    }
}

/// Returns the slug for the path of a Markdown file. The file's extension is not part of the slug. If the rest of the
/// path has no letters or digits, the slug contains a digest of the path.
pub fn of_path(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut slug = slugify(stem);
    slug.truncate(MAX_LEN);
    if slug.is_empty() {
        return format!("article-{}", digest(path));
    }
    slug.trim_end_matches('-').to_owned()
}

/// Returns whether a slug is the slug of a path, with or without a number at its end. Earlier versions of the program
/// derived the slug from only the ASCII letters and digits of the path. Such a slug is accepted as well, so that an
/// article keeps its slug while its path stays the same.
pub fn is_of_path(slug: &str, path: &str) -> bool {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let earlier = match words(stem) {
        empty if empty.is_empty() => format!("article-{}", digest(path)),
        words => words,
    };
    rules::is_numbered(slug, &of_path(path)) || rules::is_numbered(slug, &earlier)
}

/// Converts the slug in front matter, which may be the path of a page, to a valid slug. Returns `None` if no slug can
/// be derived.
pub fn of_front_matter(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('/');
    if rules::is_valid(text) && text.contains(|letter: char| letter.is_ascii_alphanumeric()) {
        return Some(text.to_owned());
    }
    let mut slug = slugify(text);
    slug.truncate(MAX_LEN);
    let slug = slug.trim_end_matches('-').to_owned();
    rules::is_valid(&slug).then_some(slug)
}

/// Returns the sequences of letters and digits of a text in lower case, joined by `-`. Transcribes non-ASCII letters to
/// ASCII, separately for each part of a path. A part whose letters have no transcription becomes a digest.
pub fn slugify(text: &str) -> String {
    let parts = text.split('/').map(slugify_part).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

fn slugify_part(part: &str) -> String {
    if part.is_ascii() {
        return words(part);
    }
    // Removes symbols such as emoji, whose names would otherwise become part of the slug.
    let is_kept = |letter: char| letter.is_ascii() || letter.is_alphanumeric() || is_combining_mark(letter);
    let letters: String = part.nfc().map(|letter| if is_kept(letter) { letter } else { ' ' }).collect();
    match rules::slugify(&letters) {
        // Without the digest, all names in a script without a transcription would have the same slug.
        slug if slug.is_empty() && letters.contains(char::is_alphanumeric) => digest(part),
        slug => slug,
    }
}

/// Returns the sequences of ASCII letters and digits of a text in lower case, joined by `-`.
fn words(text: &str) -> String {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes())).get(..8).unwrap_or_default().to_owned()
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
        assert!(of_path("🎉.md").starts_with("article-"));
        assert!(of_path(&"x/".repeat(500)).len() <= MAX_LEN);
    }

    #[test]
    fn non_ascii_letters_are_transliterated_to_ascii() {
        for (path, slug) in [
            ("notes/Über uns.md", "notes-uber-uns"),
            ("notes/U\u{308}ber uns.md", "notes-uber-uns"),
            ("Заметки/Привет мир.md", "zametki-privet-mir"),
            ("日本.md", "ri-ben"),
            ("ノート/メモ.md", "noto-memo"),
            ("🎉 party.md", "party"),
        ] {
            assert_eq!(of_path(path), slug);
        }
        let arabic = ["ar/مقدمة.md", "ar/دليل.md", "ar/أسئلة 57.md"].map(of_path);
        assert!(arabic.iter().all(|slug| rules::is_valid(slug) && slug.starts_with("ar-")), "{arabic:?}");
        assert!(arabic[0] != arabic[1] && arabic[2].ends_with("-57") && arabic[2] != "ar-57");
        // These letters have no known transcription.
        assert_ne!(of_path("x/\u{13000}.md"), of_path("x/\u{13001}.md"));
        assert_eq!(slugify("\u{13000}").len(), 8);
    }

    #[test]
    fn slugs_that_earlier_versions_derived_from_a_path_are_recognized() {
        for slug in ["uber", "ber", "ber-57"] {
            assert!(is_of_path(slug, "über.md"), "{slug}");
        }
        assert!(!is_of_path("other", "über.md") && !is_of_path("", "über.md"));
    }

    #[test]
    fn a_slug_in_front_matter_is_made_valid() {
        for (text, slug) in [
            ("my-post", Some("my-post")),
            ("My_Post.1", Some("My_Post.1")),
            ("/docs/Getting started/", Some("docs-getting-started")),
            ("привет", Some("privet")),
            ("/", None),
            ("", None),
            ("..", None),
            ("\u{0}", None),
        ] {
            assert_eq!(of_front_matter(text).as_deref(), slug, "{text}");
        }
        assert!(of_front_matter(&"é ".repeat(10_000)).is_some_and(|slug| slug.len() <= MAX_LEN));
    }

    #[test]
    fn an_article_gets_the_slug_of_its_path_if_the_wanted_slug_is_taken() {
        let mut slugs = Slugs::default();
        assert_eq!(slugs.assign(Some("intro"), "a.md", 0), "intro");
        assert_eq!(slugs.assign(Some("intro"), "a.md", 0), "intro");
        assert_eq!(slugs.assign(Some("intro"), "b.md", 1), "b");
        assert_eq!(slugs.assign(None, "intro.md", 2), "intro-2");
    }

    #[test]
    fn a_numbered_slug_stays_within_the_length_limit() {
        let mut slugs = Slugs::default();
        for article in 0..12 {
            assert!(rules::is_valid(&slugs.take(&format!("{}.md", "x".repeat(300)), article)));
        }
    }

    #[test]
    fn a_slug_that_is_released_twice_is_returned_once() {
        let mut slugs = Slugs::default();
        slugs.hold("b", 0);
        slugs.hold("a", 1);
        ["b", "", "a", "a"].into_iter().for_each(|slug| slugs.release(slug));
        let released: Vec<String> = std::iter::from_fn(|| slugs.next_released()).collect();
        assert_eq!((released, slugs.next_released()), (vec!["a".to_owned(), "b".to_owned()], None));
    }

    #[test]
    fn a_file_waits_only_for_the_slug_it_wanted_last() {
        let mut queue = SlugQueue::default();
        for (path, slug) in [("b.md", "x"), ("a.md", "x"), ("c.md", "x"), ("c.md", "y")] {
            queue.insert(path, slug);
        }
        queue.remove("b.md");
        assert_eq!(queue.of("x").collect::<Vec<_>>(), ["a.md"]);
        assert_eq!(queue.of("y").collect::<Vec<_>>(), ["c.md"]);
        queue.remove("c.md");
        assert_eq!(queue.of("y").count(), 0);
    }

    #[test]
    fn a_slug_belongs_to_one_article_until_the_slug_is_released() {
        let mut slugs = Slugs::default();
        assert_eq!(slugs.take("a/b.md", 0), "a-b");
        assert_eq!(slugs.take("a-b.md", 1), "a-b-2");
        assert_eq!(slugs.take("a/b.md", 0), "a-b");
        slugs.release("a-b");
        assert_eq!(slugs.take("a b.md", 2), "a-b");
    }
}
