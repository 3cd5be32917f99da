//! Functions for texts: slugs, word counts, the beginning of a text, similarity, hashes and language detection.

use rhai::{Dynamic, Engine, INT, ImmutableString, Map};
use sha2::{Digest, Sha256};

use super::language;
use super::registration::{Refused, function, thrown};
use crate::script::guard::count_read;

/// The maximum length of a text that is compared for similarity, in characters. The time of a comparison is quadratic.
const MAX_COMPARED_CHARS: usize = 2_000;

pub(super) fn register(engine: &mut Engine) {
    function(
        "slugify",
        &["text: string", "string"],
        "Returns a slug of a text: lower-case ASCII words separated by hyphens.",
        r#"slugify("Über Größe, 2nd ed.") == "uber-grosse-2nd-ed""#,
    )
    .register_into_engine(engine, |text: &str| slug::slugify(text));
    function(
        "word_count",
        &["text: string", "int"],
        "Counts the words of a text. Words are separated by whitespace and contain a letter or digit.",
        r#"word_count("One - two, three.") == 3"#,
    )
    .register_into_engine(engine, word_count);
    function(
        "text_start",
        &["text: string", "most: int", "map"],
        "Returns the first `most` bytes of a text as `#{text, more}`, without a partial character at the end. \
         `more` is true if something is left out.",
        r#"text_start("Größe", 4) == #{text: "Grö", more: true}"#,
    )
    .register_into_engine(engine, |text: &str, most: INT| {
        let (start, more) = start_of(text, most)?;
        let entries = [("text".into(), start.into()), ("more".into(), Dynamic::from_bool(more))];
        Ok::<_, Refused>(Map::from_iter(entries))
    });
    function(
        "similarity",
        &["a: string", "b: string", "float | ()"],
        "Returns the Jaro-Winkler similarity of two texts, from 0.0 to 1.0, or `()` if one has more than 2,000 \
         characters.",
        r#"similarity("folding", "folding") == 1.0"#,
    )
    .register_into_engine(engine, similarity);
    function(
        "sha256",
        &["text: string", "string"],
        "Returns the SHA-256 of a text in hexadecimal.",
        r#"sha256("abc").sub_string(0, 8) == "ba7816bf""#,
    )
    .register_into_engine(engine, |text: &str| -> ImmutableString { hex::encode(Sha256::digest(text)).into() });
    function(
        "language",
        &["text: string", "string"],
        "Guesses the language of a text from its beginning. Returns a code such as \"en\", or \"\" if the language is \
         unclear.",
        r#"language("Das ist der Satz, an dem man die deutsche Sprache gleich erkennt.") == "de""#,
    )
    .register_into_engine(engine, language::guess);
}

/// Returns at most the first `most` bytes of a text, and whether the text is longer. Fails if `most` is negative.
pub(super) fn start_of(text: &str, most: INT) -> Result<(&str, bool), Refused> {
    let Ok(most) = usize::try_from(most) else { return Err(thrown("the number of bytes is less than 0")) };
    let start = &text[..text.floor_char_boundary(most)];
    Ok((start, start.len() < text.len()))
}

fn word_count(text: &str) -> INT {
    count_read(text);
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count() as INT
}

fn similarity(a: &str, b: &str) -> Dynamic {
    let is_too_long = |text: &str| text.chars().nth(MAX_COMPARED_CHARS).is_some();
    if is_too_long(a) || is_too_long(b) { Dynamic::UNIT } else { Dynamic::from_float(strsim::jaro_winkler(a, b)) }
}
