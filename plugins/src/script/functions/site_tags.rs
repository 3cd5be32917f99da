//! Converts the tags of Hugo and Jekyll that refer to other pages into URLs, because Markdown does not accept such tags
//! as targets of links.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The scheme of the URL that replaces Hugo's `ref` or `relref`. The argument of the tag follows, percent-encoded.
pub(super) const HUGO_REF: &str = "x-hugo-ref:";
/// The scheme of the URL that replaces Jekyll's `link`. The argument of the tag follows, percent-encoded.
pub(super) const JEKYLL_LINK: &str = "x-jekyll-link:";
/// The scheme of the URL that replaces Jekyll's `post_url`. The argument of the tag follows, percent-encoded.
pub(super) const JEKYLL_POST: &str = "x-jekyll-post:";
/// The maximum length of a tag, in bytes.
const MAX_TAG: usize = 600;

/// Returns Markdown with a URL in place of each tag that refers to a page, and without `{{ site.baseurl }}` and
/// `{{ site.url }}`.
pub(super) fn replaced(markdown: &str) -> Cow<'_, str> {
    if !markdown.contains("{{") && !markdown.contains("{%") {
        return Cow::Borrowed(markdown);
    }
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(at) = rest.find('{') {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let (length, url) = url_of(tag).unwrap_or((1, "{".to_owned()));
        text.push_str(&url);
        rest = tag.get(length..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Returns the length of the tag at the beginning of a text, and the URL that replaces the tag. The URL is empty for
/// `site.baseurl` and `site.url`. Returns `None` if the text does not begin with a tag that [`replaced`] replaces.
fn url_of(text: &str) -> Option<(usize, String)> {
    let text = text.get(..text.floor_char_boundary(MAX_TAG))?;
    let inside = |open: &str, close: &str, starts: &[&str]| {
        let inner = text.strip_prefix(open)?;
        // Searches for the end only of tags that are replaced, because a search takes time.
        let start = inner.trim_start_matches([' ', '-']);
        if !starts.iter().any(|expected| start.starts_with(expected)) {
            return None;
        }
        let inner = inner.get(..inner.find(close)?).filter(|inner| !inner.contains('\n'))?;
        Some((open.len() + inner.len() + close.len(), inner.trim()))
    };
    let hugo = inside("{{<", ">}}", &["ref", "relref"]).or_else(|| inside("{{%", "%}}", &["ref", "relref"]));
    if let Some((length, inner)) = hugo {
        let arguments = inner.strip_prefix("relref").or_else(|| inner.strip_prefix("ref"))?;
        return Some((length, url(HUGO_REF, hugo_argument(arguments)?)));
    }
    if let Some((length, inner)) = inside("{%", "%}", &["link", "post_url"]) {
        let inner = inner.trim_matches('-').trim();
        let (scheme, argument) = match inner.split_once(char::is_whitespace)? {
            ("link", argument) => (JEKYLL_LINK, argument),
            ("post_url", argument) => (JEKYLL_POST, argument),
            _ => return None,
        };
        return Some((length, url(scheme, argument.trim().trim_matches(['"', '\'']))));
    }
    let (length, inner) = inside("{{", "}}", &["site.", "\"", "'"])?;
    match inner.split_once('|') {
        None => matches!(inner, "site.baseurl" | "site.url").then(|| (length, String::new())),
        Some((path, filters)) if filters.split('|').all(adds_root) => {
            let path = path.trim();
            let quoted = path.strip_prefix(['"', '\'']).and_then(|path| path.strip_suffix(['"', '\'']))?;
            Some((length, format!("/{}", quoted.trim_start_matches('/').replace(' ', "%20"))))
        }
        Some(_) => None,
    }
}

/// Returns `true` for the filters of Jekyll that add the root of the site to a path, and for the filter `escape`.
fn adds_root(filter: &str) -> bool {
    match filter.trim().split_once(':') {
        Some(("prepend", root)) => matches!(root.trim(), "site.baseurl" | "site.url"),
        Some(_) => false,
        None => matches!(filter.trim(), "relative_url" | "absolute_url" | "escape"),
    }
}

fn url(scheme: &str, argument: &str) -> String {
    format!("{scheme}{}", utf8_percent_encode(argument, NON_ALPHANUMERIC))
}

/// Returns the page in the arguments of `ref` and `relref`: the first argument, with or without the name `path`.
fn hugo_argument(arguments: &str) -> Option<&str> {
    let separated = arguments.trim_start();
    if separated.len() == arguments.len() {
        return None;
    }
    let argument = separated.strip_prefix("path=").unwrap_or(separated);
    let quote = argument.chars().next()?;
    let argument = match quote {
        '"' | '\'' | '`' => argument.get(1..)?.split(quote).next()?,
        _ => argument.split_whitespace().next()?,
    };
    Some(argument).filter(|argument| !argument.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_tags_are_replaced_by_urls_and_other_braces_stay() {
        for (tag, url) in [
            (r#"{{< ref "a.md" >}}"#, "x-hugo-ref:a%2Emd"),
            (r#"{{% relref path="/b c" lang="fr" %}}#d"#, "x-hugo-ref:%2Fb%20c#d"),
            ("{{<relref a>}}", "x-hugo-ref:a"),
            ("{% link _posts/a.md %}", "x-jekyll-link:%5Fposts%2Fa%2Emd"),
            ("{{ site.baseurl }}{%- post_url 2020-01-01-a -%}", "x-jekyll-post:2020%2D01%2D01%2Da"),
            (r#"{{ "/a b/" | relative_url }}"#, "/a%20b/"),
            (r#"{{'/a/'|relative_url}}"#, "/a/"),
            (r#"{{ "/a" | prepend: site.baseurl | prepend: site.url | escape }}"#, "/a"),
            (r#"{{ "/a" | prepend: "/b" | relative_url }}"#, "same"),
            ("{{< figure src=\"a\" >}} {{ page.url }} {% raw %} {{< ref \"\" >}} { {{ {%", "same"),
            ("{{< ref\n\"a\" >}} {{< reference \"a\" >}} {% link\n%}", "same"),
        ] {
            assert_eq!(replaced(tag), if url == "same" { tag } else { url });
        }
    }
}
