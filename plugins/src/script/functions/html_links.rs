//! Lists the targets of links in HTML.

/// Returns the targets of the `a` elements in HTML, except for those in comments.
pub(super) fn targets(html: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        rest = match tag.strip_prefix("!--") {
            Some(comment) => comment.split_once("-->").map_or("", |(_, after)| after),
            None => {
                // In `abbr`, no white space follows the `a`.
                let attributes = tag.strip_prefix(['a', 'A']).filter(|rest| rest.starts_with(char::is_whitespace));
                found.extend(attributes.and_then(href));
                tag
            }
        };
    }
    found
}

/// Returns the value of `href` among the attributes of a tag. A value in braces is an expression of MDX, not a URL.
fn href(attributes: &str) -> Option<&str> {
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
            if name.eq_ignore_ascii_case("href") {
                return Some(value).filter(|value| !value.starts_with('{'));
            }
            rest = after;
        }
    }
}

/// Splits a text after the value with which it begins, in quotes or without.
fn value(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"'),
        None => match text.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\''),
            None => Some(text.split_at(text.find(|character: char| character.is_whitespace() || character == '>')?)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_in_each_form_of_an_element() {
        for (html, expected) in [
            ("<a href=\"a.md\">x</a> <a class='y z' href='b.md'>", vec!["a.md", "b.md"]),
            ("<a\n  href=\"a.md\">", vec!["a.md"]),
            ("<A HREF=a.md>x</A>", vec!["a.md"]),
            ("<a download title = \"x > y\"href = a.md class=z>", vec!["a.md"]),
            ("<!-- <a href=\"old.md\">x</a> --><a href=\"a.md\">", vec!["a.md"]),
            ("<a href=\"a.md\"><!-- <a href=\"old.md\">", vec!["a.md"]),
            ("<a name=\"href=x.md\">x</a> <abbr href=\"x.md\"> <ahref=\"x.md\">", vec![]),
            ("<a href={target}> <a href> <a href=\"x.md <a <a", vec![]),
        ] {
            assert_eq!(targets(html), expected, "{html}");
        }
    }
}
