//! The title of an article in its body: the first heading, in Markdown or as `<h1>`.

use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::{Captures, Regex};

/// The maximum number of characters of a title.
pub const MAX_TITLE: usize = 1_000;
/// The maximum number of bytes from the end of an `<h1>` tag to the end of `</h1>`.
const MAX_HTML: usize = 4 * 1024;
/// The maximum number of `<h1>` tags that the search for a heading tries.
const MAX_ATTEMPTS: usize = 16;

/// Matches attributes at the end of a heading: `{#id}`, `{.class}`, `{: .class}`, `{name=value}` and `{/* #id */}`.
static ATTRIBUTES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\s*\{\s*(?:[#.:]|/\*|[A-Za-z][\w-]*=)[^{}]*\}\s*$").ok());
static HEADING_TAG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)<h1(?:\s[^>]*)?>").ok());
static HEADING_END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)</h1\s*>").ok());
/// Matches an HTML comment or a tag, and captures the `alt` of an image.
static TAG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?is)<!--.*?-->|<img\s(?:[^>]*?\s)?alt="([^"]*)"[^>]*>|</?[a-z][^>]*>"#).ok());
static ENTITY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,8});").ok());

/// Returns the text of the first heading that is not empty, in Markdown or as `<h1>`.
pub fn first_heading(body: &str) -> Option<String> {
    let mut heading: Option<String> = None;
    let mut attempts = 0;
    let options = Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_WIKILINKS;
    for (event, range) in Parser::new_ext(body, options).into_offset_iter() {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::SoftBreak | Event::HardBreak, Some(heading)) => heading.push(' '),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let title = one_line(without_attributes(text));
                if !title.is_empty() {
                    return Some(title);
                }
                heading = None;
            }
            (Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_), None) if attempts < MAX_ATTEMPTS => {
                let html = body.get(range.start..).unwrap_or_default();
                let Some(opening) = HEADING_TAG.as_ref().and_then(|tag| tag.find(html.get(..range.len())?)) else {
                    continue;
                };
                attempts += 1;
                if let Some(title) = html.get(opening.end()..).and_then(html_heading) {
                    return Some(title);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns a text as one line of at most [`MAX_TITLE`] characters. Line breaks and other control characters, with the
/// white space around them, become single spaces.
pub fn one_line(text: &str) -> String {
    let lines = text.split(|letter: char| letter.is_control()).map(str::trim).filter(|line| !line.is_empty());
    let joined = lines.collect::<Vec<_>>().join(" ");
    joined.chars().take(MAX_TITLE).collect()
}

/// Removes the attributes at the end of a heading.
fn without_attributes(heading: &str) -> &str {
    let mut rest = heading.trim();
    while let Some(found) = ATTRIBUTES.as_ref().and_then(|attributes| attributes.find(rest)) {
        rest = rest.get(..found.start()).unwrap_or_default();
    }
    rest
}

/// Returns the text of an `<h1>` element as one line. `html` begins after the `<h1>` tag and may contain empty lines
/// before `</h1>`.
fn html_heading(html: &str) -> Option<String> {
    let rest = html.get(..html.floor_char_boundary(MAX_HTML))?;
    let inside = rest.get(..HEADING_END.as_ref()?.find(rest)?.start())?;
    // The alternative text of an image replaces the image, as in a heading in Markdown.
    let text =
        TAG.as_ref()?.replace_all(inside, |tag: &Captures<'_>| tag.get(1).map_or("", |alt| alt.as_str()).to_owned());
    let text = ENTITY.as_ref()?.replace_all(&text, |entity: &Captures<'_>| decoded(entity));
    let title = one_line(&text);
    (!title.is_empty()).then_some(title)
}

fn decoded(entity: &Captures<'_>) -> String {
    let name = entity.get(1).map_or("", |name| name.as_str());
    let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    });
    let letter = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => number.and_then(char::from_u32),
    };
    letter.map_or_else(|| format!("&{name};"), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(body: &str) -> String {
        first_heading(body).unwrap_or_default()
    }

    #[test]
    fn attributes_and_anchors_are_not_part_of_a_title() {
        for body in [
            "# Getting started {#start}\n",
            "# Getting started {#start .wide}\n",
            "# Getting started {: .no_toc }\n",
            "# Getting started {.no_toc} {#start}\n",
            "# Getting started {/* #start */}\n",
            "# Getting started { data-toc=\"no\" }\n",
            "Getting started {#a_b_c}\n=====\n",
        ] {
            assert_eq!(title(body), "Getting started", "{body}");
        }
        assert_eq!(title("# The set {a, b}\n"), "The set {a, b}");
        assert_eq!(title("# `{#each}` in templates\n"), "{#each} in templates");
        assert_eq!(title("# {#only}\n\n## Next\n"), "Next");
    }

    #[test]
    fn a_title_contains_the_text_of_links_and_emphasis_without_markup() {
        for (body, expected) in [
            ("# [Guide](a.md) to **bold** `code` 🎉\n", "Guide to bold code 🎉"),
            ("# About [[Note|this]] and [[That]]\n", "About this and That"),
            ("# Not ~~old~~ new[^1]\n\n[^1]: A note.\n", "Not old new"),
        ] {
            assert_eq!(title(body), expected, "{body}");
        }
    }

    #[test]
    fn an_html_heading_is_a_title() {
        for (body, expected) in [
            ("<h1 align=\"center\">Fast &amp; small</h1>\n\n## Usage\n", "Fast & small"),
            ("<h1>\n  <br>\n  <a href=\"x\"><img src=\"l.svg\" alt=\"Logo\"></a>\n\n  Name\n</h1>\n", "Logo Name"),
            ("<div>\n<H1 class=\"a\">Name<!-- not this --></H1>\n</div>\n", "Name"),
            ("<h1></h1>\n\n# Name\n", "Name"),
            ("<h1>never closed\n\n# Name\n", "Name"),
            ("<h10>no</h10>\n\n# Name\n", "Name"),
            ("Text <h1>Name</h1>\n", "Name"),
            ("# First\n\n<h1>Second</h1>\n", "First"),
            ("<h1>&#x41;&#66;&unknown;</h1>\n", "AB&unknown;"),
        ] {
            assert_eq!(title(body), expected, "{body}");
        }
        assert_eq!(title("```\n<h1>Code</h1>\n```\n"), "");
    }

    #[test]
    fn a_title_is_one_line_of_limited_length() {
        assert_eq!(one_line(" a \n\t b\u{7}"), "a b");
        assert_eq!(title(&format!("# {}\n", "x".repeat(5_000))).len(), MAX_TITLE);
        let many = "<h1>\n\n".repeat(2_000);
        assert_eq!(title(&many), "");
    }
}
