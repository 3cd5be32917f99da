//! Lists the targets of links in HTML.

use super::registration::Refused;
use crate::script::guard::checkpoint;

/// The maximum number of bytes that are read after the name of a tag. Without this limit, a text with many unclosed
/// tags would be read to the end once for each tag.
const MAX_TAG: usize = 4096;
/// The attributes that may contain the target of an `a` element.
const OF_LINK: &[&str] = &["href"];
/// The attributes that may contain the target of a component in MDX.
const OF_COMPONENT: &[&str] = &["href", "to"];

/// Returns the targets of the `a` elements in HTML and of components such as `<Link to="/a">` in MDX, except for
/// targets in comments.
pub(super) fn targets(html: &str) -> Result<Vec<&str>, Refused> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        checkpoint()?;
        rest = match tag.strip_prefix("!--") {
            Some(comment) => comment.split_once("-->").map_or("", |(_, after)| after),
            None => {
                if let Some((attributes, names)) = link_attributes(tag) {
                    let end = attributes.floor_char_boundary(MAX_TAG);
                    found.extend(attributes.get(..end).and_then(|attributes| target(attributes, names)));
                }
                tag
            }
        };
    }
    Ok(found)
}

/// Returns the text after the name of a tag, and the names of the attributes that may contain the target of a link.
/// Returns `None` if the tag cannot be a link.
fn link_attributes(tag: &str) -> Option<(&str, &'static [&'static str])> {
    let (name, attributes) = tag.split_at(tag.find(|character: char| !character.is_ascii_alphanumeric())?);
    if !attributes.starts_with(char::is_whitespace) {
        return None;
    }
    // In HTML, the name of an element is usually written entirely in upper case or entirely in lower case.
    let is_component = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.contains(|letter: char| letter.is_ascii_lowercase());
    match is_component {
        true => Some((attributes, OF_COMPONENT)),
        false => name.eq_ignore_ascii_case("a").then_some((attributes, OF_LINK)),
    }
}

/// Returns the value of the first attribute with one of these names. Returns `None` for a value in braces, because the
/// value is an expression of MDX, not a URL.
fn target<'a>(attributes: &'a str, names: &[&str]) -> Option<&'a str> {
    let is_end = |character: char| character.is_whitespace() || matches!(character, '=' | '>' | '<');
    let mut rest = attributes;
    loop {
        rest = rest.trim_start();
        let (name, after) = rest.split_at(rest.find(is_end)?);
        if name.is_empty() {
            return None;
        }
        rest = after;
        if let Some(text) = after.trim_start().strip_prefix('=') {
            let (value, after) = value(text.trim_start())?;
            if names.iter().any(|expected| expected.eq_ignore_ascii_case(name)) {
                return Some(value).filter(|value| !value.starts_with('{'));
            }
            rest = after;
        }
    }
}

/// Splits a text into the attribute value at its beginning and the text after the value. The value may be in quotes. A
/// value without quotes ends before white space, `>` or `<`. Returns `None` if the value has no end.
fn value(text: &str) -> Option<(&str, &str)> {
    let is_end = |character: char| character.is_whitespace() || matches!(character, '>' | '<');
    match text.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split_once(text.chars().next()?),
        None => Some(text.split_at(text.find(is_end)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_targets_of_links_and_components_are_found_in_html() {
        for (html, expected) in [
            ("<a href=\"a.md\">x</a> <a class='y z' href='b.md'>", vec!["a.md", "b.md"]),
            ("<a\n  href=\"a.md\">", vec!["a.md"]),
            ("<A HREF=a.md>x</A>", vec!["a.md"]),
            ("<a download title = \"x > y\"href = a.md class=z>", vec!["a.md"]),
            ("<!-- <a href=\"old.md\">x</a> --><a href=\"a.md\">", vec!["a.md"]),
            ("<a href=\"a.md\"><!-- <a href=\"old.md\">", vec!["a.md"]),
            ("<a name=\"href=x.md\">x</a> <abbr href=\"x.md\"> <ahref=\"x.md\">", vec![]),
            ("<a href={target}> <a href> <a href=\"x.md <a <a", vec![]),
            ("<a href=a.md<a href=b.md>", vec!["a.md", "b.md"]),
            ("<Link className=\"x\" to=\"/a\">a</Link> <LinkCard href=\"/b\" /> <Tab to={c}>", vec!["/a", "/b"]),
            ("<LINK HREF=\"x.css\"> <link href=\"x.css\"> <a to=\"x.md\"> <Link.to=\"x\">", vec![]),
        ] {
            assert_eq!(targets(html).expect("listed"), expected, "{html}");
        }
    }

    #[test]
    fn unclosed_and_long_html_tags_are_read_up_to_a_length_limit() {
        let unquoted = format!("<p>{}<a href=a.md>", "<a x=".repeat(70_000));
        assert_eq!(targets(&unquoted).expect("listed"), ["a.md"]);
        // Each tag continues through the quotes of all tags that follow.
        let quoted = format!("<a {}", "k='<a x=\"' ".repeat(2_000));
        assert!(targets(&quoted).expect("listed").is_empty());
        let long = |length| format!("<a title=\"{}\" href=\"a.md\">", "ä".repeat(length));
        assert_eq!(targets(&long(1_000)).expect("listed"), ["a.md"]);
        assert!(targets(&long(3_000)).expect("listed").is_empty());
    }
}
