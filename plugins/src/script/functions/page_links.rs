//! The function that lists the links of a Markdown page to other pages of its project: Markdown links, wikilinks, links
//! in HTML, and the tags of site generators.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use rhai::{Dynamic, Engine, INT, Map, NativeCallContext};
use rustc_hash::FxHashSet;

use super::listing::Listing;
use super::page_references::{PageLink, of_url, of_wikilink};
use super::registration::{Refused, function};
use super::site_tags;
use crate::script::guard::{checkpoint, count_read};

/// The number of entries charged for each link of a list: one for its map, one for each of its two fields, and five for
/// its references. Few links have more references.
const ENTRIES_PER_ITEM: usize = 8;

pub(super) fn register(engine: &mut Engine) {
    function(
        "page_links",
        &["markdown: string", "path: string", "most: int", "map"],
        "Lists the first `most` different links of a Markdown page to other pages as `#{items, more}`. An item is \
         `#{link, to_page}`: the link as it is written, and the target of an edge. `path` is the path of the page. A \
         link to a file that may be no page has no `link`. Links to other sites are left out.",
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
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        checkpoint()?;
        for link in of_event(&event, range, markdown, path) {
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

fn of_event(event: &Event<'_>, range: Range<usize>, markdown: &str, path: &str) -> Vec<PageLink> {
    match event {
        Event::Start(Tag::Link { link_type: LinkType::Email, .. }) => Vec::new(),
        Event::Start(
            Tag::Link { link_type: LinkType::WikiLink { .. }, dest_url, .. }
            | Tag::Image { link_type: LinkType::WikiLink { .. }, dest_url, .. },
        ) => {
            let link = match inline_destination(markdown, range.end) {
                Some(url) => of_url(url, path),
                None => of_wikilink(dest_url, path),
            };
            link.into_iter().collect()
        }
        Event::Start(Tag::Link { dest_url, .. }) => of_url(dest_url, path).into_iter().collect(),
        Event::Html(html) | Event::InlineHtml(html) => {
            anchors(html).into_iter().filter_map(|url| of_url(url, path)).collect()
        }
        _ => Vec::new(),
    }
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

/// Returns the target of `[[text]](target)`, which is a Markdown link whose text is in brackets. `end` is the end of
/// `[[text]]`.
fn inline_destination(markdown: &str, end: usize) -> Option<&str> {
    let rest = markdown.get(end..)?.strip_prefix('(')?;
    let rest = rest.lines().next()?;
    let length = rest.find([')', ' '])?;
    rest.get(..length).map(|url| url.trim_start_matches('<').trim_end_matches('>'))
}

/// Returns the targets of the `a` elements in HTML.
fn anchors(html: &str) -> Vec<&str> {
    let mut urls = Vec::new();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once("<a") {
        let (inside, after) = tag.split_once('>').unwrap_or((tag, ""));
        if inside.starts_with(char::is_whitespace) {
            urls.extend(href(inside));
        }
        rest = after;
    }
    urls
}

fn href(attributes: &str) -> Option<&str> {
    let (_, value) = attributes.split_once("href")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value.get(1..)?.split_once(quote).map(|(url, _)| url)
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
    fn links_of_all_kinds_are_found_outside_code() {
        let markdown = r#"[a](a.md "title") [b][] [[c|text]] ![[d#e]] [[1]](f.md) <https://example.org/x>
<a class="x" href='g.md#h'>g</a> <abbr title="href='x.md'">x</abbr> `[x](x.md)` ![x](x.png) <who@example.org>

| [[i\|text]] |
| --- |
| [j]({{< ref "j.md" >}}#h) |

[k]({{ site.baseurl }}{% link k.md %}) [a again](a.md#other) [own](#heading)

    [x](x.md)

<p>
<a href="l.md">l</a>
</p>

[b]: <b c.md>
"#;
        let expected = [
            "a.md /docs/a.md",
            "b c.md /docs/b c.md",
            "c c.md",
            "d#e d.md",
            "f.md /docs/f.md",
            "g.md#h /docs/g.md",
            "i i.md",
            "j.md /docs/j.md",
            "k.md /k.md",
            "l.md /docs/l.md",
        ];
        assert_eq!(links(markdown), expected);
    }
}
