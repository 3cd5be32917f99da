//! Functions on texts.

use rhai::{Dynamic, Engine, INT, ImmutableString};
use sha2::{Digest, Sha256};

use super::{function, language};

/// Longest text that is compared for similarity, in characters: the time grows with the square.
const COMPARED: usize = 2_000;

pub(super) fn register(engine: &mut Engine) {
    function(
        "slugify",
        &["text: string", "string"],
        "Makes a slug of a text: lower case ASCII words with hyphens between them.",
        r#"slugify("Über Größe, 2nd ed.") == "uber-grosse-2nd-ed""#,
    )
    .register_into_engine(engine, |text: &str| slug::slugify(text));
    function(
        "word_count",
        &["text: string", "int"],
        "Counts the words of a text: what white space separates and has a letter or digit.",
        r#"word_count("One - two, three.") == 3"#,
    )
    .register_into_engine(engine, word_count);
    function(
        "similarity",
        &["a: string", "b: string", "float | ()"],
        "Tells how alike two texts are, from 0.0 to 1.0, by Jaro and Winkler; `()` where one has more than 2,000 characters.",
        r#"similarity("folding", "folding") == 1.0"#,
    )
    .register_into_engine(engine, similarity);
    function(
        "sha256",
        &["text: string", "string"],
        "Gives the SHA-256 of a text, in hexadecimal.",
        r#"sha256("abc").sub_string(0, 8) == "ba7816bf""#,
    )
    .register_into_engine(engine, |text: &str| -> ImmutableString { hex::encode(Sha256::digest(text)).into() });
    function(
        "language",
        &["text: string", "string"],
        "Guesses the language of a text from its beginning, as a code such as \"en\"; \"\" where it is not clear.",
        r#"language("Das ist der Satz, an dem man die deutsche Sprache gleich erkennt.") == "de""#,
    )
    .register_into_engine(engine, language::guess);
}

fn word_count(text: &str) -> INT {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count() as INT
}

fn similarity(a: &str, b: &str) -> Dynamic {
    let is_too_long = |text: &str| text.chars().nth(COMPARED).is_some();
    if is_too_long(a) || is_too_long(b) { Dynamic::UNIT } else { Dynamic::from_float(strsim::jaro_winkler(a, b)) }
}
