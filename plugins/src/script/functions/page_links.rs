//! The function that lists the links of a Markdown page to other pages of its project: Markdown links, wikilinks, links
//! in HTML, and the tags of site generators.

use std::ops::Range;

use foldwork_engine::model::page::is_markdown;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use rhai::{Dynamic, Engine, INT, Map, NativeCallContext};
use rustc_hash::FxHashSet;

use super::html_links;
use super::listing::Listing;
use super::page_references::{PageLink, of_url, of_wikilink};
use super::registration::{Refused, function};
use super::site_tags;
use crate::script::guard::{checkpoint, count_read};

/// The number of entries that each link in a list counts as: one for its map, one for each of the map's two fields, and
/// five for its references. Few links have more than five references.
const ENTRIES_PER_ITEM: usize = 8;
/// The maximum length of a TOML name that [`is_assignment_below`] recognizes, in bytes.
const MAX_NAME: usize = 100;

pub(super) fn register(engine: &mut Engine) {
    function(
        "page_links",
        &["markdown: string", "path: string", "most: int", "map"],
        "Lists the first `most` different links of a Markdown page to other pages as `#{items, more}`. An item is \
         `#{link, to_page}`: the link as it is written, and the target of an edge. `path` is the path of the page. An \
         item for a link that may lead to a file has no `link`. Links to other sites are left out.",
        r##"page_links("[a](../b.md#c) [[d|e]]", "x/y/z.md", 9).items == [#{link: "../b.md#c", to_page: ["/x/b.md"]}, #{link: "d", to_page: ["d.md"]}]"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str, path: &str, most: INT| {
        let links = Listing::new(&context, ENTRIES_PER_ITEM, Some(most))?;
        Ok::<_, Refused>(page_links(markdown, path, links)?.bounded())
    });
}

fn page_links(markdown: &str, path: &str, mut links: Listing) -> Result<Listing, Refused> {
    count_read(markdown);
    let replaced = site_tags::replaced(markdown);
    let markdown = &*replaced;
    count_read(markdown);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_WIKILINKS;
    let mut seen: FxHashSet<Vec<String>> = FxHashSet::default();
    let mut html = String::new();
    let mut events = Parser::new_ext(markdown, options).into_offset_iter();
    while let Some((event, range)) = events.next() {
        checkpoint()?;
        let found = match event {
            // The parser returns a block of HTML line by line, but a tag or a comment may span several lines.
            Event::Html(line) => {
                html.push_str(&line);
                Vec::new()
            }
            Event::End(TagEnd::HtmlBlock) => of_html(&std::mem::take(&mut html), path)?,
            Event::InlineHtml(tag) => of_html(&tag, path)?,
            event => {
                let is_defined = |label: &str| events.reference_definitions().get(label).is_some();
                of_event(&event, range, markdown, path, is_defined)
            }
        };
        for link in found {
            if !seen.contains(&link.references) {
                if !push(&mut links, &link) {
                    return Ok(links);
                }
                seen.insert(link.references);
            }
        }
    }
    Ok(links)
}

/// Returns the links in an event of the Markdown parser, except for links in HTML. `is_defined` returns whether a label
/// has a link reference definition.
fn of_event(
    event: &Event<'_>,
    range: Range<usize>,
    markdown: &str,
    path: &str,
    is_defined: impl Fn(&str) -> bool,
) -> Vec<PageLink> {
    match event {
        Event::Start(Tag::Link { link_type: LinkType::Email, .. }) => Vec::new(),
        Event::Start(
            Tag::Link { link_type: LinkType::WikiLink { .. }, dest_url, .. }
            | Tag::Image { link_type: LinkType::WikiLink { .. }, dest_url, .. },
        ) => {
            let after = markdown.get(range.end..).unwrap_or_default();
            if is_assignment_below(after) {
                return Vec::new();
            }
            let link = match inline_destination(after) {
                Some(url) => of_url(url, path),
                // `[[text]][label]` is a reference link. The parser returns `[label]` as a further link.
                None if label(after).is_some_and(&is_defined) => None,
                None => of_wikilink(dest_url, path),
            };
            link.into_iter().collect()
        }
        Event::Start(Tag::Link { dest_url, .. }) => of_url(dest_url, path).into_iter().collect(),
        // Obsidian embeds a note like an image.
        Event::Start(Tag::Image { dest_url, .. }) if is_note(dest_url) => of_url(dest_url, path).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn of_html(html: &str, path: &str) -> Result<Vec<PageLink>, Refused> {
    Ok(html_links::targets(html)?.into_iter().filter_map(|url| of_url(url, path)).collect())
}

fn push(links: &mut Listing, link: &PageLink) -> bool {
    let bytes = link.references.iter().map(String::len).sum::<usize>() + link.text.as_ref().map_or(0, String::len);
    links.push(bytes, || {
        let references = link.references.iter().map(|reference| reference.as_str().into()).collect();
        let mut item = Map::from_iter([("to_page".into(), Dynamic::from_array(references))]);
        if let Some(text) = &link.text {
            item.insert("link".into(), text.as_str().into());
        }
        Dynamic::from_map(item)
    })
}

fn is_note(url: &str) -> bool {
    is_markdown(url.split(['#', '?']).next().unwrap_or_default())
}

/// Returns whether the line below `[[name]]` assigns a value. If so, `[[name]]` is not a wikilink but the header of a
/// table in TOML, for example in the content of a shortcode. `after` is the text after `[[name]]`.
fn is_assignment_below(after: &str) -> bool {
    let Some(below) = after.trim_start_matches([' ', '\r']).strip_prefix('\n') else { return false };
    let below = below.get(..below.floor_char_boundary(MAX_NAME)).unwrap_or_default();
    let name = below.split_once('=').map_or("", |(name, _)| name.trim());
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns the target of `[[text]](target)`, which is a Markdown link whose text is in brackets. `after` is the text
/// after `[[text]]`. A word in parentheses, as in `[[note]](word)`, is not a target.
fn inline_destination(after: &str) -> Option<&str> {
    let rest = after.strip_prefix('(')?.lines().next()?.trim_start();
    if let Some(quoted) = rest.strip_prefix('<') {
        return quoted.split_once('>').map(|(url, _)| url);
    }
    let (url, after) = rest.split_at(rest.find([')', ' '])?);
    let is_target = url.contains(['/', '.', '#', ':']) && !url.contains('`');
    let has_end = after.trim_start().starts_with([')', '"', '\'', '(']);
    (is_target && has_end).then_some(url)
}

/// Returns the label of `[[text]][label]`, which is a reference link whose text is in brackets. `after` is the text
/// after `[[text]]`.
fn label(after: &str) -> Option<&str> {
    after.strip_prefix('[').filter(|rest| !rest.starts_with('['))?.split_once(']').map(|(label, _)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the links of the page `docs/p.md`, each with its first reference.
    fn links(markdown: &str) -> Vec<String> {
        let mut engine = Engine::new();
        engine.set_max_array_size(1_000).set_max_map_size(1_000).set_max_string_size(10_000);
        register(&mut engine);
        let mut scope = rhai::Scope::new();
        scope.push("markdown", markdown.to_owned());
        let script = r#"page_links(markdown, "docs/p.md", 100).items.map(|item| item.link + " " + item.to_page[0])"#;
        let found = engine.eval_with_scope::<rhai::Array>(&mut scope, script).expect("links");
        found.into_iter().map(|link| link.to_string()).collect()
    }

    #[test]
    fn links_to_pages_are_found_in_markdown_outside_code_and_comments() {
        let markdown = r#"[a](a.md "title") [b][] [[c|text]] ![[d#e]] [[1]](f.md) <https://example.org/x>
[[2]](<m n.md> "title") [[o]][o] [[q]][]
[[r]](word) [[s]](some words) [[t]](`.t`) ![u](u.md#part) [[x.y]]
x = 1

<a class="x" href='g.md#h'>g</a> <abbr title="href='x.md'">x</abbr> `[x](x.md)` ![x](x.png) <who@example.org>

| [[i\|text]] |
| --- |
| [j]({{< ref "j.md" >}}#h) |

[k]({{ site.baseurl }}{% link k.md %}) [a again](a.md#other) [own](#heading)

    [x](x.md)

<p>
<a
  href="l.md">l</a>
<!-- <a href="x.md">x</a>
<a href="x.md">x</a> -->
</p>

<!-- <a href="x.md">x</a> --> <!-- [x](x.md) -->

[b]: <b c.md>
[o]: https://example.org/o
"#;
        let expected = [
            "a.md /docs/a.md",
            "b c.md /docs/b c.md",
            "c c.md",
            "d#e d.md",
            "f.md /docs/f.md",
            "m n.md /docs/m n.md",
            "q q.md",
            "r r.md",
            "s s.md",
            "t t.md",
            "u.md#part /docs/u.md",
            "g.md#h /docs/g.md",
            "i i.md",
            "j.md /docs/j.md",
            "k.md /k.md",
            "l.md /docs/l.md",
        ];
        assert_eq!(links(markdown), expected);
    }
}
